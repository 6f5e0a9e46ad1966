"""Running sums and products: loops that TensorIR's blocks cannot divide among iterators; for GPUs
those of `parallel`."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.te.operation import extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from mlcweb.topi import parallel, shapes
from mlcweb.topi.transform import reshape


def _scan(
    name: str, combine: Callable[[PrimExpr, PrimExpr], PrimExpr], neutral: int
) -> Callable[..., Tensor]:
    def scan(
        data: Tensor,
        axis: int | None = None,
        dtype: str | None = None,
        exclusive: bool | None = None,
    ) -> Tensor:
        if axis is None:
            data, axis = reshape(data, (shapes.size(data.shape),)), 0
        place = shapes.axis_of(name, axis, data.ndim)
        element = dtype or data.dtype
        if parallel.is_targeted():
            return parallel.scan(data, place, element, bool(exclusive), neutral, f"{name}_generic")

        def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
            (source,), (result,) = inputs, outputs
            loops = [Var(f"i{i}", extent.dtype) for i, extent in enumerate(data.shape)]
            last: list[PrimExpr] = list(loops)
            last[place] = loops[place] - 1
            value = BufferLoad(source, tuple(last if exclusive else loops))
            now = arithmetic.cast(element, value)
            first = arithmetic.const(neutral, element) if exclusive else now
            chain = combine(BufferLoad(result, tuple(last)), now)
            statement: Stmt = IfThenElse(
                arithmetic.equal(loops[place], 0),
                BufferStore(result, first, tuple(loops)),
                BufferStore(result, chain, tuple(loops)),
            )
            for loop, extent in zip(reversed(loops), reversed(data.shape), strict=True):
                zero = arithmetic.const(0, extent.dtype)
                statement = For(loop, zero, extent, ForKind.SERIAL, statement)
            return statement

        return extern(data.shape, [data], body, f"{name}_generic", dtype=element)

    scan.__name__ = scan.__qualname__ = name
    scan.__doc__ = (
        "The results along an axis (of the flat tensor without one) of combining all elements up "
        "to each; without the element itself if `exclusive`."
    )
    return scan


cumsum = _scan("cumsum", arithmetic.add, 0)
cumprod = _scan("cumprod", arithmetic.multiply, 1)
