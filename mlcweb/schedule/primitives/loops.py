"""Loop transformations: split, fuse, reorder. They change the order and shape of the iteration
space, never which iterations run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from operator import mul

from mlcweb.arith import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.iter_map import iter_map_simplify
from mlcweb.arith.rules_integer import factors
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import rewrite_nodes, walk
from mlcweb.schedule.analysis.dependences import check_keeps_order
from mlcweb.schedule.analysis.iteration_order import (
    check_driven_affine,
    check_init_stays_first,
    check_iterators_reorderable,
    check_own_predicate,
)
from mlcweb.schedule.analysis.scopes import effects_below, loop_ranges
from mlcweb.schedule.arguments import Factors
from mlcweb.schedule.errors import ArgumentError, FactorError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import in_loops, with_predicate
from mlcweb.schedule.state import (
    LoopPlace,
    ScheduleState,
    substatements,
    with_substatements,
)  # fmt: skip
from mlcweb.tir import arithmetic
from mlcweb.tir.arithmetic import cast, const, constant_value, floordiv, floormod, is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.dtype import bits, max_value
from mlcweb.tir.expr import Add, Call, FloorDiv, IntImm, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import BlockRealize, For, ForKind, Stmt
from mlcweb.tir.substitute import substitute, variables_in


@primitive("Split", booleans_as_integers=False)
def split(
    state: ScheduleState,
    loop: Var,
    factors: Factors,
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
) -> tuple[ScheduleState, list[Var]]:
    """Split a loop into nested loops of the extents `factors`; one may be None (inferred).

    Checked: the loop starts at 0 and has no annotation or thread binding; at most one factor is
    None; the factors cover the extent. Where they cover more, blocks get a predicate.

    rewrite:
        for i in range(30): ...            -->    for i_0, i_1 in T.grid(4, 8): ...
                                                  (with T.where(i_0 * 8 + i_1 < 30))
    """
    place = state.loop(loop)
    old = place.loop
    check_plain(place)
    analyzer = Analyzer(loop_ranges((*place.loops, old)))
    extents = _infer_factors(old, factors, analyzer)
    new_vars = [Var(f"{loop.name}_{n}", loop.dtype) for n in range(len(extents))]
    for var, extent in zip(new_vars, extents, strict=True):
        analyzer.bind(var, Range(const(0, loop.dtype), extent))
    index: PrimExpr = const(0, loop.dtype)
    for var, extent in zip(new_vars, extents, strict=True):
        index = index * extent + var
    body: Stmt = substitute(old.body, {loop: index})
    if not disable_predication and not analyzer.can_prove(index < old.extent):
        body = with_predicate(body, index < old.extent)
    for var, extent in zip(reversed(new_vars), reversed(extents), strict=True):
        body = For(var, const(0, loop.dtype), extent, ForKind.SERIAL, body, span=old.span)
    new = simplify_bindings(body, place, preserve_unit_iters)
    return state.replaced(place.function, {old: new}), new_vars


@primitive("Fuse")
def fuse(
    state: ScheduleState, *loops: Var, preserve_unit_iters: bool = True
) -> tuple[ScheduleState, Var]:
    """Fuse nested loops into one.

    Checked: each loop is the only statement in the one before; all start at 0, have no annotation
    or thread binding, and no extent depends on another of the loops. The product of the extents
    fits the type of the loop variables; of symbolic ones, where a parameter has as many elements.

    rewrite:
        for i, j in T.grid(4, 8): ...      -->    for i_j_fused in range(32): ...
    """
    if not loops:
        raise ArgumentError("There are no loops to fuse", advice="pass at least one loop")
    places = [state.loop(loop) for loop in loops]
    for place in places:
        check_plain(place)
    for outer, inner in pairwise(places):
        _check_only_child(outer, inner)
    for place in places:
        others = set(loops) - {place.loop.loop_var}
        if variables_in(place.loop.extent) & others:
            raise LoopError(
                f'The extent of loop "{place.loop.loop_var.name}" depends on another loop to fuse',
                [place.loop],
                "fuse loops whose extents do not depend on each other",
            )
    extents = [constant_value(place.loop.extent) for place in places]
    _check_extent_fits([place.loop for place in places], [n for n in extents if isinstance(n, int)])
    if None in extents:
        _check_symbolic_fits(state.function(places[0].function), places)
    first = places[0]
    name = "_".join(loop.name for loop in loops) + "_fused"
    fused = Var(name, _widest(place.loop for place in places))
    values: dict[Var, PrimExpr] = {}
    total: PrimExpr = const(1, fused.dtype)
    for place in reversed(places):
        covered = place.loop.extent * total
        if is_const_int(place.loop.extent, 1):
            value = const(0, fused.dtype)
        elif place is first:
            value = floordiv(fused, total)
        else:
            value = floordiv(floormod(fused, covered), total)
        values[place.loop.loop_var] = cast(place.loop.loop_var.dtype, value)
        total = covered
    iterations = reduce(mul, (place.loop.extent for place in places))
    extent = Analyzer(loop_ranges(first.loops)).simplify(iterations)
    body = substitute(places[-1].loop.body, values)
    loop = For(fused, const(0, fused.dtype), extent, ForKind.SERIAL, body, span=first.loop.span)
    new = simplify_bindings(loop, first, preserve_unit_iters)
    return state.replaced(first.function, {first.loop: new}), fused


@primitive("Reorder")
def reorder(state: ScheduleState, *ordered_loops: Var) -> ScheduleState:
    """Put nested loops into the given order; loops between them that are not named stay in place.

    Checked: the loops are in one chain without other statements between; the blocks below have
    spatial and reduction iterators, and those that these loops drive are bound one to one; no
    extent uses a loop that comes to stand inside of it; the init of a reduction still runs before
    its first update; iterations that depend on each other stay in order.

    rewrite:
        for i, j, k in T.grid(…): ...      -->    for j, i, k in T.grid(…): ...
    """
    loops = ordered_loops
    if len(set(loops)) != len(loops):
        twice = next(loop for n, loop in enumerate(loops) if loop in loops[:n])
        raise LoopError(
            f'The loop "{twice.name}" appears twice in the new order',
            [state.loop(twice).loop],
            "name each loop once",
        )
    places = {loop: state.loop(loop) for loop in loops}
    if len(loops) <= 1:
        return state
    chain = _chain(list(places.values()))
    order = iter(loops)
    new_order = [places[next(order)].loop if loop.loop_var in places else loop for loop in chain]
    place = places[chain[0].loop_var]
    below = effects_below(state, place)
    for inner in below.children:
        check_own_predicate(inner)
        check_iterators_reorderable(inner.realize)
        old_order = [loop.loop_var for loop in chain]
        check_driven_affine(state, inner, old_order)
        check_init_stays_first(state, inner, old_order, new_order)
    inside: set[Var] = set()
    for loop in reversed(new_order):
        inside.add(loop.loop_var)
        if variables_in(loop.min, loop.extent) & inside:
            raise LoopError(
                f'The domain of loop "{loop.loop_var.name}" depends on a loop that would come to '
                "stand inside of it",
                [loop],
                "keep the loop inside of those that its domain depends on",
            )
    check_keeps_order(state, below, chain, new_order)
    return state.replaced(place.function, {chain[0]: in_loops(chain[-1].body, new_order)})


def check_plain(place: LoopPlace) -> None:
    """Raise LoopError where a loop is annotated, or does not start at 0."""
    loop = place.loop
    check_unannotated(loop)
    if not is_const_int(loop.min, 0):
        raise LoopError(
            f'The loop "{loop.loop_var.name}" starts at {loop.min!r}; only loops that start at 0 '
            "can be split or fused",
            [loop],
            "a loop `for i in range(n)` that adds the start to its index",
        )


def check_unannotated(loop: For) -> None:
    """Raise LoopError where a loop has an annotation or a thread, which a new loop would lose."""
    if loop.annotations or loop.thread_binding is not None:
        what = "an annotation" if loop.annotations else "a thread binding"
        raise LoopError(
            f'The loop "{loop.loop_var.name}" has {what}, which a new loop could not keep',
            [loop],
            "change loops first, then annotate and bind",
        )


def _infer_factors(
    loop: For, factors: Sequence[PrimExpr | int | None], analyzer: Analyzer
) -> list[PrimExpr]:
    name, dtype = loop.loop_var.name, loop.loop_var.dtype
    unknown = [n for n, factor in enumerate(factors) if factor is None or factor == -1]
    if not factors:
        raise FactorError(
            f'There are no factors to split loop "{name}" by',
            [loop],
            "two factors or more, one of which may be None",
        )
    numbers = [constant_value(factor) for factor in factors]
    constants = [
        number for n, number in enumerate(numbers) if n not in unknown and number is not None
    ]
    check_factors(loop, constants, unknown)
    _check_extent_fits([loop], [n for n in constants if isinstance(n, int)], bool(unknown))
    extents: list[PrimExpr] = []
    product: PrimExpr = const(1, dtype)
    for n, factor in enumerate(factors):
        extents.append(arithmetic.cast(dtype, -1 if factor is None else factor))
        if n not in unknown:
            product = product * extents[n]
    if unknown:
        extent, covered = constant_value(loop.extent), constant_value(product)
        if isinstance(extent, int) and isinstance(covered, int):
            extents[unknown[0]] = const(-(-extent // covered), dtype)
        else:
            inferred = floordiv(loop.extent + product - 1, product)
            extents[unknown[0]] = analyzer.simplify(inferred)
    elif not _surely_covers(loop.extent, product, analyzer):
        raise FactorError(
            f"The product {product!r} of the factors does not cover the extent {loop.extent!r} of "
            f'loop "{name}"',
            [loop],
            f"factors with a product of at least {loop.extent!r}, or None for one of them",
        )
    return extents


_VECTOR_LENGTHS = range(1, 17)
"""What T.vscale() may be: by how much vectors of a machine are longer than its shortest ones."""


def _surely_covers(extent: PrimExpr, product: PrimExpr, analyzer: Analyzer) -> bool:
    condition = extent <= product
    if not any(operator_name(node) == "vscale" for node in walk(condition)):
        return analyzer.can_prove(condition)

    def holds(length: int) -> bool:
        def known(call: Call) -> PrimExpr:
            return const(length, call.dtype) if operator_name(call) == "vscale" else call

        return analyzer.can_prove(rewrite_nodes(condition, Call, known))

    return all(map(holds, _VECTOR_LENGTHS))


def check_factors(loop: For, known: Sequence[int | float], unknown: Sequence[int]) -> None:
    """Raise FactorError where several factors of a loop are to be inferred, those at the positions
    `unknown`, or one that is known is not positive."""
    if len(unknown) > 1:
        raise FactorError(
            "Only one factor can be specified as -1 or None",
            [loop],
            "give all factors but one; the last is inferred from the extent",
        )
    for number in known:
        if number <= 0:
            name = loop.loop_var.name
            raise FactorError(
                f'The factor {number} for loop "{name}" is not positive', [loop], "factors >= 1"
            )


def _check_extent_fits(
    loops: Sequence[For], numbers: Sequence[int], with_inferred: bool = False
) -> None:
    """The product of the extents of new loops has to fit their type: indices run as far. One more
    extent may be inferred, so that the product covers that of the first loop."""
    first, total = loops[0], prod(numbers)
    extent = constant_value(first.extent)
    if with_inferred and isinstance(extent, int):
        total = -(-extent // total) * total
    dtype = _widest(loops)
    if total > max_value(dtype):
        names = ", ".join(f'"{loop.loop_var.name}"' for loop in loops)
        raise FactorError(
            f"The product {total} of the extents in place of the loop {names} does not fit "
            f"{dtype}, the type of the loop variables",
            loops,
            f"extents with a product of at most {max_value(dtype)}, or loops of int64",
        )


def _widest(loops: Iterable[For]) -> str:
    """The type among those of loop variables that all values of the others fit."""
    return max((loop.loop_var.dtype for loop in loops), key=bits)


def _check_symbolic_fits(function: PrimFunc, places: Sequence[LoopPlace]) -> None:
    """Raise FactorError where a product of symbolic extents may not fit int32. Arrays of as many
    elements as that counts are refused, so a product that a parameter's shape has does fit."""
    loops = [place.loop for place in places]
    dtype = _widest(loops)
    analyzer = Analyzer(places[0].domains_around)
    bounds = [analyzer.const_int_bound(loop.extent).max_value for loop in loops]
    if prod(max(bound, 0) for bound in bounds) <= max_value(dtype):
        return
    covering = [factor for loop in loops for factor in _covering_factors(loop.extent)]
    size, symbols = _constant_and_symbols(covering)
    if max_value(dtype) >= max_value("int64") or len(symbols) + (size > 1) <= 1:
        return
    for buffer in function.buffer_map.values():
        elements, dimensions = _constant_and_symbols(buffer.shape)
        for symbol in symbols:
            match = next((d for d in dimensions if same_expression(d, symbol)), None)
            if match is None:
                break
            dimensions.remove(match)
        else:
            if size <= elements:
                return
    names = ", ".join(f'"{loop.loop_var.name}"' for loop in loops)
    total = " * ".join(f"{loop.extent!r}" for loop in loops)
    raise FactorError(
        f"The product {total} of the extents of the loops {names} may exceed {dtype}, the type of "
        "the loop variables: no parameter is known to have as many elements",
        loops,
        "fewer loops, or extents of int64",
    )


