"""Programs that allocate themselves, and functions that see each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, tir
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

X = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


@I.ir_module
class Allocating:
    @T.prim_func
    def exp(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])

    @R.function(pure=False)
    def planned(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        cls = Allocating
        storage: R.Object = R.memory.alloc_storage(
            R.shape([48]), R.prim_value(0), R.str("global"), R.dtype("uint8")
        )
        first: R.Tensor((3, 4), "float32") = R.memory.alloc_tensor(
            storage, R.prim_value(0), R.shape([3, 4]), R.dtype("float32")
        )
        cls.exp(x, first)
        second: R.Tensor((3, 4), "float32") = R.builtin.alloc_tensor(
            R.shape([3, 4]), R.dtype("float32"), R.prim_value(0)
        )
        cls.exp(first, second)
        R.memory.kill_tensor(first)
        R.memory.kill_storage(storage)
        return second

    @R.function(pure=False)
    def lowered(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        cls = Allocating
        storage: R.Object = R.vm.alloc_storage(R.shape([48]), R.prim_value(0), R.dtype("uint8"))
        result: R.Tensor((3, 4), "float32") = R.vm.alloc_tensor(
            storage, R.prim_value(0), R.shape([3, 4]), R.dtype("float32")
        )
        cls.exp(x, result)
        R.vm.kill_object(storage)
        return result

    @T.prim_func
    def add_n(a: T.handle, b: T.handle, n: T.int64):
        m = T.int64()
        A, B = T.match_buffer(a, (m, 4)), T.match_buffer(b, (m, 4))
        for i, j in T.grid(m, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.Cast("float32", n)

    @R.function(pure=False)
    def extents(x: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
        m = T.int64()
        cls = Allocating
        storage: R.Object = R.vm.alloc_storage(R.shape([m * 16]), R.prim_value(0), R.dtype("uint8"))
        result: R.Tensor((m, 4), "float32") = R.vm.alloc_tensor(
            storage, R.prim_value(0), R.shape([m, 4]), R.dtype("float32")
        )
        R.vm.call_tir_dyn(cls.add_n, (x, result, R.shape([m * 2])))
        return result

    @R.function(pure=False)
    def symbolic(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        result: R.Tensor((n, 4), "float32") = R.builtin.alloc_tensor(
            R.shape([n, 4]), R.dtype("float32"), R.prim_value(0)
        )
        R.call_packed("tests.explicit_memory.twice", x, result, sinfo_args=(R.Object,))
        return result


@tvm.register_func("tests.explicit_memory.twice", override=True)
def twice(x: Any, out: Any) -> None:
    out.copyfrom(2 * x.numpy())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("planned", np.exp(np.exp(X))),
        ("lowered", np.exp(X)),
        ("extents", X + 6),
        ("symbolic", 2 * X),
    ],
)
def test_programs_that_allocate_run(name: str, expected: np.ndarray) -> None:
    vm = relax.VirtualMachine(relax.build(Allocating), tvm.cpu())
    for _ in range(3):  # later calls may take another path
        np.testing.assert_allclose(vm[name](tvm.nd.array(X)).numpy(), expected, rtol=1e-5)


def test_a_direct_call_has_effects_in_functions_that_say_they_are_pure_too() -> None:
    func = Allocating["planned"]
    pruned = relax.analysis.remove_all_unused(func, Allocating)
    assert pruned is func
    pure = relax.Function(func.params, func.body, func.ret_struct_info, True, func.attrs)
    mod = Allocating.copy()
    mod["planned"] = pure
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())  # CallTIRRewrite alone leaves such
    np.testing.assert_allclose(vm["planned"](tvm.nd.array(X)).numpy(), np.exp(np.exp(X)), rtol=1e-5)


@I.ir_module
class Two:
    @R.function(pure=False)
    def main(x: R.Tensor((3, 4), "float32")):
        y = R.exp(x)
        z = R.call_packed("tests.explicit_memory.id", y, sinfo_args=(R.Tensor((3, 4), "float32"),))
        return z


@tvm.register_func("tests.explicit_memory.id", override=True)
def identity(x: Any) -> Any:
    return x


def test_an_instrument_sees_each_call_and_may_leave_it_out() -> None:
    seen: list[tuple[str, bool]] = []

    def instrument(func: Any, name: str, before_run: bool, ret_value: Any, *args: Any) -> int:
        seen.append((name, before_run))
        if before_run and name == "tir_exp":
            args[-1].copyfrom(np.full((3, 4), 7, "float32"))
            return relax.VMInstrumentReturnKind.SKIP_RUN
        return relax.VMInstrumentReturnKind.NO_OP

    vm = relax.VirtualMachine(relax.build(Two), tvm.cpu())
    np.testing.assert_allclose(vm["main"](tvm.nd.array(X)).numpy(), np.exp(X), rtol=1e-5)
    vm.set_instrument(instrument)
    assert (vm["main"](tvm.nd.array(X)).numpy() == 7).all()
    packed = "tests.explicit_memory.id"
    assert seen == [("tir_exp", True), ("tir_exp", False), (packed, True), (packed, False)]
    vm.set_instrument(None)
    np.testing.assert_allclose(vm["main"](tvm.nd.array(X)).numpy(), np.exp(X), rtol=1e-5)
    assert len(seen) == 4


def test_a_call_with_extents_asks_for_a_function_of_the_module_and_a_tuple() -> None:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        R.vm.call_tir_dyn(R.ExternFunc("there.is.none"), (x, R.shape([4])))
        return x

    with pytest.raises(tvm.TVMError, match="call_tir_dyn takes a function of TensorIR"):
        relax.build(tvm.IRModule({"main": main}))


@I.ir_module
class Viewing:
    @R.function
    def bits(x: R.Tensor((3, 4), "float32")):
        return R.memory.view(x, dtype=R.dtype("uint32"))

    @R.function
    def middle(x: R.Tensor((3, 4), "float32")):
        rows = R.memory.view(x, R.shape([2, 4]), relative_byte_offset=R.prim_value(16))
        dtype = R.dtype("uint8")
        return R.memory.view(rows, R.shape([5]), dtype, R.prim_value(3))

    @R.function
    def unknown(x: R.Tensor, offset: R.Prim("int64")):
        return R.memory.view(x, R.shape([4]), relative_byte_offset=offset)

    @R.function
    def of_intermediate(x: R.Tensor((3, 4), "float32")):
        y = R.exp(x)
        z = R.memory.view(y, R.shape([12]))
        return R.add(R.exp(R.exp(x)), R.memory.view(z, R.shape([3, 4])))


def test_views_show_the_memory_of_a_tensor() -> None:
    vm = relax.VirtualMachine(relax.build(Viewing), tvm.cpu())
    x = tvm.nd.array(X)
    for _ in range(3):
        np.testing.assert_array_equal(vm["bits"](x).numpy(), X.view("uint32"))
        np.testing.assert_array_equal(vm["middle"](x).numpy(), X.view("uint8").ravel()[19:24])
        np.testing.assert_array_equal(vm["unknown"](x, 32).numpy(), X[2])
        expected = np.exp(np.exp(X)) + np.exp(X)
        np.testing.assert_allclose(vm["of_intermediate"](x).numpy(), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="would occupy bytes 36 <= i_byte < 52"):
        vm["unknown"](x, 36)


N = tir.Var("N", "int64")
VIEW, DTYPE = relax.op.memory.view, relax.DataTypeImm


@pytest.mark.parametrize(
    ("info", "arguments", "result"),
    [
        (Tensor((N,)), (relax.ShapeExpr((N // 8, 8)),), Tensor((N // 8, 8))),
        (Tensor((N,)), (relax.ShapeExpr(((N + 3) // 4, 4)),), Tensor(((N + 3) // 4, 4))),
        (Tensor((16,), "uint8"), ((8,), "float16"), Tensor((8,), "float16")),
        (Tensor(dtype="uint32"), (None, "uint8"), Tensor(dtype="uint8")),
        (Tensor(dtype=""), (None, None, relax.PrimValue(0)), Tensor(dtype="")),
        (Tensor((4,)), (None, relax.Var("d", relax.ObjectStructInfo())), Tensor((4,), "")),
        (Tensor((16,), ""), ((8,), None, relax.PrimValue(16)), Tensor((8,), "")),
    ],
)
def test_what_a_view_is(info: Any, arguments: tuple[Any, ...], result: Any) -> None:
    view = VIEW(relax.Var("x", info), *arguments)
    assert relax.BlockBuilder().normalize(view).struct_info == result


@pytest.mark.parametrize(
    ("info", "arguments"),
    [
        (Tensor((16,), ""), ((17,),)),
        (Tensor((N,)), ((N + 1,),)),
        (Tensor((N,)), ((N // 4 + 1, 4),)),
        (Tensor((16,), "uint8"), (None, "float16")),
        (Tensor((8,), "float16"), ((32,), "uint8")),
        (Tensor(dtype="uint8"), (None, "float16")),
        (Tensor(dtype=""), (None, None, relax.PrimValue(16))),
        (Tensor((8,)), ((4,), None, relax.PrimValue(20))),
    ],
)
def test_views_stay_inside_of_the_tensor(info: Any, arguments: tuple[Any, ...]) -> None:
    view = VIEW(relax.Var("x", info), *arguments)
    with pytest.raises(relax.errors.ShapeError, match="does not fit into data"):
        relax.BlockBuilder().normalize(view)


def test_a_view_takes_a_shape_and_a_type() -> None:
    x = relax.Var("x", Tensor((16,)))
    for arguments in ((relax.PrimValue(4),), (None, "void")):
        with pytest.raises(relax.errors.DTypeError):
            relax.BlockBuilder().normalize(VIEW(x, *arguments))
