"""Binding parameters and extents, passes on functions and blocks, symbolic shapes."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import DiagnosticError, TVMError
from mlcweb.relax.analysis import all_global_vars
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.transform.op_pattern import OpPatternKind, op_pattern_kind
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T


@I.ir_module
class Symbolic:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.reshape(b, R.shape([n * 2]))
            d = R.exp(c)
            e = R.negative(d)
            R.output(e)
        return e


X = np.arange(12, dtype="float32").reshape(3, 4) / 10
W = np.array([[1, -1], [0, 1], [-1, 0], [1, 1]], "float32")
EXPECTED = -np.exp(np.maximum(X @ W, 0)).reshape(-1)


def run(mod, *arrays):
    vm = relax.VirtualMachine(relax.build(mod, target="numpy"), tvm.cpu())
    return vm["main"](*map(tvm.nd.array, arrays)).numpy()


def fused(mod):
    passes = (
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    )
    for one in passes:
        mod = one(mod)
        refuse_ill_formed(mod)
    return mod


def test_parameters_become_constants():
    bound = relax.transform.BindParams("main", {"w": W})(Symbolic)
    assert [param.name_hint for param in bound["main"].params] == ["x"]
    np.testing.assert_allclose(run(bound, X), EXPECTED, rtol=1e-6)
    np.testing.assert_allclose(run(fused(bound), X), EXPECTED, rtol=1e-6)
    with pytest.raises(DiagnosticError, match='no parameter "v"; it has x, w'):
        relax.transform.BindParams("main", {"v": W})(Symbolic)


def test_extents_become_numbers():
    bound = relax.transform.BindSymbolicVars({"n": 3})(Symbolic)
    assert str(bound["main"].ret_struct_info) == 'R.Tensor((6,), dtype="float32")'
    np.testing.assert_allclose(run(fused(bound), X, W), EXPECTED, rtol=1e-6)
    named = relax.transform.BindSymbolicVars({"n": 5}, "main")(Symbolic)
    assert str(named["main"].params[0].struct_info) == 'R.Tensor((5, 4), dtype="float32")'


def test_functions_of_symbolic_shapes_are_fused():
    mod = fused(Symbolic)
    names = sorted(var.name_hint for var in mod.functions)
    assert "fused_matmul_relu" in names
    np.testing.assert_allclose(run(mod, X, W), EXPECTED, rtol=1e-6)


def test_an_extent_that_no_tensor_has_is_passed():
    @I.ir_module
    class Mod:
        @R.function(private=True)
        def fused(c: R.Tensor(("n * 2",), "float32"), tir_vars: R.Shape(["n"])) -> R.Tensor(
            ("n * 2",), "float32"
        ):
            n = T.int64()
            R.func_attr({"Primitive": 1})
            with R.dataflow():
                d = R.exp(c)
                e = R.negative(d)
                R.output(e)
            return e

        @R.function
        def main(x: R.Tensor(("n", 2), "float32")):
            n = T.int64()
            with R.dataflow():
                c = R.reshape(x, R.shape([n * 2]))
                e = Mod.fused(c, R.shape([n]))
                R.output(e)
            return e

    mod = relax.transform.FuseTIR()(relax.transform.LegalizeOps()(Mod))
    refuse_ill_formed(mod)
    assert isinstance(mod["fused"], tvm.tir.PrimFunc)
    np.testing.assert_allclose(run(mod, W), -np.exp(W).reshape(-1), rtol=1e-6)


def test_nothing_is_fused_at_level_0():
    lowered = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(Symbolic))
    assert len(relax.transform.FuseOps(fuse_opt_level=0)(lowered).functions) == len(
        lowered.functions
    )


def test_groups_have_a_limit():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for _ in range(6):
                value = bb.emit(relax.op.exp(value))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    lowered = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(bb.get()))
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": 3}):
        mod = relax.transform.FuseOps()(lowered)
    sizes = [
        len(func.body.blocks[0].bindings)
        for func in mod.functions.values()
        if isinstance(func, relax.Function) and "Primitive" in func.attrs
    ]
    assert sizes
    assert max(sizes) <= 3


def test_a_pass_on_functions():
    @relax.transform.function_pass(opt_level=1, name="Note")
    def note(func, mod, ctx):
        return func.with_attr("noted", len(mod.functions))

    assert note(Symbolic)["main"].attrs["noted"] == 1
    assert note.info.name == "Note"

    @relax.transform.function_pass(opt_level=0)
    class Named:
        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("named", self.value)

    assert Named("a")(Symbolic)["main"].attrs["named"] == "a"

    @relax.transform.function_pass(opt_level=0)
    def wrong(func, mod, ctx):
        return mod

    with pytest.raises(TVMError, match=r"wrong gave no relax\.Function"):
        wrong(Symbolic)


def test_a_pass_on_dataflow_blocks():
    @relax.transform.dataflowblock_pass(opt_level=0)
    def shorter(block, mod, ctx):
        last = block.bindings[-1]
        first = relax.VarBinding(last.var, relax.op.exp(mod["main"].params[0]))
        return relax.DataflowBlock([first])

    block = shorter(Symbolic)["main"].body.blocks[0]
    assert [str(binding.value) for binding in block.bindings] == ["R.exp(x)"]


def test_kinds_of_functions():
    @T.prim_func
    def gather(
        A: T.Buffer((8,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[I[vi]]

    @T.prim_func
    def window(A: T.Buffer((8,), "float32"), B: T.Buffer((6,), "float32")):
        for i, j in T.grid(6, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi + vj]

    @T.prim_func
    def dot(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    B[()] = T.float32(0)
                B[()] = B[()] + A[vi] * C[vi]

    assert op_pattern_kind(gather) is OpPatternKind.OPAQUE
    assert op_pattern_kind(window) is OpPatternKind.OUT_ELEMWISE_FUSABLE
    assert op_pattern_kind(dot) is OpPatternKind.COMM_REDUCE


def test_what_is_bound_says_more_of_the_variables():
    @R.function
    def main(x: R.Tensor(ndim=1)):
        renamed = x
        return R.add(renamed, renamed)

    bound = main.bind_params({"x": X[0]})
    assert bound.ret_struct_info == relax.TensorStructInfo((4,), "float32")
    renamed, added = bound.body.blocks[0].bindings
    assert renamed.var.struct_info == added.var.struct_info == bound.ret_struct_info
    np.testing.assert_allclose(run(tvm.IRModule({"main": bound})), X[0] * 2)


@pytest.mark.parametrize(
    ("extents", "message"),
    [
        (lambda n, m: {"n": 3}, '2 symbolic extents are named "n"'),
        (lambda n, m: {m: 3, "m": 4}, '"m" is given twice'),
        (lambda n, m: {"m": T.int64() * 2}, "No parameter defines the extent"),
    ],
)
def test_extents_that_cannot_be_bound(extents, message):
    n, other, m = (tvm.tir.Var(name, "int64") for name in "nnm")
    x = relax.Var("x", relax.TensorStructInfo((n, other, m), "float32"))
    func = relax.Function([x], x)
    with pytest.raises(DiagnosticError, match=message):
        func.bind_symbolic_vars(extents(n, m))
    assert func.bind_symbolic_vars({n: 3}).ret_struct_info.shape[0] == 3


def test_extents_of_casts_that_the_value_knows():
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), y: R.Tensor(("k", 4), "float32")):
        n, m, k = T.int64(), T.int64(), T.int64()
        a = R.match_cast(x, R.Tensor((n, m), "float32"))
        b = R.match_cast(y, R.Tensor((k, m), "float32"))
        c: R.Tensor((n + k, m), "float32") = R.concat((a, b), axis=0)
        return R.sum(c, axis=0)

    mod = relax.transform.CanonicalizeBindings()(tvm.IRModule({"main": main}))
    refuse_ill_formed(mod)
    (block,) = mod["main"].body.blocks
    assert [binding.var.name_hint for binding in block.bindings] == ["c", "gv"]
    assert str(block.bindings[0].var.struct_info) == 'R.Tensor((k + 2, 4), dtype="float32")'
    assert mod["main"].ret_struct_info == relax.TensorStructInfo((4,), "float32")
    np.testing.assert_allclose(run(mod, X[:2], X), X[:2].sum(0) + X.sum(0), rtol=1e-6)


def test_casts_that_contradict_each_other():
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((3,), "float32")):
        n = T.int64()
        a = R.match_cast(x, R.Tensor((n,), "float32"))
        b = R.match_cast(y, R.Tensor((n,), "float32"))
        return (a, b)

    with pytest.raises(ValueError, match="MatchCast statements must be consistent: b is cast to"):
        relax.transform.CanonicalizeBindings()(tvm.IRModule({"main": main}))


def test_extents_of_casts_differ_between_branches():
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32"), y: R.Tensor((3,), "float32")):
        if c:
            n = T.int64()
            a = R.match_cast(x, R.Tensor((n,), "float32"))
            z = R.sum(a)
        else:
            n = T.int64()
            a = R.match_cast(y, R.Tensor((n,), "float32"))
            z = R.sum(a)
        return z

    mod = relax.transform.CanonicalizeBindings()(tvm.IRModule({"main": main}))
    assert run(mod, np.array(True), X[0, :2], X[1, :3]) == pytest.approx(X[0, :2].sum())
    assert run(mod, np.array(False), X[0, :2], X[1, :3]) == pytest.approx(X[1, :3].sum())


@I.ir_module
class Nested:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            y = Nested.double(R.add(x, x))
            R.output(y)
        return y

    @R.function(private=True)
    def double(a: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        b = Nested.negate(a)
        return R.multiply(b, R.const(2.0, "float32"))

    @R.function(private=True)
    def negate(a: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        return R.negative(a)


def test_functions_are_inlined_by_name():
    functions = {"double": Nested["double"], Nested.get_global_var("negate"): Nested["negate"]}
    func = Nested["main"].inline_functions(functions)
    mod = tvm.IRModule({"main": func})
    refuse_ill_formed(mod)
    ops = [binding.value.op.name for binding in func.body.blocks[0].bindings]
    assert ops == ["relax.add", "relax.negative", "relax.multiply"]
    np.testing.assert_allclose(run(mod, X), -4 * X)
    outer = Nested["main"].inline_functions({"double": Nested["double"]})
    assert [var.name_hint for var in all_global_vars(outer)] == ["negate"]


def test_functions_that_cannot_be_inlined():
    @I.ir_module
    class Recursive:
        @R.function
        def f(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return Recursive.f(x)

    with pytest.raises(DiagnosticError, match='"f" calls itself'):
        Nested["main"].inline_functions({"f": Recursive["f"]})
    one, two = (relax.Var(name, relax.TensorStructInfo((3, 4), "float32")) for name in "ab")
    with pytest.raises(ValueError, match="argument"):
        Nested["main"].inline_functions({"double": relax.Function([one, two], one)})


def test_a_fused_function_is_primitive_by_either_spelling():
    func = Nested["negate"].with_attr("Primitive", True)
    assert tvm.ir.structural_equal(func, Nested["negate"].with_attr("Primitive", 1))
    assert func.attrs["Primitive"] == 1