def _covering_factors(extent: PrimExpr) -> list[PrimExpr]:
    """Factors whose product is not less than an extent: a (rounded up) quotient is not longer than
    what it divides."""
    if isinstance(extent, FloorDiv) and isinstance(extent.b, IntImm):
        divided = extent.a
        if isinstance(divided, Add) and isinstance(divided.b, IntImm):
            if 0 <= divided.b.value < extent.b.value:
                divided = divided.a
        return list(factors(divided))
    return list(factors(extent))


def _constant_and_symbols(extents: Sequence[PrimExpr]) -> tuple[int, list[PrimExpr]]:
    """The product of the constants, and the others."""
    constants = [extent.value for extent in extents if isinstance(extent, IntImm)]
    return prod(constants), [extent for extent in extents if not isinstance(extent, IntImm)]


def simplify_bindings(statement: Stmt, place: LoopPlace, preserve_unit_iters: bool) -> Stmt:
    """`statement`, which stands at `place`, with the block bindings in it in normal form."""

    def visit(current: Stmt, ranges: dict[Var, Range]) -> Stmt:
        if isinstance(current, BlockRealize):
            values = current.iter_values
            if not values:
                block = current.block
                changed = with_substatements(block, {block.body: visit(block.body, ranges)})
                return with_substatements(current, {block: changed})
            simplified = iter_map_simplify(
                values,
                ranges,
                predicate=current.predicate,
                check_level="surjective",
                simplify_trivial_iterators=not preserve_unit_iters,
            )
            if all(a is b for a, b in zip(values, simplified, strict=True)):
                return current
            return replace(current, iter_values=tuple(simplified))
        if isinstance(current, For):
            ranges = {**ranges, current.loop_var: current.domain}
        changes = {below: visit(below, ranges) for below in substatements(current)}
        return with_substatements(current, changes)

    return visit(statement, loop_ranges(place.loops))


