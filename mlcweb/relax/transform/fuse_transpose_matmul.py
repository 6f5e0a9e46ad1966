"""FuseTransposeMatmul: products by a transposed matrix as one function of TensorIR."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.dpl.pattern import is_op, wildcard
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.legalize import te
from mlcweb.relax.transform.call_rules import tensor
from mlcweb.relax.transform.fuse_by_pattern import (
    FuseOpsByPattern,
    FusionPattern,
    PatternCheckContext,
)
from mlcweb.relax.transform.registration import pass_of, rewritten_by
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.expr import IntImm, PrimExpr

_NAME = "transpose_matmul_fuse"


def FuseTransposeMatmul() -> Pass:
    """Compute `matmul(x, permute_dims(w))` by a function of TensorIR, `NT_matmul`, that reads `w`
    as it lies, where the two last axes of `w` are exchanged and nothing else asks for the result
    of that. The functions that were fused on the way stay in the module. Run it before
    LegalizeOps."""
    weight, data = wildcard(), wildcard()
    transposed = is_op("relax.permute_dims")(weight)
    product = is_op("relax.matmul")(data, transposed)
    pattern = FusionPattern(_NAME, product, {"transposed": transposed}, _exchanges_last)
    fuse = FuseOpsByPattern([pattern], bind_constants=False)

    def transform(mod: IRModule) -> IRModule:
        fused = fuse(mod)
        return rewritten_by(fused, _Lowering(fused))

    return pass_of("FuseTransposeMatmul", transform)


def _exchanges_last(context: PatternCheckContext) -> bool:
    call = context.annotated_expr["transposed"]
    if not isinstance(call, E.Call) or call.attrs is None:
        return False
    info = tensor(call.args[0])
    var = context.value_to_bound_var.get(call)
    if info is None or info.ndim < 2 or tensor(context.matched_expr) is None:
        return False
    if var is None or len(context.var_usages.get(var, ())) != 1:
        return False
    rank, axes = info.ndim, call.attrs["axes"]
    order = list(reversed(range(rank))) if axes is None else [axis % rank for axis in axes]
    return order == [*range(rank - 2), rank - 1, rank - 2]


@mutator
class _Lowering(PyExprMutator):
    """Calls functions of TensorIR in place of those that were fused."""

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        func = (
            self.builder_.get().functions.get(call.op) if isinstance(call.op, GlobalVar) else None
        )
        if not isinstance(new, E.Call) or not isinstance(func, E.Function):
            return new
        if func.attrs.get("Composite") != _NAME:
            return new
        (block,) = func.body.blocks
        transposed, product = (binding.value for binding in block.bindings)
        assert isinstance(transposed, E.Call) and isinstance(product, E.Call)
        arguments = dict(zip(func.params, new.args, strict=True))
        args = [arguments.get(arg, arg) if isinstance(arg, E.Var) else arg
                for arg in (product.args[0], transposed.args[0])]  # fmt: skip
        result = tensor(product)
        assert result is not None
        dtype = result.dtype

        def nt_matmul(x: te.Tensor, w: te.Tensor) -> te.Tensor:
            return _product(x, w, dtype)

        return self.builder_.call_te(nt_matmul, *args, primfunc_name_hint="NT_matmul")


def _product(x: te.Tensor, w: te.Tensor, dtype: str) -> te.Tensor:
    """x (…, k), or (k), times the transpose of w (…, n, k)."""
    k = te.reduce_axis((0, x.shape[-1]), name="k")
    own, others = list(x.shape[:-2]), list(w.shape[:-2])
    batch = _broadcast(own, others)
    rows = [x.shape[-2]] if len(x.shape) > 1 else []

    def element(*index: PrimExpr) -> PrimExpr:
        row = index[len(batch) : -1]
        left = x(*_places(own, index[: len(batch)]), *row, k)
        right = w(*_places(others, index[: len(batch)]), index[-1], k)
        return te.sum(cast(dtype, left) * cast(dtype, right), axis=k)

    return te.compute([*batch, *rows, w.shape[-2]], element, name="NT_matmul")


def _is_one(extent: PrimExpr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _broadcast(a: list[PrimExpr], b: list[PrimExpr]) -> list[PrimExpr]:
    short, long = sorted((a, b), key=len)
    new = len(long) - len(short)
    return [*long[:new], *(y if _is_one(x) else x for x, y in zip(short, long[new:], strict=True))]


def _places(shape: list[PrimExpr], index: tuple[PrimExpr, ...]) -> list[PrimExpr]:
    """The index of the element of a tensor that is broadcast."""
    own = index[len(index) - len(shape) :]
    zero = IntImm("int64", 0)
    return [zero if _is_one(n) else i for n, i in zip(shape, own, strict=True)]
