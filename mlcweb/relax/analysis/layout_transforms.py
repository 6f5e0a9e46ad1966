"""Which layouts of blocks and inputs fit other layouts of a function's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import walk
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BufferStore
from mlcweb.tir.substitute import substitute, variables_in

Axes: TypeAlias = "tuple[Var | None, ...]"
"""The iteration variable of each index of an access; None where it has none."""

Suggestion: TypeAlias = "dict[Block | Buffer, IndexMap]"


def suggest_layout_transforms(
    func: PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., object]]
) -> dict[Block, Suggestion]:
    """For each block that can follow other layouts of the results, how its iterations and the
    buffers that it accesses should lie.

    A block can whose only result is written at its own variables in order, if its iterations in the
    new order are all of them, each once. Buffers that it reads follow where they are read at one
    position, whose variables are in the order of the block's. An axis that a result has not stays
    where it is.

    Args:
        write_buffer_transforms: how the last parameters of the function lie, one map for each
            result.

    Raises: TVMError: a map takes more or fewer indices than its buffer has, or there are more maps
        than buffers.
    """
    buffers = func.parameter_buffers
    count = len(write_buffer_transforms)
    if count > len(buffers):
        raise TVMError(
            f"suggest_layout_transforms: {count} layouts are given, but the function has "
            f"{len(buffers)} buffer(s)"
        )
    dtype = next((extent.dtype for buffer in buffers for extent in buffer.shape), "int64")
    layouts: dict[Buffer, IndexMap] = {}
    for buffer, rule in zip(buffers[len(buffers) - count :], write_buffer_transforms, strict=True):
        layout = rule if isinstance(rule, IndexMap) else None
        layout = layout or IndexMap.from_func(rule, index_dtype=dtype)  # type: ignore[arg-type]
        if len(layout.initial_indices) != len(buffer.shape):
            raise TVMError(
                f"suggest_layout_transforms: {layout!r} takes {len(layout.initial_indices)} "
                f"indices, but {buffer.name} has {len(buffer.shape)}"
            )
        layouts[buffer] = layout
    blocks = [node for node in walk(func.body) if isinstance(node, Block) and node.iter_vars]
    suggestions = {block: _suggested(block, layouts) for block in reversed(blocks)}
    return {block: each for block, each in suggestions.items() if each}


def _suggested(block: Block, layouts: dict[Buffer, IndexMap]) -> Suggestion:
    """What a block should be like; `layouts` of buffers grow by those of its inputs."""
    variables = [axis.var for axis in block.iter_vars]
    nodes = list(walk(block))
    stores = [node for node in nodes if isinstance(node, BufferStore)]
    written = {store.buffer for store in stores}
    if len(written) != 1:
        return {}
    (result,) = written
    axes = _axes([store.indices for store in stores], variables)
    if result not in layouts or axes is None or None in axes:
        return {}
    whole = _carried(layouts[result], axes, variables)
    if whole is None:
        return {}
    try:
        whole.inverse([axis.dom for axis in block.iter_vars if axis.dom is not None])
    except IndexMapError:
        return {}
    suggestion: Suggestion = {block: whole, result: layouts[result]}
    reads: dict[Buffer, list[tuple[PrimExpr, ...]]] = {}
    for node in nodes:
        if isinstance(node, BufferLoad) and node.buffer is not result:
            reads.setdefault(node.buffer, []).append(node.indices)
    for buffer, positions in reads.items():
        read = _axes(positions, variables)
        layout = None if read is None else _carried(layouts[result], axes, read)
        if layout is not None:
            suggestion[buffer] = layouts.setdefault(buffer, layout)
    return suggestion


def _axes(positions: Sequence[tuple[PrimExpr, ...]], variables: Sequence[Var]) -> Axes | None:
    """The variables of accesses that are all at one position, in the order of the block's; None of
    others."""
    axes = {tuple(_variable(index, variables) for index in indices) for indices in positions}
    if len(axes) != 1:
        return None
    (only,) = axes
    places = [variables.index(var) for var in only if var is not None]
    return only if all(a < b for a, b in pairwise(places)) else None


def _variable(index: PrimExpr, variables: Sequence[Var]) -> Var | None:
    """The first of the block's variables that an index depends on."""
    used = variables_in(index)
    return next((var for var in variables if var in used), None)


def _carried(layout: IndexMap, axes: Axes, target: Sequence[Var | None]) -> IndexMap | None:
    """The layout of what has the axes `target`, as `layout` orders those of `axes`; None where it
    mixes an axis with one that the target has not."""
    own = dict(zip(axes, layout.initial_indices, strict=True))
    others = 0
    initial: list[Var] = []
    for var in target:
        if var is None or var not in own:
            initial.append(Var(f"d_{others}" if others else "d", layout.initial_indices[0].dtype))
            others += 1
        else:
            initial.append(Var(own[var].name, own[var].dtype))
    here = {own[v]: new for v, new in zip(target, initial, strict=True) if v in own}
    final: list[PrimExpr] = []
    for index in layout.final_indices:
        used = variables_in(index) & set(layout.initial_indices)
        if used and used <= here.keys():
            final.append(substitute(index, here))
        elif used & here.keys():
            return None
    for place, (var, new) in enumerate(zip(target, initial, strict=True)):
        if var not in own:
            final.insert(place, new)
    return IndexMap(tuple(initial), tuple(final))
