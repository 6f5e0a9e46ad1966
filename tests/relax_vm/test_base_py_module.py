"""Modules of compiled functions and Python functions that call each other."""

import numpy as np
import pytest

from mlcweb import relax, tir
from mlcweb.ir import IRModule, TVMError, assert_structural_equal
from mlcweb.relax import BasePyModule
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.runtime.registry import get_global_func, register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T


@I.ir_module
class Model(BasePyModule):
    @T.prim_func
    def scale(x: T.handle, y: T.handle):
        n = T.int64()
        A = T.match_buffer(x, (n,), "float32")
        B = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            B[i] = A[i] * T.float32(2.5)

    @R.function
    def total(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        return R.add(x, y)

    @I.pyfunc
    def main(self, x):
        scaled = self.call_tir("scale", [x], R.Tensor((x.shape[0],), "float32"))
        return self.total(scaled, x)

    @I.pyfunc
    def plain(x):
        return x + 1


@pytest.fixture
def model():
    return Model(cpu(), "numpy")


X = np.arange(5, dtype="float32")


def numbers(value) -> list[float]:
    return np.asarray(value).tolist()


def test_python_functions_call_compiled_ones(model):
    assert isinstance(model, BasePyModule)
    assert numbers(model.main(X)) == (X * 3.5).tolist()
    assert numbers(model.plain(X)) == (X + 1).tolist()
    assert numbers(model.call_py_func("main", [array(X)])) == (X * 3.5).tolist()
    assert numbers(model.call_dps_packed("plain", X, None)) == (X + 1).tolist()


def test_tensors_are_converted_in_both_directions(model):
    pair = model._convert_pytorch_to_tvm([X, array(X)])
    assert [type(each) for each in pair] == [type(array(X))] * 2
    assert numbers(pair[0]) == X.tolist()
    assert numbers(model._convert_tvm_to_pytorch(pair)[1]) == X.tolist()
    assert type(model._convert_tvm_to_pytorch(pair[0])) is type(model.main(X))


def test_compiled_functions_are_called_as_attributes_of_the_module(model):
    info = R.Tensor((len(X),), "float32")
    assert numbers(model.call_tir(model.scale, [X], info)) == (X * 2.5).tolist()


def test_functions_are_attributes(model):
    assert numbers(model.total(X, X)) == (X * 2).tolist()
    assert model.list_functions() == {"tir": ["scale"], "relax": ["total"], "extern": []}
    assert set(model.compiled_tir_funcs) == {"scale"}
    assert set(model.pyfuncs) == {"main", "plain"}
    out = array(np.zeros(5, "float32"))
    model.scale(array(X), out)
    assert out.numpy().tolist() == (X * 2.5).tolist()
    assert model.get_function("scale") is not None and model.get_function("none") is None
    assert "def total" in model.script()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = model.nothing


def test_symbolic_extents_of_results_are_those_of_arguments(model):
    n, m = (tir.Var(name, "int64") for name in "nm")
    result = model.call_tir("scale", [X], relax.TensorStructInfo((n,), "float32"))
    assert numbers(result) == (X * 2.5).tolist()
    scale = Model.ir_module["scale"]
    assert numbers(model.call_tir(scale, X, (5,))) == (X * 2.5).tolist()
    infer = model._infer_concrete_shape_from_args
    assert infer([n, 5, m], [np.zeros(3), np.zeros((2, 9, 4))]) == [2, 5, 4]
    with pytest.raises(ValueError, match="Cannot infer concrete output shape"):
        infer([n, 8], [X])


def test_registered_functions_write_their_results():
    def add(a, b, out):
        out[:] = a.numpy() + b.numpy()

    register_func("tests.add", add)
    try:
        module = BasePyModule(IRModule(), cpu())
        result = module.call_dps_packed("tests.add", [X, 2.5], R.Tensor((5,), "float32"))
        assert numbers(result) == (X + 2.5).tolist()
        assert module.list_functions()["extern"] == ["tests.add"]
    finally:
        remove_global_func("tests.add")


def test_what_is_not_there_is_named(model):
    with pytest.raises(ValueError, match="no function none of TensorIR; there: scale"):
        model.call_tir("none", [X], (5,))
    with pytest.raises(ValueError, match="no Python function none; there: main, plain"):
        model.call_py_func("none", [])


def test_the_class_is_the_module_until_it_is_called():
    assert sorted(var.name_hint for var in Model.functions) == ["scale", "total"]
    assert Model.pyfunc_methods == ["main", "plain"]
    added = BasePyModule(Model.ir_module, cpu(), "numpy")
    added.add_python_function("twice", lambda x: 2 * x)
    assert added.twice(4) == 8


@I.ir_module
class Mixed(BasePyModule):
    @I.pyfunc
    def sort(self, x, y):
        ordered = np.sort(np.asarray(x))
        return array(ordered), array(ordered + np.asarray(y))

    @I.pyfunc
    def halve(x):
        return array(np.asarray(x) / np.float32(2))

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.add(x, x)
            both = R.call_py_func(
                "sort", (y, x), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")]
            )
            half = R.call_py_func("halve", both[1], out_ty=R.Tensor((n,), "float32"))
            z = R.subtract(half, both[0])
            R.output(z)
        return z


UNSORTED = np.float32([3, 1, 2])


def test_functions_of_relax_call_python_functions():
    ordered = np.float32([2, 4, 6])
    expected = (ordered + UNSORTED) / 2 - ordered
    assert numbers(Mixed(cpu(), "numpy").main(UNSORTED)) == expected.tolist()


@pytest.mark.parametrize("dialect", ["tir", "s_tir"])
def test_calls_of_python_functions_are_printed(dialect):
    module = Mixed.ir_module
    text = module.script(dialect=dialect)
    keyword = "out_ty" if dialect == "s_tir" else "out_sinfo"
    assert f'R.call_py_func("sort", (y, x), {keyword}=[R.Tensor((n,)' in text
    assert_structural_equal(from_source(text), module)


def test_calls_are_read_as_tvm_prints_them():
    calls = [
        from_source(f"""
from tvm.script import relax as R
@R.function
def main(x: R.Tensor((3,), "float32")):
    y = {call}
    return y
""")
        for call in (
            'R.call_py_func(R.str("halve"), (x,), ty_args=(R.Tensor((3,), dtype="float32"),))',
            'R.call_py_func("halve", (x,), out_sinfo=R.Tensor((3,), "float32"))',
        )
    ]
    assert_structural_equal(*calls)


def test_python_functions_of_one_name_are_those_of_their_module():
    module = BasePyModule(Mixed.ir_module, cpu(), "numpy")
    module.add_python_function("sort", lambda x, y: [x, y])
    with pytest.raises(TVMError, match="no Python function halve; there: sort"):
        module.main(UNSORTED)
    register = get_global_func("vm.builtin.register_py_func")
    register("halve", lambda x: array(x.numpy() * 3))
    try:
        assert numbers(module.main(UNSORTED)) == UNSORTED.tolist()
    finally:
        remove_global_func("vm.py_func.halve")


def test_a_call_says_what_it_gives():
    x = relax.Var("x", R.Tensor((2,), "float32"))
    one, both = R.Tensor((3,), "int32"), [R.Tensor((3,), "int32"), R.Tensor((2,), "float32")]
    by_position = relax.op.call_py_func("f", x, one)
    assert_structural_equal(by_position, relax.op.call_py_func("f", (x,), out_sinfo=one))
    several = relax.op.call_py_func("f", [x, x], both)
    assert several.sinfo_args == (relax.TupleStructInfo(both),)
    assert_structural_equal(
        several, relax.op.call_py_func("f", x, x, sinfo_args=several.sinfo_args)
    )
    with pytest.raises(TVMError, match="say what the call writes"):
        relax.op.call_py_func("f", x)
