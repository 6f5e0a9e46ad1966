"""A block in loops, and what becomes of it when a new block is put around the loops.

Its iterators are divided between the new block (the loops outside) and the old one (the loops
inside), and its init stands apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mlcweb.analysis.access_regions import covering
from mlcweb.arith import Analyzer, conjuncts, same_expression
from mlcweb.arith.iter_expr import mark_to_expr
from mlcweb.arith.iter_map import detect_iter_map
from mlcweb.arith.subspace import subspace_divide
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.schedule.analysis.iteration_order import check_repeats_no_reduction, init_predicate
from mlcweb.schedule.analysis.regions import relaxed
from mlcweb.schedule.analysis.scopes import is_trivially_true, loop_ranges
from mlcweb.schedule.errors import BindingError, BlockKindError, LoopError
from mlcweb.schedule.rewriting.nests import in_fresh_loops, part_of_block
from mlcweb.schedule.state import block_realizes_below
from mlcweb.tir.arithmetic import const, is_const_int, logical_and, subtract
from mlcweb.tir.buffer import BufferRegion, Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, For, IterType, IterVar, Stmt
from mlcweb.tir.stmt import nest_at as loops_at
from mlcweb.tir.substitute import substitute, uses, variables_in


class Part(NamedTuple):
    """A value in [0, extent)."""

    value: PrimExpr
    extent: PrimExpr


class DividedIterator(NamedTuple):
    """The value of an iterator is `outer * extent of inner + inner + start`."""

    outer: Part
    inner: Part
    start: PrimExpr


class Division(NamedTuple):
    """All iterators of a block, and what its predicate says of either part."""

    iterators: list[DividedIterator]
    outer_predicate: PrimExpr
    inner_predicate: PrimExpr


def divide(
    realize: BlockRealize, outer: Sequence[For], inner: Sequence[For], keep_unit_loops: bool
) -> Division | None:
    """Divide the iterators of a block between the loops `outer` and `inner`; None where one cannot
    be divided.

    Bindings that are not affine are divided too, where each uses the loops of one side alone.
    """
    domains = loop_ranges((*outer, *inner))
    analyzer = Analyzer()
    bindings, predicate = realize.iter_values, realize.predicate
    iter_map = detect_iter_map(
        bindings, domains, predicate, simplify_trivial_iterators=not keep_unit_loops
    )
    subspace = subspace_divide(
        bindings,
        domains,
        {loop.loop_var for loop in inner},
        predicate,
        simplify_trivial_iterators=not keep_unit_loops,
    )
    # Values that step by another number than one, as `2 * i` and `4 - i` do, are not those of
    # `outer * extent + inner`.
    if (
        iter_map.indices is None
        or subspace is None
        or not all(
            is_const_int(scale, 1) for index in iter_map.indices for scale in index.terms.values()
        )
    ):
        return _divided_by_use(realize, outer, inner)
    iterators = []
    for index, (around, within) in zip(iter_map.indices, subspace.divisions, strict=True):
        values = [mark_to_expr(mark, analyzer) for mark in (around, within)]
        if not is_const_int(index.constant, 0):
            # The base stands in the inner part, or in the outer one where that is all there is.
            last = 1 if index.terms else 0
            values[last] = analyzer.simplify(subtract(values[last], index.constant))
        parts = Part(values[0], around.extent), Part(values[1], within.extent)
        iterators.append(DividedIterator(*parts, index.constant))
    division = Division(iterators, subspace.outer_predicate, subspace.inner_predicate)
    return _with_whole_predicate(division, realize, outer, inner)


def _with_whole_predicate(
    division: Division, realize: BlockRealize, outer: Sequence[For], inner: Sequence[For]
) -> Division | None:
    """The division with those conditions of the predicate that its own predicates do not say (the
    ends of iterators are upper limits); None where one is about both parts."""
    analyzer = Analyzer(loop_ranges((*outer, *inner)))
    units = {loop.loop_var: loop.min for loop in (*outer, *inner) if is_const_int(loop.extent, 1)}
    predicates: list[PrimExpr] = [const(True), const(True)]
    for side, predicate in enumerate((division.outer_predicate, division.inner_predicate)):
        for condition in conjuncts(predicate):
            if not _is_known(condition, predicates, analyzer):
                predicates[side] = logical_and(predicates[side], condition)
    sides = [{loop.loop_var for loop in loops} for loops in (outer, inner)]
    for condition in conjuncts(realize.predicate):
        if _is_known(condition, predicates, analyzer):
            continue
        used = variables_in(condition)
        if used & sides[0] and used & sides[1]:
            condition = analyzer.simplify(substitute(condition, units))
            used = variables_in(condition)
        if used & sides[0] and used & sides[1]:
            return None
        side = 1 if used & sides[1] else 0
        predicates[side] = logical_and(predicates[side], condition)
    return Division(division.iterators, *predicates)


def _is_known(condition: PrimExpr, predicates: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    """Whether a condition follows from predicates that hold."""
    goal = analyzer.simplify(condition)
    said = (part for predicate in predicates for part in conjuncts(predicate))
    if any(same_expression(analyzer.simplify(part), goal) for part in said):
        return True
    with analyzer.constraint(logical_and(*predicates)):
        return analyzer.can_prove(goal)


def _divided_by_use(
    realize: BlockRealize, outer: Sequence[For], inner: Sequence[For]
) -> Division | None:
    if not is_trivially_true(realize.predicate):
        return None
    around: set[Var] = {loop.loop_var for loop in outer}
    within: set[Var] = {loop.loop_var for loop in inner}
    iterators = []
    for iter_var, value in realize.iterators:
        used = variables_in(value)
        if used & around and used & within:
            return None
        if not is_const_int(iter_var.domain.min, 0):
            return None
        zero, one = const(0, value.dtype), const(1, value.dtype)
        whole, nothing = Part(value, iter_var.domain.extent), Part(zero, one)
        parts = (nothing, whole) if used & within else (whole, nothing)
        iterators.append(DividedIterator(*parts, zero))
    return Division(iterators, const(True), const(True))


class Nest(NamedTuple):
    """Loops around a block, with nothing else in them."""

    loops: tuple[For, ...]
    realize: BlockRealize

    @property
    def block(self) -> Block:
        return self.realize.block


def nest_at(statement: Stmt) -> Nest:
    """The nest that a statement is, checked to be fit for a block of its own."""
    loops, realize = loops_at(statement)
    if not isinstance(realize, BlockRealize):
        raise _not_a_nest(statement, loops)
    nest = Nest(tuple(loops), realize)
    for loop in loops:
        _check_loop(nest, loop)
    return nest


def _not_a_nest(statement: Stmt, loops: Sequence[For]) -> LoopError:
    realizes = list(block_realizes_below(statement))
    marked = loops[:1] or [statement]
    what = f'The loop "{loops[0].loop_var.name}"' if loops else "The statement"
    if len(realizes) != 1:
        names = ", ".join(f'"{realize.block.name_hint}"' for realize in realizes) or "none"
        return LoopError(
            f"{what} is required to have one block below it, but it has {len(realizes)} ({names})",
            [*marked, *realizes],
            "choose a loop around one block, or pass the blocks as a list",
        )
    return LoopError(
        f'{what} holds other statements beside the block "{realizes[0].block.name_hint}"',
        [*marked, *realizes],
        "choose a loop that holds nothing but loops and one block",
    )


def _check_loop(nest: Nest, loop: For) -> None:
    name, block = loop.loop_var.name, nest.block
    if uses(block, loop.loop_var):
        raise BindingError(
            f'The block "{block.name_hint}" uses the loop variable "{name}" itself, not by an '
            "iterator, so the new block could not tell which region it touches",
            [nest.realize, loop],
            f'bind an iterator of the block to "{name}"',
        )
    check_repeats_no_reduction(nest.realize, loop, "choose a loop inside of it")


def _check_bounds(nest: Nest, around: Sequence[For]) -> None:
    """Refuse bounds of the loops inside that other loops decide: axes have domains of their own,
    and the new block takes nothing from outside but by these."""
    if not nest.block.iter_vars:
        return
    loops = {loop.loop_var: loop for loop in (*around, *nest.loops)}
    for loop in nest.loops:
        for var in variables_in(loop.min, loop.extent) & loops.keys():
            raise LoopError(
                f'The bounds of loop "{loop.loop_var.name}" depend on the loop "{var.name}", and '
                "the domain of an axis cannot",
                [loop, loops[var]],
                "give the loop bounds of its own, and the block a predicate (T.where)",
            )


def divided(nest: Nest, around: Sequence[For], preserve_unit_iters: bool) -> Division:
    _check_bounds(nest, around)
    division = divide(nest.realize, around, nest.loops, preserve_unit_iters)
    if division is not None:
        return division
    inside = ", ".join(f'"{loop.loop_var.name}"' for loop in nest.loops)
    raise BindingError(
        f'The iterators of block "{nest.block.name_hint}" cannot be divided between the loops '
        f"outside and the loops inside of the new block ({inside})",
        [*nest.loops[:1], nest.realize],
        "split the loops so that factors divide extents, and reorder the inner parts to the inside",
    )


def outer_iterators(block: Block, division: Division) -> list[IterVar]:
    return [
        _over(iter_var, iterator.outer.extent, "_o")
        for iter_var, iterator in zip(block.iter_vars, division.iterators, strict=True)
    ]


def _over(iter_var: IterVar, extent: PrimExpr, suffix: str) -> IterVar:
    """An iterator of the same kind over [0, extent)."""
    var = Var(iter_var.var.name + suffix, iter_var.var.dtype)
    return replace(iter_var, dom=Range(const(0, extent.dtype), extent), var=var)


class InnerBlock(NamedTuple):
    """The block inside of the new one, as it was but for its iterators; its init for outside."""

    block: Block
    realize: BlockRealize
    init: Stmt | None

    def widened(self, regions: Sequence[BufferRegion]) -> list[BufferRegion]:
        """Regions over all iterations of the block."""
        domains = self.realize.block.domains
        analyzer = Analyzer(domains)

        def wide(region: BufferRegion) -> BufferRegion:
            box = relaxed(region.region, domains, analyzer)
            return covering(box, region.buffer, analyzer)

        return [wide(region) for region in regions]


def inner_block(
    nest: Nest, division: Division, outer: Sequence[Var], preserve_unit_iters: bool
) -> InnerBlock:
    iter_vars: list[IterVar] = []
    bindings: list[PrimExpr] = []
    values: dict[Var, PrimExpr] = {}
    for iter_var, iterator, around in zip(
        nest.block.iter_vars, division.iterators, outer, strict=True
    ):
        is_single = is_const_int(iterator.outer.extent, 1)
        if is_const_int(iterator.inner.extent, 1):
            value = const(0, around.dtype) if is_single and not preserve_unit_iters else around
        else:
            within = _over(iter_var, iterator.inner.extent, "_i")
            iter_vars.append(within)
            bindings.append(iterator.inner.value)
            value = within.var if is_single else around * iterator.inner.extent + within.var
        values[iter_var.var] = value + iterator.start
    domains = {i.var: i.domain for i in iter_vars}
    block: Block = _Rebinding(values, Analyzer(domains)).rewrite(nest.block)
    reads = block.reads
    if block.init is not None and any(
        i.iter_type == IterType.COMM_REDUCE for i in nest.block.iter_vars
    ):
        reads = (*block.writes, *reads)
    inside = replace(block, iter_vars=tuple(iter_vars), reads=reads, init=None)
    realize = replace(
        nest.realize, iter_values=tuple(bindings), predicate=division.inner_predicate, block=inside
    )
    init = None if block.init is None else _init_nest(block.init, realize, nest)
    return InnerBlock(block, realize, init)


class _Rebinding(Mutator):
    """Replaces iterators by expressions, and simplifies all expressions that change."""

    def __init__(self, values: Mapping[Var, PrimExpr], analyzer: Analyzer) -> None:
        self.values = values
        self.analyzer = analyzer

    def rewrite(self, node: Any) -> Any:
        new = super().rewrite(node)
        changed = new is not node and isinstance(new, PrimExpr) and not isinstance(node, Var)
        return self.analyzer.simplify(new) if changed else new

    @on(Var)
    def variable(self, var: Var) -> PrimExpr:
        return self.values.get(var, var)


def _init_nest(init: Stmt, inner: BlockRealize, nest: Nest) -> Stmt:
    """A block that sets the initial values, in loops of its own."""
    block = inner.block
    used = variables_in(init, *block.writes)
    bound: list[tuple[IterVar, PrimExpr]] = []
    for iter_var, value in inner.iterators:
        if iter_var.var not in used:
            continue
        if iter_var.iter_type != IterType.DATA_PARALLEL:
            raise BlockKindError(
                f'The init of block "{block.name_hint}" depends on the iterator '
                f'"{iter_var.var.name.removesuffix("_i")}", which is not spatial',
                [nest.realize],
                "decompose_reduction first",
            )
        bound.append((iter_var, value))
    values = [value for _, value in bound]
    iter_vars = [iter_var for iter_var, _ in bound]
    init_block = part_of_block(block, iter_vars, block.name_hint + "_init", init, "_init")
    predicate = init_predicate(nest.realize, inner.predicate, nest.loops, nest.loops, values)
    driving = [loop for loop in nest.loops if any(uses(v, loop.loop_var) for v in values)]
    return in_fresh_loops(BlockRealize(tuple(values), predicate, init_block), driving)
