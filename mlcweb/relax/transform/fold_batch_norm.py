"""FoldBatchnormToConv2D: normalisation behind a convolution as another weight and a bias."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import mutator
from mlcweb.relax.op.elementwise import sqrt
from mlcweb.relax.op.infer import attribute
from mlcweb.relax.op.manipulate import reshape
from mlcweb.relax.transform.call_rules import Rewriting, tensor
from mlcweb.relax.transform.registration import pruned, unfused_pass


def FoldBatchnormToConv2D() -> Pass:
    """Compute `batch_norm(conv2d(x, weight), …)[0]` as a convolution by a scaled weight and an
    addition, where weight and statistics are constants. The arithmetic on constants that this
    leaves is done by FoldConstant.

    In training, where `batch_norm` normalises by what it is given, nothing is folded.
    """

    def change(func: E.Function, mod: IRModule) -> E.Function:
        return pruned(func, _Folding(mod, lambda call, rewriting: None), mod)

    return unfused_pass("FoldBatchnormToConv2D", change)


@mutator
class _Folding(Rewriting):
    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        new = super().visit_tuple_getitem_(value)
        if not isinstance(new, E.TupleGetItem) or new.index != 0:
            return new
        norm = self.called(new.tuple_value, "relax.nn.batch_norm")
        conv = None if norm is None else self.called(norm.args[0], "relax.nn.conv2d")
        if norm is None or conv is None:
            return new
        return self.folded(norm, conv) or new

    def folded(self, norm: E.Call, conv: E.Call) -> E.Value | None:
        weight, result = tensor(conv.args[1]), tensor(norm.args[0])
        constant = [isinstance(part, E.Constant) for part in (conv.args[1], *norm.args[1:])]
        if norm.attrs is None or conv.attrs is None or weight is None or result is None:
            return None
        channel = norm.attrs["axis"] % result.ndim
        if not all(constant) or norm.attrs["training"] or weight.values is None:
            return None
        if conv.attrs["out_layout"].index("C") != channel or weight.dtype != result.dtype:
            return None
        filters = conv.attrs["kernel_layout"].index("O")
        count = weight.values[filters]
        factor = self.builder_.emit(_factor(norm, weight.dtype))
        moved = norm.args[3] * factor
        bias = norm.args[2] - moved if norm.attrs["center"] else -moved
        shape = [count if axis == filters else 1 for axis in range(4)]
        scaled = conv.args[1] * reshape(factor, shape)
        product = E.Call(conv.op, (conv.args[0], scaled), conv.attrs, conv.sinfo_args)
        along = [count if axis == channel else 1 for axis in range(4)]
        return product + reshape(bias, along)


def _factor(norm: E.Call, dtype: str) -> E.Expr:
    """What a normalisation multiplies each channel by."""
    gamma, spread = norm.args[1], norm.args[4]
    epsilon = E.const(float(attribute(norm, "epsilon")), dtype)
    numerator = gamma if attribute(norm, "scale") else E.const(1.0, dtype)
    return numerator / sqrt(spread + epsilon)
