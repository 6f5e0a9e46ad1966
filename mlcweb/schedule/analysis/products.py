"""Blocks as products of arrays, whatever their iterators are: which of them choose rows, columns,
what is summed over, and which product of a batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.visitor import children
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.stmt import Block, BufferStore, IterVar, find_statements
from mlcweb.tir.substitute import variables_in


class Product(NamedTuple):
    """A block as a batch of products that an intrinsic computes tiles of.

    Attributes:
        batch: the other iterators, most of which choose a product.
        groups: the iterators that together are rows, columns, and what is summed over.
        axes: for what is written and each input of the intrinsic, which groups are its dimensions.
        tile: the extents of the intrinsic, of each group.
    """

    batch: list[IterVar]
    groups: list[list[IterVar]]
    axes: list[list[int]]
    tile: list[int]

    def index_map(
        self, block: Block, axes: Sequence[int], used: Collection[E.Var] | None = None
    ) -> IndexMap:
        """The iterators of the batch and of some groups, in the order of the block, to the batch
        and one index for each group. Only `used` are indices of the map; of the others those of
        groups are 0."""
        chosen = [*self.batch, *(each for axis in axes for each in self.groups[axis])]
        fresh: dict[IterVar, E.PrimExpr] = {}
        variables: list[E.Var] = []
        for each in block.iter_vars:
            if each in chosen and (used is None or each.var in used):
                variables.append(E.Var(each.var.name, each.var.dtype))
                fresh[each] = variables[-1]
            else:
                fresh[each] = const(0, each.var.dtype)
        fused = [_fused(self.groups[axis], fresh) for axis in axes]
        batch = [fresh[each] for each in self.batch if used is None or each.var in used]
        return IndexMap(tuple(variables), (*batch, *fused))


def _fused(group: Sequence[IterVar], variables: Mapping[IterVar, E.PrimExpr]) -> E.PrimExpr:
    """The index of a point among all of a group's, the last iterator fastest."""
    index: E.PrimExpr | None = None
    for position, each in enumerate(group):
        step = prod(constant_extent(inner) for inner in group[position + 1 :])
        variable = variables[each]
        if is_const_int(variable, 0) and len(group) > 1:
            continue
        term = variable if step == 1 else E.Mul(variable, const(step, variable.dtype))
        index = term if index is None else E.Add(index, term)
    return const(0, "int32") if index is None else index


def constant_extent(iter_var: IterVar) -> int:
    """How long an iterator is; 0 where that is not constant."""
    extent = iter_var.domain.extent
    return extent.value if isinstance(extent, E.IntImm) else 0


@dataclass(frozen=True, slots=True)
class _Accesses:
    """The variables in the indices of each access of an update, the written one first."""

    buffers: list[Buffer]
    variables: list[list[set[E.Var]]]

    def uses(self, var: E.Var) -> tuple[bool, ...]:
        """Which of the accesses depend on a variable."""
        return tuple(any(var in used for used in indices) for indices in self.variables)


def _update(block: Block) -> BufferStore | None:
    stores = list(find_statements(block.body, BufferStore))
    return stores[0] if len(stores) == 1 and block.body is stores[0] else None


def _same_form(ours: object, described: object, loads: list[tuple[Buffer, Buffer]]) -> bool:
    """Whether two expressions compute the same of their loads, which are added to `loads`."""
    if type(ours) is not type(described) or not isinstance(ours, E.PrimExpr):
        return False
    assert isinstance(described, E.PrimExpr)
    if ours.dtype != described.dtype:
        return False
    if isinstance(ours, E.BufferLoad) and isinstance(described, E.BufferLoad):
        loads.append((ours.buffer, described.buffer))
        return True
    ours_below, described_below = list(children(ours)), list(children(described))
    return len(ours_below) == len(described_below) > 0 and all(
        _same_form(one, other, loads)
        for one, other in zip(ours_below, described_below, strict=True)
    )


def _accesses(store: BufferStore, domains: Mapping[E.Var, Range]) -> _Accesses:
    """The accesses of an update, whose indices are simplified where they are more than a variable:
    that of a group of channels depends on no channel where there is one group, and a window of one
    row moves no row."""
    loads: list[E.BufferLoad] = []

    def collect(node: object) -> None:
        if isinstance(node, E.BufferLoad):
            loads.append(node)
        elif isinstance(node, E.PrimExpr):
            for child in children(node):
                collect(child)

    collect(store.value)
    analyzer = Analyzer(dict(domains))

    def simplified(index: E.PrimExpr) -> E.PrimExpr:
        return index if isinstance(index, E.Var) else analyzer.simplify(index)

    others = [load for load in loads if load.buffer is not store.buffer]
    return _Accesses(
        [store.buffer, *(load.buffer for load in others)],
        [[variables_in(simplified(index)) for index in each.indices] for each in (store, *others)],
    )


def computes_alike(block: Block, description: Block) -> bool:
    """Whether a block makes the same of its elements as the block of an intrinsic's description,
    whatever the iterators and indices of both are."""
    described = next(find_statements(description.body, Block))
    ours, theirs = _update(block), _update(described)
    if ours is None or theirs is None or len(block.writes) != 1:
        return False
    loads: list[tuple[Buffer, Buffer]] = [(ours.buffer, theirs.buffer)]
    return _same_form(ours.value, theirs.value, loads) and not any(
        (one is ours.buffer) is not (other is theirs.buffer) for one, other in loads
    )


def product_of(block: Block, description: Block) -> Product | None:
    """A block as the products whose tiles an intrinsic computes, by the block that describes it;
    None where it is none.

    An iterator belongs to that of the intrinsic which is of its type and used by the same arrays;
    all others are the batch.
    """
    described = next(find_statements(description.body, Block))
    ours, theirs = _update(block), _update(described)
    if ours is None or theirs is None or not computes_alike(block, description):
        return None
    accesses, pattern = _accesses(ours, block.domains), _accesses(theirs, described.domains)
    read = [region.buffer for region in block.reads if region.buffer is not ours.buffer]
    if read != accesses.buffers[1:]:
        return None
    batch: list[IterVar] = []
    groups: list[list[IterVar]] = [[] for _ in described.iter_vars]
    uses = [(pattern.uses(each.var), each.iter_type) for each in described.iter_vars]
    for each in block.iter_vars:
        use = accesses.uses(each.var)
        if not constant_extent(each):
            return None
        if (use, each.iter_type) in uses:
            groups[uses.index((use, each.iter_type))].append(each)
        else:
            batch.append(each)
    if not all(groups):
        return None
    variables = [each.var for each in described.iter_vars]
    axes = [[variables.index(used) for (used,) in indices] for indices in pattern.variables]
    return Product(batch, groups, axes, [constant_extent(each) for each in described.iter_vars])
