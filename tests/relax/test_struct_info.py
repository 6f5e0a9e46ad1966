"""What is known of values: comparing, joining, and deducing it for each kind of expression."""

import pytest

from mlcweb import relax, tir
from mlcweb.ir import DiagnosticError
from mlcweb.ir.global_info import VDevice
from mlcweb.relax import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.relax.analysis import (
    BaseCheckResult,
    definable_tir_vars_in_struct_info,
    erase_to_well_defined,
    struct_info_base_check,
    struct_info_lca,
    tir_vars_in_struct_info,
)  # fmt: skip
from mlcweb.relax.errors import DTypeError, ShapeError
from mlcweb.script import parse

n, m = tir.Var("n", "int64"), tir.Var("m", "int64")


def T(shape=None, dtype="float32", ndim=-1):
    return TensorStructInfo(shape, dtype, ndim=ndim)


def V(name, *args, **options):
    return relax.Var(name, T(*args, **options))


@pytest.mark.parametrize(
    ("base", "derived", "result"),
    [
        (ObjectStructInfo(), T((3,)), "PASS"),
        (T((3,)), ObjectStructInfo(), "FAIL_L1"),
        (T((3,)), ShapeStructInfo((3,)), "FAIL_L0"),
        (T((3, 4)), T((3, 4)), "PASS"),
        (T((3, 4)), T((3, 5)), "FAIL_L0"),
        (T((3, n)), T((3, n)), "PASS"),
        (T((3, n)), T((3, m)), "FAIL_L2"),
        (T((n,)), T((n + 1,)), "FAIL_L0"),
        (T((3, 4)), T(ndim=2), "FAIL_L2"),
        (T(ndim=2), T((3, 4)), "PASS"),
        (T(ndim=2), T(), "FAIL_L1"),
        (T(ndim=2), T((3,)), "FAIL_L0"),
        (T((3,), ""), T((3,)), "PASS"),
        (T((3,)), T((3,), ""), "FAIL_L1"),
        (T((3,)), T((3,), "int8"), "FAIL_L0"),
        (TupleStructInfo([T(), T()]), TupleStructInfo([T((2,)), T()]), "PASS"),
        (TupleStructInfo([T()]), TupleStructInfo([T(), T()]), "FAIL_L0"),
        (PrimStructInfo("int64"), PrimStructInfo(value=3), "PASS"),
        (PrimStructInfo(value=3), PrimStructInfo(value=4), "FAIL_L0"),
        (ShapeStructInfo(ndim=2), ShapeStructInfo((n, m)), "PASS"),
        (FuncStructInfo([T()], T()), FuncStructInfo([T((3,))], T((2,))), "PASS"),
        (FuncStructInfo([T()], T()), FuncStructInfo([T()], T(), purity=False), "FAIL_L0"),
        (FuncStructInfo.opaque_func(), FuncStructInfo([T()], T()), "PASS"),
    ],
)
def test_base_check(base, derived, result):
    assert struct_info_base_check(base, derived) == BaseCheckResult[result]
    assert base.is_base_of(derived) is (result == "PASS")


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        (T((3, 4)), T((3, 4)), T((3, 4))),
        (T((3, 4)), T((3, n)), T(ndim=2)),
        (T((3, 4)), T((3,)), T()),
        (T((3,)), T((3,), "int8"), T((3,), "")),
        (T((3,)), ShapeStructInfo((3,)), ObjectStructInfo()),
        (TupleStructInfo([T((1,))]), TupleStructInfo([T((2,))]), TupleStructInfo([T(ndim=1)])),
        (PrimStructInfo(value=1), PrimStructInfo(value=2), PrimStructInfo("int64")),
    ],
)
def test_common_struct_info(a, b, common):
    assert struct_info_lca(a, b) == common
    assert struct_info_lca(b, a) == common


