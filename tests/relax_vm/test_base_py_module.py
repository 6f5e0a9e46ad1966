"""Modules of compiled functions and Python functions that call each other."""

import numpy as np
import pytest

from mlcweb import relax, tir
from mlcweb.ir import IRModule
from mlcweb.relax import BasePyModule
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.runtime.registry import register_func, remove_global_func
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