def _check_only_child(outer: LoopPlace, inner: LoopPlace) -> None:
    if outer.loop.body is inner.loop:
        return
    names = f'"{inner.loop.loop_var.name}"', f'"{outer.loop.loop_var.name}"'
    marked = [outer.loop, inner.loop]
    if any(parent is outer.loop for parent in inner.parents):
        raise LoopError(
            f"The loops cannot be fused: the inner loop {names[0]} is not the only statement in "
            f"the loop {names[1]}",
            marked,
            "fuse loops that hold nothing but each other; move the other statements first",
        )
    raise LoopError(
        f"The loops cannot be fused: the loop {names[1]} is not around the loop {names[0]}",
        marked,
        "name the loops from the outermost to the innermost, without gaps",
    )


def _chain(places: list[LoopPlace]) -> list[For]:
    """The loops from the outermost to the innermost of `places`, each the only statement in the
    one before."""
    innermost = max(places, key=lambda place: len(place.parents))
    around = (*innermost.parents, innermost.loop)
    for place in places:
        if not any(parent is place.loop for parent in around):
            raise LoopError(
                f'The loops are not in a chain: "{place.loop.loop_var.name}" is not around '
                f'"{innermost.loop.loop_var.name}"',
                [place.loop, innermost.loop],
                "reorder loops of one nest; use compute_at to bring blocks into one nest",
            )
    first = min(places, key=lambda place: len(place.parents))
    chain = around[len(first.parents) :]
    for loop, statement in pairwise(chain):
        if not isinstance(statement, For):
            raise LoopError(
                "The loops are not in a chain: there are other statements, or a block, between "
                f'"{first.loop.loop_var.name}" and "{innermost.loop.loop_var.name}"',
                [loop],
                "reorder loops that hold nothing but each other",
            )
    return [statement for statement in chain if isinstance(statement, For)]