def test_symbolic_extents_of_a_struct_info():
    info = TupleStructInfo([T((n + 1, 3)), ShapeStructInfo((m, 2))])
    assert tir_vars_in_struct_info(info) == [n, m]
    assert definable_tir_vars_in_struct_info(info) == [m]
    assert erase_to_well_defined(info, {n: tir.const(4, "int64")}) == TupleStructInfo(
        [T((5, 3)), ShapeStructInfo(ndim=2)]
    )


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda: relax.op.add(V("x", (2, 3)), V("y", (3,))), T((2, 3))),
        (lambda: relax.op.add(V("x", (2, 1)), V("y", (n,))), T((2, n))),
        (lambda: relax.op.add(V("x", (n, 3)), V("y", (m, 1))), T(ndim=2)),
        (lambda: relax.op.add(V("x", (2, 4)), V("y", ndim=3)), T(ndim=3)),
        (lambda: relax.op.add(V("x", (2, 4)), V("y")), T()),
        (lambda: relax.op.add(V("x", (2, 4)), V("y", (4,), "")), T((2, 4), "")),
        (lambda: relax.op.less(V("x", (2, 4)), V("y", ())), T((2, 4), "bool")),
        (lambda: relax.op.matmul(V("x", (n, 3, 4)), V("y", (4,))), T((n, 3))),
        (lambda: relax.op.matmul(V("x", (4,)), V("y", (4,))), T(())),
        (lambda: relax.op.matmul(V("x", (4,)), V("y", (7, 4, 5))), T((7, 5))),
        (lambda: relax.op.matmul(V("x", (1, 2, 4)), V("y", (7, 4, 5))), T((7, 2, 5))),
        (lambda: relax.op.matmul(V("x", ndim=2), V("y", (4, 5))), T(ndim=2)),
        (lambda: relax.op.matmul(V("x", (2, 4)), V("y", (4, 5)), "float64"), T((2, 5), "float64")),
        (lambda: relax.op.permute_dims(V("x", (2, n, 4)), [-1, 0, 1]), T((4, 2, n))),
        (lambda: relax.op.permute_dims(V("x", ndim=3)), T(ndim=3)),
        (lambda: relax.op.astype(V("x", (2, n)), "int8"), T((2, n), "int8")),
        (lambda: relax.op.shape_of(V("x", (2, n))), ShapeStructInfo((2, n))),
        (lambda: relax.op.exp(V("x", (2, n))), T((2, n))),
        (lambda: relax.op.linear(V("x", (2, 3)), V("w", (5, 3)), V("b", (5,))), T((2, 5))),
        (lambda: relax.Tuple([V("x", (2,)), relax.ShapeExpr((n,))])[1], ShapeStructInfo((n,))),
        (lambda: relax.TupleGetItem(relax.Tuple([V("x", (2,)), V("y", (3,))]), 1), T((3,))),
        (lambda: relax.If(V("c", (), "bool"), V("x", (2,)), V("y", (3,))), T(ndim=1)),
        (lambda: relax.PrimValue(3), PrimStructInfo(value=3)),
        (lambda: relax.const([[1, 2, 3]]), T((1, 3), "int32")),
        (lambda: relax.op.call_tir(relax.GlobalVar("f"), V("x", (2,)), T((n,))), T((n,))),
        (
            lambda: relax.op.call_tir(
                relax.GlobalVar("f"), (V("x", (2,)),), [(2,), (3,)], dtype=["int8", "int16"]
            ),
            TupleStructInfo([T((2,), "int8"), T((3,), "int16")]),
        ),
        (lambda: relax.op.call_packed("f", V("x", (2,))), ObjectStructInfo()),
        (
            lambda: relax.op.call_packed("f", V("x", (2,)), sinfo_args=[T((1,)), T()]),
            TupleStructInfo([T((1,)), T()]),
        ),
    ],
)  # fmt: skip
def test_deduction(call, result):
    assert call().struct_info == result


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: relax.op.add(V("x", (2, 4)), V("y", (3, 5))),
            ShapeError,
            r"relax\.add: x1 of shape \(2, 4\) and x2 of shape \(3, 5\) cannot be broadcast: "
            "2 against 3 on axis 0",
        ),
        (
            lambda: relax.op.add(V("x", (2,)), V("y", (2,), "float16")),
            DTypeError,
            "relax.add: the arguments must have one element type; they have: x1 float32, "
            "x2 float16",
        ),
        (
            lambda: relax.op.matmul(V("x", (2, 4)), V("y", (2, 4))),
            ShapeError,
            r"relax\.matmul: x1 of shape \(2, 4\) and x2 of shape \(2, 4\) cannot be multiplied: "
            "the extents of the sum are 4 and 2",
        ),
        (
            lambda: relax.op.matmul(V("x", (n, n + 1)), V("y", (n, 4))),
            ShapeError,
            "the extents of the sum are n \\+ 1 and n",
        ),
        (lambda: relax.op.matmul(V("x", ()), V("y", (2,))), ShapeError, "x1 is a scalar"),
        (
            lambda: relax.op.nn.relu(relax.ShapeExpr((2,))),
            DTypeError,
            r"relax\.nn\.relu: x must be a tensor, but R\.shape\(\[2\]\) is R\.Shape\(\[2\]\)",
        ),
        (lambda: relax.op.exp(V("x", (2,), "int32")), DTypeError, "x must be float, not int32"),
        (
            lambda: relax.op.permute_dims(V("x", (2, 3)), [0, 1, 2]),
            ShapeError,
            r"axes \[0, 1, 2\] are not those of x of shape \(2, 3\)",
        ),
        (lambda: relax.op.permute_dims(V("x", (2, 3)), [0, 0]), ShapeError, "names an axis twice"),
        (lambda: relax.TupleGetItem(V("x", (2,)), 0), DTypeError, "x has no fields"),
    ],
)
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        _ = call().struct_info


