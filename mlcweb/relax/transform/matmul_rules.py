"""Products of matrices in other orders: AdjustMatmulOrder, ExpandMatmulOfSum,
ReorderTakeAfterMatmul, ReorderPermuteDimsAfterConcat."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.op.elementwise import add
from mlcweb.relax.op.index import take
from mlcweb.relax.op.infer import op_of
from mlcweb.relax.op.joining import concat
from mlcweb.relax.op.linear_algebra import matmul
from mlcweb.relax.op.manipulate import permute_dims
from mlcweb.relax.transform.call_rules import Rewriting, rewriting_pass, static_shape, tensor

_MATMUL = "relax.matmul"


def AdjustMatmulOrder() -> Pass:
    """Compute `(a · b) · c` as `a · (b · c)`, or the other way round, where that takes fewer
    operations. Only products of known shapes without batches are moved."""
    return rewriting_pass("AdjustMatmulOrder", _order)


def _operations(left: list[int], right: list[int]) -> tuple[int, list[int]]:
    """The multiplications of a product, and the shape of its result."""
    rows, columns = left[:-1], right[1:]
    count = left[-1]
    for extent in (*rows, *columns):
        count *= extent
    return count, [*rows, *columns]


def _order(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != _MATMUL:
        return None
    first, last = call.args
    for inner, place in ((rewriting.called(first, _MATMUL), 0),
                         (rewriting.called(last, _MATMUL), 1)):  # fmt: skip
        if inner is None:
            continue
        a, b, c = (*inner.args, last) if place == 0 else (first, *inner.args)
        shapes = [shape for each in (a, b, c) if (shape := static_shape(each))]
        if len(shapes) < 3 or any(len(shape) > 2 for shape in shapes):
            continue
        costs = _costs(shapes)
        if costs is None:
            continue
        left, right = costs
        if place == 0 and right < left:
            return matmul(a, matmul(b, c, _dtype(inner)), _dtype(call))
        if place == 1 and left < right:
            return matmul(matmul(a, b, _dtype(inner)), c, _dtype(call))
    return None


def _costs(shapes: list[list[int]]) -> tuple[int, int] | None:
    """The operations of `(a · b) · c` and of `a · (b · c)`; None if one order has no meaning."""
    a, b, c = shapes
    if len(b) == 1:
        return None
    first, ab = _operations(a, b)
    second, _ = _operations(ab, c)
    third, bc = _operations(b, c)
    fourth, _ = _operations(a, bc)
    return first + second, third + fourth


def _dtype(call: E.Call) -> str | None:
    dtype = call.attrs["out_dtype"] if call.attrs else None
    return None if dtype in (None, "void", "") else dtype


def ExpandMatmulOfSum() -> Pass:
    """Compute `x · (a + b)` as `x · a + x · b`."""
    return rewriting_pass("ExpandMatmulOfSum", _of_sum)


def _of_sum(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    total = rewriting.called(call.args[1], "relax.add") if op_of(call).name == _MATMUL else None
    if total is None:
        return None
    infos = [tensor(arg) for arg in (*total.args, call.args[1])]
    if any(info is None or info.ndim != 2 for info in infos):
        return None  # a part that is broadcast is no matrix by itself
    parts = [matmul(call.args[0], arg, _dtype(call)) for arg in total.args]
    return add(*parts)


def ReorderTakeAfterMatmul() -> Pass:
    """Compute `x · take(weights, i, axis=1)` as `take(x · weights, i)`, where the weights have two
    dimensions and the indices one."""
    return rewriting_pass("ReorderTakeAfterMatmul", _take_after)


def _take_after(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != _MATMUL:
        return None
    taken, data = rewriting.called(call.args[1], "relax.take"), tensor(call.args[0])
    if taken is None or data is None or taken.attrs is None:
        return None
    weights, indices = taken.args
    infos = tensor(weights), tensor(indices)
    if infos[0] is None or infos[0].ndim != 2 or infos[1] is None or infos[1].ndim != 1:
        return None
    if taken.attrs["axis"] not in (1, -1):
        return None
    return take(matmul(call.args[0], weights, _dtype(call)), indices, data.ndim - 1)


def ReorderPermuteDimsAfterConcat() -> Pass:
    """Join tensors before their dimensions are permuted, all in the same way."""
    return rewriting_pass("ReorderPermuteDimsAfterConcat", _permute_after)


def _permute_after(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != "relax.concat" or call.attrs is None:
        return None
    parts = rewriting.bound_value(call.args[0])
    if not isinstance(parts, E.Tuple) or len(parts) < 2:
        return None
    permuted = [rewriting.called(part, "relax.permute_dims") for part in parts]
    transposes = [each for each in permuted if each is not None]
    if len(transposes) < len(permuted):
        return None
    orders = [each.attrs["axes"] if each.attrs else None for each in transposes]
    info = tensor(transposes[0].args[0])
    if info is None or any(order != orders[0] for order in orders):
        return None
    axis = (call.attrs["axis"] or 0) % info.ndim
    inside = info.ndim - 1 - axis if orders[0] is None else orders[0][axis] % info.ndim
    return permute_dims(concat([each.args[0] for each in transposes], inside), orders[0])
