"""Sorting along an axis: a stable merge sort from the bottom up, of positions; for GPUs the ranks
of `parallel`.

NaN counts as greater than any number, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute, extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BufferStore, IfThenElse, Stmt, sequence
from mlcweb.topi import parallel, shapes
from mlcweb.topi.loops import loop
from mlcweb.topi.transform import index_type, moved

MAX_STEPS = 31
"""Doublings of sorted runs where the extent is symbolic."""


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "float32",
) -> Tensor:
    """The positions of the elements along an axis, in the order of their values; of equal ones the
    first comes first.

    Args:
        valid_count: how many elements of each line along the axis are sorted, of the shape without
            the axis; those behind them stay where they are. All, if None.
    """
    place = shapes.axis_of("argsort", axis, data.ndim)
    if valid_count is not None and valid_count.ndim != data.ndim - 1:
        raise DiagnosticError(
            f"argsort: valid_count {shapes.show(valid_count.shape)} is a number for each line of "
            f"{shapes.show(data.shape)} along axis {place}"
        )
    order = _order(data, place, bool(is_ascend), valid_count)
    return moved(data.shape, lambda *index: arithmetic.cast(dtype, order(*index)), "T_argsort")


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements along an axis in the order of their values."""
    place = shapes.axis_of("sort", axis, data.ndim)
    order = _order(data, place, bool(is_ascend))
    return moved(data.shape, _picked(data, order, place), "T_sort")


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Tensor | list[Tensor]:
    """The first `k` elements along an axis in descending order (`is_ascend`: ascending), and their
    positions; all of them where `k` is less than 1.

    Returns: a list of both; with `ret_type` "values" or "indices" one of them.
    """
    if ret_type not in ("both", "values", "indices"):
        raise DiagnosticError(f'topk: ret_type is "both", "values" or "indices", not {ret_type!r}')
    place = shapes.axis_of("topk", axis, data.ndim)
    order = _order(data, place, bool(is_ascend))
    shape = list(data.shape)
    if k >= 1:
        shape[place] = arithmetic.const(k, shape[place].dtype)
    results = []
    if ret_type in ("both", "values"):
        results.append(compute(shape, _picked(data, order, place), "T_topk"))
    if ret_type in ("both", "indices"):
        results.append(
            compute(shape, lambda *index: arithmetic.cast(dtype, order(*index)), "T_topk_indices")
        )
    return results if ret_type == "both" else results[0]


def searchsorted(
    sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64"
) -> Tensor:
    """Where in a sorted vector each value would be put: before those equal to it, or behind them if
    `right`. Of several vectors, along the last axis, each has its own values."""
    outer = sorted_sequence.shape[:-1]
    if outer and (
        len(outer) != values.ndim - 1 or not all(map(shapes.same_extent, outer, values.shape))
    ):
        raise DiagnosticError(
            f"searchsorted: {shapes.show(sorted_sequence.shape)} has no vector for each of the "
            f"values {shapes.show(values.shape)}: all dimensions but the last must be equal"
        )
    from mlcweb.tir import reducers
    from mlcweb.tir.reduction import reduce_axis

    k = reduce_axis((0, sorted_sequence.shape[-1]), "k")
    goes_before = arithmetic.less_equal if right else arithmetic.less

    def place(*index: PrimExpr) -> PrimExpr:
        before = goes_before(sorted_sequence(*index[: len(outer)], k.var), values(*index))
        return reducers.sum(arithmetic.cast(out_dtype, before), [k])

    return compute(values.shape, place, "T_searchsorted")


def _picked(data: Tensor, order: Tensor, place: int) -> Callable[..., PrimExpr]:
    def element(*index: PrimExpr) -> PrimExpr:
        position = arithmetic.cast(index_type(data), order(*index))
        return data(*index[:place], position, *index[place + 1 :])

    return element


def _order(data: Tensor, place: int, ascending: bool, counts: Tensor | None = None) -> Tensor:
    """Positions along an axis in the order of the elements there, of which the first `counts` are
    sorted."""
    extent = data.shape[place]
    kind = index_type(data)
    length = shapes.constant(extent)
    if parallel.is_targeted():
        return parallel.order(data, place, lambda a, b: _before(a, b, ascending), counts)

    def number(value: int) -> PrimExpr:
        return arithmetic.const(value, kind)

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        source, *counted = inputs
        order, spare, fronts = outputs
        outer = [Var(f"i{i}", n.dtype) for i, n in enumerate(data.shape)]

        def at(position: PrimExpr) -> tuple[PrimExpr, ...]:
            return (*outer[:place], position, *outer[place + 1 :])

        def comes_before(a: PrimExpr, b: PrimExpr) -> PrimExpr:
            """Whether an element comes before one that was before it."""
            a, b = (BufferLoad(order, at(position)) for position in (a, b))
            less = _before(BufferLoad(source, at(a)), BufferLoad(source, at(b)), ascending)
            for count in counted:
                line = outer[:place] + outer[place + 1 :]
                less = arithmetic.logical_and(a < BufferLoad(count, tuple(line)), less)
            return less

        fill, copy = outer[place], Var("c", kind)
        step, run, taken = Var("step", kind), Var("run", kind), Var("t", kind)
        width = arithmetic.shift_left(number(1), step)
        start = run * (width * 2)
        middle = arithmetic.minimum(start + width, extent)
        end = arithmetic.minimum(middle + width, extent)
        first, second = (BufferLoad(fronts, (number(side),)) for side in (0, 1))
        from_first = intrinsics.if_then_else(
            first >= middle,
            arithmetic.const(False),
            intrinsics.if_then_else(
                second >= end,
                arithmetic.const(True),
                arithmetic.logical_not(comes_before(second, first)),
            ),
        )
        target = at(start + taken)

        def take(side: int, front: PrimExpr) -> Stmt:
            return sequence(
                BufferStore(spare, BufferLoad(order, at(front)), target),
                BufferStore(fronts, front + 1, (number(side),)),
            )

        merge = sequence(
            BufferStore(fronts, start, (number(0),)),
            BufferStore(fronts, middle, (number(1),)),
            loop(
                taken,
                end - start,
                IfThenElse(from_first, take(0, first), take(1, second)),
            ),
        )
        runs = (extent + (width * 2 - 1)) // (width * 2)
        double: Stmt = sequence(
            loop(run, runs, merge),
            loop(copy, extent, BufferStore(order, BufferLoad(spare, at(copy)), at(copy))),
        )
        steps = MAX_STEPS if length is None else max(length - 1, 0).bit_length()
        if length is None:
            double = IfThenElse(width < extent, double)
        line = sequence(
            loop(fill, extent, BufferStore(order, fill, at(fill))),
            loop(step, number(steps), double),
        )
        for axis in reversed(range(data.ndim)):
            if axis != place:
                line = loop(outer[axis], data.shape[axis], line)
        return line

    every = [data.shape, data.shape, (arithmetic.const(2, kind),)]
    inputs = [data] if counts is None else [data, counts]
    return extern(every, inputs, body, "argsort", dtype=[kind] * 3)[0]


def _before(a: PrimExpr, b: PrimExpr, ascending: bool) -> PrimExpr:
    """Whether an element comes before another one."""
    if not ascending:
        a, b = b, a
    before = a < b
    if not dtypes.is_float(a.dtype):
        return before
    only_second = arithmetic.logical_and(
        arithmetic.logical_not(intrinsics.isnan(a)), intrinsics.isnan(b)
    )
    return arithmetic.logical_or(before, only_second)


__all__: Sequence[str] = ("argsort", "searchsorted", "sort", "topk")