def test_dimensions_that_do_not_go_with_the_shape():
    for info in (lambda: TensorStructInfo((2, 3), ndim=3), lambda: ShapeStructInfo([2, 3], ndim=1)):
        with pytest.raises(ValueError, match="does not have"):
            info()
    with pytest.raises(DiagnosticError, match="or -1, not -2"):
        TensorStructInfo(ndim=-2)
    for dtype in ("float32", "int32"):
        with pytest.raises(DiagnosticError, match="can only have dtype of int64"):
            ShapeStructInfo([tir.Var("n", dtype)])


def test_items_of_tuples_and_shapes():
    pair, shape = relax.Tuple([relax.Var("a"), relax.Var("b")]), relax.ShapeExpr([4, 5])
    assert pair[-1].name_hint == "b" and shape[-2] == 4 and pair.ty is None
    for items, name in ((pair, "Tuple"), (shape, "ShapeExpr")):
        with pytest.raises(IndexError, match=f"{name} index out of range: there are 2"):
            items[2]


def test_only_functions_are_called():
    with pytest.raises(ValueError, match="Only functions can be called; x is a"):
        relax.Call(relax.Var("x", TensorStructInfo((2,))), [])


def test_numbers_are_no_operands():
    with pytest.raises(TypeError, match=r"relax\.const\(1\)"):
        _ = V("x", (2,)) + 1
    assert (V("x", (2,)) + relax.const(1.0)).struct_info == T((2,))


def test_tuples_unpack_and_end():
    pair = relax.Var("p", TupleStructInfo([T((2,)), T((3,))]))
    first, second = pair
    assert (first.struct_info, second.struct_info) == (T((2,)), T((3,)))
    with pytest.raises(IndexError, match="2 field"):
        pair[2]


def test_calls_of_functions_unify_symbolic_extents():
    f = relax.Var("f", FuncStructInfo([T((n, 4)), ShapeStructInfo((m,))], T((n * 2, m))))
    call = f(V("x", (3, 4)), relax.ShapeExpr((7,)))
    assert call.struct_info == T((6, 7))
    with pytest.raises(DTypeError, match=r"f: argument 0 type mismatch: expected .*\(n, 4\)"):
        _ = f(V("x", (3, 5)), relax.ShapeExpr((7,))).struct_info
    with pytest.raises(DTypeError, match=r"takes 2 argument\(s\); the call has 1"):
        _ = f(V("x", (3, 4))).struct_info
    twice = relax.Var("f", FuncStructInfo([T((n,)), T((n,))], T((n,))))
    with pytest.raises(DTypeError, match="argument 1"):
        _ = twice(V("x", (3,)), V("y", (4,))).struct_info


