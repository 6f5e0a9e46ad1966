"""Operators that put elements by index.

An index out of range fails the kernel's assertion: without it, it would write into other arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute, extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, StringImm, Var
from mlcweb.tir.stmt import AssertStmt, BufferStore, For, ForKind, Stmt, sequence
from mlcweb.topi import shapes
from mlcweb.topi.index import from_end
from mlcweb.topi.shapes import Extent
from mlcweb.topi.transform import index_type

_REDUCTIONS: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    "update": lambda old, new: new,
    "add": arithmetic.add,
    "mul": arithmetic.multiply,
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
    "mean": lambda old, new: (old + new) / arithmetic.const(2, old.dtype),
}


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """`data` with out[indices[i][j]][j] combined with updates[i][j], for axis 0, and so on.

    `reduction` is "update", "add", "mul", "min", "max", or "mean" of floats, of the
    value so far and the next one. Negative indices count from the end.
    """
    place = shapes.axis_of("scatter_elements", axis, data.ndim)

    def where(chosen: Buffer, loops: Sequence[PrimExpr]) -> list[PrimExpr]:
        position = list(loops)
        position[place] = from_end(BufferLoad(chosen, tuple(loops)), data.shape[place])
        return position

    return _scattered("scatter_elements", data, indices, updates, indices.shape, where, reduction)


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """`data` with the slices at the positions that the first axis of `indices` holds combined with
    `updates`: out[indices[0, y], …, indices[m - 1, y], z] with updates[y, z]."""
    count = shapes.constant(indices.shape[0])
    if count is None or count > data.ndim:
        raise DiagnosticError(
            f"scatter_nd: indices {shapes.show(indices.shape)} name their first dimension's number "
            f"of axes of {shapes.show(data.shape)}"
        )
    rank = indices.ndim - 1

    def where(chosen: Buffer, loops: Sequence[PrimExpr]) -> list[PrimExpr]:
        parts = [(arithmetic.const(i, index_type(indices)), *loops[:rank]) for i in range(count)]
        position = [
            from_end(BufferLoad(chosen, part), data.shape[i]) for i, part in enumerate(parts)
        ]
        return [*position, *loops[rank:]]

    return _scattered("scatter_nd", data, indices, updates, updates.shape, where, mode)


def _scattered(
    name: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    shape: Sequence[PrimExpr],
    where: Callable[[Buffer, Sequence[PrimExpr]], list[PrimExpr]],
    reduction: str,
) -> Tensor:
    """A copy of `data`, and for each element of `shape` one update at the position `where`. Where
    several updates meet, the last one counts."""
    combine = _REDUCTIONS.get(reduction)
    if combine is None:
        raise DiagnosticError(
            f'{name}: there is no reduction "{reduction}", but {", ".join(_REDUCTIONS)}'
        )

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        source, chosen, new = inputs
        (result,) = outputs
        loops = [Var(f"i{i}", extent.dtype) for i, extent in enumerate(data.shape)]
        copy = BufferStore(result, BufferLoad(source, tuple(loops)), tuple(loops))
        steps = [Var(f"j{i}", extent.dtype) for i, extent in enumerate(shape)]
        position = tuple(where(chosen, steps))
        value = combine(BufferLoad(result, position), BufferLoad(new, tuple(steps)))
        return sequence(
            _nested(loops, data.shape, copy),
            _nested(steps, shape, _store(name, result, value, position)),
        )

    return extern(data.shape, [data, indices, updates], body, f"{name}_generic", dtype=data.dtype)


def _store(name: str, result: Buffer, value: PrimExpr, position: Sequence[PrimExpr]) -> Stmt:
    """A store whose position must be in `result`, as loops are by themselves."""
    store: Stmt = BufferStore(result, value, tuple(position))
    for axis, (index, extent) in enumerate(zip(position, result.shape, strict=True)):
        if isinstance(index, Var):
            continue
        above = index >= arithmetic.const(0, index.dtype)
        below = index < arithmetic.cast(index.dtype, extent)
        message = f"{name}: an index is out of range in axis {axis}, which has extent {extent}"
        store = AssertStmt(arithmetic.logical_and(above, below), StringImm(message), store)
    return store


def _nested(loops: Sequence[Var], extents: Sequence[PrimExpr], body: Stmt) -> Stmt:
    for loop, extent in zip(reversed(loops), reversed(extents), strict=True):
        body = For(loop, arithmetic.const(0, extent.dtype), extent, ForKind.SERIAL, body)
    return body


def index_put(
    data: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`data` with `data[indices] = values`, or added if `accumulate`; `indices` are tensors of
    integers for the first axes. All are broadcast as NumPy does it."""
    where = shapes.broadcast("index_put", *(one.shape for one in indices))
    rank = len(where)
    shape = [*where, *data.shape[len(indices) :]]

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        source, new, *chosen = inputs
        (result,) = outputs
        loops = [Var(f"i{i}", extent.dtype) for i, extent in enumerate(data.shape)]
        copy = BufferStore(result, BufferLoad(source, tuple(loops)), tuple(loops))
        steps = [Var(f"j{i}", extent.dtype) for i, extent in enumerate(shape)]
        place: list[PrimExpr] = []
        for axis, one in enumerate(chosen):
            at = shapes.broadcast_index(indices[axis].shape, steps[:rank], where)
            place.append(from_end(BufferLoad(one, tuple(at)), data.shape[axis]))
        position = (*place, *steps[rank:])
        from_new = shapes.broadcast_index(values.shape, steps, shape)
        value: PrimExpr = BufferLoad(new, tuple(from_new))
        if accumulate:
            value = BufferLoad(result, position) + value
        return sequence(
            _nested(loops, data.shape, copy),
            _nested(steps, shape, _store("index_put", result, value, position)),
        )

    return extern(data.shape, [data, values, *indices], body, "index_put", dtype=data.dtype)


def slice_scatter(
    input_tensor: Tensor,
    src: Tensor,
    start: Extent,
    end: Extent,
    step: Extent,
    axis: int = 0,
) -> Tensor:
    """`input_tensor` with the slices start, start + step, … before end along an axis taken from
    `src`. Positions count as in a slice of Python."""
    place = shapes.axis_of("slice_scatter", axis, input_tensor.ndim)
    low, _ = shapes.slice_range(input_tensor.shape[place], start, end, step)

    def element(*index: PrimExpr) -> PrimExpr:
        away = index[place] - low
        number = away // step
        met = arithmetic.logical_and(
            arithmetic.equal(number * step, away),
            arithmetic.logical_and(
                number >= 0,
                number < src.shape[place],
            ),
        )
        taken = src(*index[:place], number, *index[place + 1 :])
        return intrinsics.if_then_else(met, taken, input_tensor(*index))

    return compute(input_tensor.shape, element, "T_slice_scatter")