def test_results_forget_extents_that_parameters_do_not_tell():
    x = V("x", ndim=1)
    cast = relax.Var("y", T((n,)))
    block = relax.BindingBlock([relax.MatchCast(cast, x, T((n,)))])
    func = relax.Function([x], relax.SeqExpr([block], cast))
    assert func.ret_struct_info == T(ndim=1)
    assert func.struct_info == FuncStructInfo([T(ndim=1)], T(ndim=1))


@pytest.mark.parametrize(
    ("base", "derived", "result"),
    [
        (None, VDevice("cuda"), "PASS"),
        (VDevice(), VDevice("cuda"), "PASS"),
        (VDevice("cuda"), None, "FAIL_L1"),
        (VDevice("cuda"), VDevice(), "FAIL_L1"),
        (VDevice("cuda"), VDevice("cuda"), "PASS"),
        (VDevice("cuda"), VDevice("cuda", 1), "FAIL_L0"),
        (VDevice("cuda"), VDevice("cuda", 0, "shared"), "FAIL_L0"),
        (VDevice("cuda"), VDevice("llvm"), "FAIL_L0"),
    ],
)
def test_virtual_devices_are_compared(base, derived, result):
    """The results are those of a real TVM."""
    tensors = [TensorStructInfo((2,), "float32", device) for device in (base, derived)]
    assert struct_info_base_check(*tensors) == BaseCheckResult[result]


def test_functions_are_compared_with_extents_of_their_own():
    def function(extents):
        k = extents or tir.Var("k", "int64")
        return FuncStructInfo([T((k, 2))], T((k,)))

    erased = FuncStructInfo([T(ndim=2)], T(ndim=1))
    assert struct_info_base_check(function(None), function(None)) == BaseCheckResult.PASS
    assert struct_info_base_check(erased, function(None)) == BaseCheckResult.PASS
    assert struct_info_base_check(function(None), erased) == BaseCheckResult.FAIL_L2
    assert struct_info_base_check(function(3), function(4)) == BaseCheckResult.FAIL_L0


def test_what_functions_have_in_common_is_deduced_parameter_by_parameter():
    def function(extent, count=1, purity=True):
        k = tir.Var("k", "int64")
        return FuncStructInfo([T((extent, k))] * count, T((extent, k, k)), purity)

    assert struct_info_lca(function(2), function(2)) == function(2)
    erased = FuncStructInfo([T(ndim=2)], T(ndim=3), False)
    assert struct_info_lca(function(1, purity=False), function(2)) == erased
    opaque = FuncStructInfo.opaque_func(ret=T(ndim=3), purity=True)
    assert struct_info_lca(function(1), function(2, count=2)) == opaque


def test_a_function_defines_the_extents_of_its_parameters():
    info = FuncStructInfo([T((n, n * 2)), ShapeStructInfo((m,))], T((k := tir.Var("k", "int64"),)))
    assert definable_tir_vars_in_struct_info(info) == [n, m]
    assert tir_vars_in_struct_info(info) == [n, m, k]


def test_functions_of_tensorir_are_values_too():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32, p: T.handle, b: T.handle) -> T.int32:
    m = T.int64()
    B = T.match_buffer(b, (m, 4), "float16")
    T.ret(n)""")
    assert str(func.ty) == str(func.struct_info)
    assert str(func.ty) == (
        'R.Callable((R.Tensor((16,), dtype="float32"), R.Prim("int32"), R.Object, '
        'R.Tensor((m, 4), dtype="float16")), R.Prim("int32"), True)'
    )
    nothing = parse("@T.prim_func\ndef main(n: T.float32):\n    T.evaluate(n)")
    assert str(nothing.struct_info) == 'R.Callable((R.Prim("float32"),), R.Tuple, True)'


def test_static_types_have_no_extents():
    function = FuncStructInfo([T((n, 2)), PrimStructInfo(value=n)], T((2,), "int8"), False)
    info = TupleStructInfo([function, ShapeStructInfo((1, n)), ObjectStructInfo()])
    static = FuncStructInfo([T(ndim=2), PrimStructInfo("int64")], T(dtype="int8", ndim=1), False)
    assert relax.analysis.get_static_type(info) == TupleStructInfo(
        [static, ShapeStructInfo(ndim=2), ObjectStructInfo()]
    )


def shaped_by(variable, dtype="float32"):
    return relax.Var("x", T(variable, dtype))


S = relax.Var("s", ShapeStructInfo((2, 3)))
R2 = relax.Var("r", ShapeStructInfo(ndim=2))


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda: relax.op.exp(shaped_by(S)), T(S)),
        (lambda: relax.op.add(shaped_by(S), V("y", (3,))), T((2, 3))),
        (lambda: relax.op.add(shaped_by(R2), V("y", (3,))), T(ndim=2)),
        (lambda: relax.op.where(shaped_by(S, "bool"), V("y", (2, 3)), V("z", (3,))), T(ndim=2)),
        (lambda: relax.op.sum(shaped_by(S), 1), T(ndim=1)),
        (lambda: relax.op.matmul(shaped_by(S), V("y", (3, 4))), T(ndim=2)),
        (lambda: relax.op.permute_dims(shaped_by(S)), T(ndim=2)),
        (lambda: relax.op.permute_dims(shaped_by(R2), (0, 1)), T(R2)),
        (lambda: relax.op.reshape(shaped_by(S), (3, -1)), T((3, 2))),
        (lambda: relax.op.strided_slice(shaped_by(S), [1], [0], [2]), T((2, 2))),
        (lambda: relax.op.strided_slice(shaped_by(R2), [], [], []), T(R2)),
        (lambda: relax.op.squeeze(shaped_by(S)), T(S)),
        (lambda: relax.op.reshape(V("x", (6,)), S), T((2, 3))),
        (lambda: relax.op.flatten(shaped_by(S)), T(ndim=1)),
        (lambda: relax.op.concat([shaped_by(S)], 1), T(S)),
        (lambda: relax.op.concat([shaped_by(S), V("y", (2, 3))], 0), T(ndim=2)),
        (lambda: relax.op.collapse_sum_like(V("y", (4, 2, 3)), shaped_by(S)), T(S)),
        (lambda: relax.op.split(shaped_by(S), 3, 1), TupleStructInfo([T(ndim=2)] * 3)),
    ],
)
def test_shapes_that_are_variables(call, result):
    """The results are those of a real TVM."""
    assert relax.BlockBuilder().normalize(call()).struct_info == result


@pytest.mark.parametrize(
    "call",
    [
        lambda: relax.op.reshape(shaped_by(S), (4, 2)),
        lambda: relax.op.broadcast_to(shaped_by(S), (2, 4)),
        lambda: relax.op.collapse_sum_like(V("y", (2, 4)), shaped_by(S)),
        lambda: relax.op.add(shaped_by(S), V("y", (4,))),
    ],
)
def test_what_does_not_fit_a_variable_shape_is_refused(call):
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        relax.BlockBuilder().normalize(call())


def test_extents_may_be_replaced_by_numbers_and_calls_looked_at_in_a_builder():
    assert erase_to_well_defined(T((m + 1, n)), {n: 2, m: 3}) == T((4, 2))
    func, x = relax.Var("f", FuncStructInfo([T((n, m))], T((m, n)))), V("x", (3, 5))
    call, builder = relax.Call(func, [x]), relax.BlockBuilder()
    derive = relax.analysis.derive_call_ret_struct_info
    assert derive(func.struct_info, call, builder) == derive(func.struct_info, call) == T((5, 3))


def test_a_function_of_tensorir_is_pure_unless_it_stores_in_a_parameter():
    A, x = tir.decl_buffer((16,), "float32", "A"), tir.Var("x", "int32")
    copies = tir.PrimFunc([A], tir.BufferStore(A, 1, [x]))
    assert copies.struct_info == FuncStructInfo([T((16,))], TupleStructInfo([]), purity=False)
    own = tir.AllocBuffer(tir.decl_buffer((1,), "float32", "own"))
    sums = tir.SeqStmt([own, tir.BufferStore(own.buffer, A[x], [0])])
    assert tir.PrimFunc([A, x], sums).struct_info.purity


def test_the_type_of_a_function_has_the_names_of_types():
    kind = FuncStructInfo([PrimStructInfo("int32")], T((3,)))
    assert kind.arg_types == kind.params and kind.ret_type is kind.ret
