"""Dependences that loops carry: two iterations touch one element, which one of them writes.

A dependence is tested by its distances (`distances.py`): their signs say whether a new order of the
loops turns it around.

Two things that look like dependences are none. Iterations of a block in which its spatial iterators
have the same values compute the same elements: the types of the iterators say that their order does
not matter. And a read of what the same iteration has surely written before (as compute_at leaves
it) sees that value, whatever other iterations write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from mlcweb.analysis.access_regions import element_region
from mlcweb.analysis.effects import exposed_reads, uses_addresses
from mlcweb.arith.equality import same_expression
from mlcweb.arith.iter_map import BIJECTIVE, is_iter_map
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.distances import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    Access,
    Signs,
    distances_of,
    possible_signs,
    reversals,
)
from mlcweb.schedule.analysis.effects import have_run, must_write
from mlcweb.schedule.analysis.regions import regions_of, touched
from mlcweb.schedule.analysis.scopes import (
    Scope,
    driving_variables,
    effects_below,
    runs_one_to_one,
)  # fmt: skip
from mlcweb.schedule.analysis.units import RawPlace, guards, stands_in
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.state import BlockPlace, ScheduleState, shared_prefix
from mlcweb.tir.arithmetic import constant_value, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion
from mlcweb.tir.expr import FloorDiv, FloorMod, PrimExpr, Ramp, Var
from mlcweb.tir.stmt import Block, BufferStore, For, IterType, LetStmt, defined_variables
from mlcweb.tir.substitute import uses, uses_any, variables_in


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two accesses of one element, the first one's unit earlier in the program, and by how many
    iterations of each loop the second access is later (None: several numbers)."""

    first: Access
    second: Access
    distances: tuple[int | None, ...]


def find_dependence(
    state: ScheduleState,
    below: Scope,
    chain: Sequence[For],
    signs: Sequence[Signs],
    at_once: bool = False,
) -> Dependence | None:
    """A dependence between units of `below` with one of some signs of distances over the loops of a
    chain; None where there is none. `at_once` says that iterations do not only change places."""
    analysis = _Analysis(state, below, tuple(chain), at_once)
    for first, second in _pairs(below):
        possible = possible_signs(first, second, chain, signs)
        if not possible:
            continue
        distinct = analysis.distinct(first, second)
        if distinct is not None and _are_told_apart(distinct, first, second):
            continue
        distances = distances_of(first, second, chain, possible, distinct, below.leaves)
        if distances is not None and not analysis.is_overwritten(first, second):
            return Dependence(first, second, distances)
    return None


def _pairs(below: Scope) -> Iterator[tuple[Access, Access]]:
    """The accesses that may depend on each other, in program order."""
    for buffer, writers in below.writers.items():
        readers = below.readers.get(buffer, ())
        users = {place.block.identity: place for place in (*writers, *readers)}
        ordered = sorted(users.values(), key=lambda place: below.position(place.block))
        accesses = [accesses_of(place, buffer) for place in ordered]
        for n, own in enumerate(accesses):
            writes = [access for access in own if access.writes]
            yield from ((write, write) for write in writes)
            for others in (own, *accesses[n + 1 :]):
                yield from (
                    (a, b)
                    for a, b in product(writes if others is own else own, others)
                    if a is not b and (a.writes or b.writes)
                )


def accesses_of(place: BlockPlace, buffer: Buffer) -> list[Access]:
    """What a unit reads and writes of a buffer. It does not depend on others for what it has
    written before it reads it."""
    reads = regions_of(exposed_reads(place.block), buffer)
    return [
        *(Access(place, region, False) for region in reads),
        *(Access(place, region, True) for region in _written(place.block, buffer)),
    ]


@lru_cache(maxsize=4096)
def _written(block: Block, buffer: Buffer) -> list[BufferRegion]:
    """What a block writes of a buffer: the elements, where it declares more than it stores."""
    declared = regions_of(block.writes, buffer)
    if all(is_const_int(side.extent, 1) for region in declared for side in region.region):
        return declared
    nodes = list(walk(block))
    stores = [node for node in nodes if isinstance(node, BufferStore) and node.buffer is buffer]
    indices = {index for store in stores for index in store.indices}
    inside = {node.loop_var for node in nodes if isinstance(node, For)}
    if (
        not stores
        or uses_addresses(block)
        or any(isinstance(node, (Block, LetStmt)) for node in nodes if node is not block)
        or block.match_buffers
        or any(isinstance(i, Ramp) or uses_any(i, inside) for i in indices)
    ):
        return declared
    return [element_region(buffer, store.indices) for store in stores]


def _are_told_apart(distinct: Sequence[Var], first: Access, second: Access) -> bool:
    """Whether two iterations of a block that touch one element are the same in some iterators: each
    of these is an index, or the indices tell all of their values apart."""
    same = {
        a.min
        for a, b in zip(first.region.region, second.region.region, strict=True)
        if a.min is b.min and is_const_int(a.extent, 1) and is_const_int(b.extent, 1)
    }
    if all(var in same for var in distinct):
        return True
    iterators = first.unit.block.domains
    domains = {var: iterators[var] for var in distinct if var in iterators}
    sizes = variables_in(*(domain.extent for domain in domains.values()))
    for parent in first.unit.parents:
        sizes.difference_update(defined_variables(parent))
    own = [index for index in same if variables_in(index) <= domains.keys() | sizes]
    own = _undivided(own)
    return len(domains) == len(distinct) and is_iter_map(own, domains, check_level=BIJECTIVE)


def _undivided(indices: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Indices that tell the same iterations apart: a number in the place of its quotient and its
    remainder by the same constant, which need not divide how many values the number has."""
    result = list(indices)
    while (pair := _divided_number(result)) is not None:
        quotient, remainder, number = pair
        result = [each for each in result if each is not quotient and each is not remainder]
        result.append(number)
    return result


def _divided_number(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr, PrimExpr] | None:
    """A quotient and a remainder among indices, and the number that both are of."""
    for quotient, remainder in product(indices, indices):
        if not (isinstance(quotient, FloorDiv) and isinstance(remainder, FloorMod)):
            continue
        number, rest, divisor = quotient.a, remainder.a, constant_value(quotient.b)
        if not divisor or constant_value(remainder.b) != divisor:
            continue
        if same_expression(number, rest):
            return quotient, remainder, number
        # `x % 12 // 4` beside `x % 4`, which is `x % 12 % 4`.
        if isinstance(number, FloorMod) and same_expression(number.a, rest):
            whole = constant_value(number.b)
            if whole and whole % divisor == 0:
                return quotient, remainder, number
    return None


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What is known of the units below the loops of a chain."""

    state: ScheduleState
    below: Scope
    chain: tuple[For, ...]
    at_once: bool

    def distinct(self, first: Access, second: Access) -> list[Var] | None:
        """The iterators in one of which two iterations of a block have to differ, so that they
        depend on each other; None where different iterations of the loops are enough."""
        unit, block = first.unit, first.unit.block
        if (
            second.unit is not unit
            or self._uses_loops(unit)
            or not self._may_repeat(unit, first.region.buffer)
        ):
            return None
        reduced = {i.var for i in block.iter_vars if i.iter_type == IterType.COMM_REDUCE}
        written = [access.region for access in (first, second) if access.writes]
        if any(variables_in(region) & reduced for region in written):
            reduced = set()
        return [i.var for i in block.iter_vars if i.var not in reduced]

    def _uses_loops(self, unit: BlockPlace) -> bool:
        """Whether a unit uses loops by no iterator that would say what they mean to it."""
        if isinstance(unit, RawPlace):
            return True
        return not unit.block.iter_vars and any(
            uses(unit.block, loop.loop_var) for loop in self.chain
        )

    def _may_repeat(self, unit: BlockPlace, buffer: Buffer) -> bool:
        """Whether it does not matter that iterations of a block run again in which its iterators
        have the same values, or none do."""
        others = [
            (writer, Access(unit, region, False))
            for region in unit.block.reads
            for writer in self.below.writers.get(region.buffer, ())
            if writer.block is not unit.block
        ]
        updates = self.at_once and unit.block.init is not None
        if not (others or updates) or self._runs_once(unit):
            return True
        if updates and not self._is_private(buffer):
            return False
        return all(self._is_written_first(read, by) for by, read in others)

    def _runs_once(self, unit: BlockPlace) -> bool:
        """Whether the loops from the outermost of the chain on run each iteration of a block at
        most once."""
        around = unit.loops
        loops = around[around.index(self.chain[0]) :]
        used = driving_variables(self.state, unit)
        return all(
            loop.loop_var in used or is_const_int(loop.extent, 1) for loop in loops
        ) and runs_one_to_one(self.state, unit, loops)

    def _is_private(self, buffer: Buffer) -> bool:
        """Whether a buffer is allocated in the scope and used below the loops alone, so that each
        iteration can have one of its own."""
        loop = self.state.loop(self.chain[0].loop_var)
        scope = self.state.scope_of(loop)
        if buffer not in scope.block.alloc_buffers:
            return False
        whole = effects_below(self.state, scope)
        users = (*whole.writers.get(buffer, ()), *whole.readers.get(buffer, ()))
        return all(stands_in(user, loop.loop) for user in users)

    def is_overwritten(self, first: Access, second: Access) -> bool:
        """Whether the same iteration writes what the later access reads before it, or writes again
        what the earlier access writes, so that it does not matter what others write."""
        if first.unit is second.unit:
            return False
        if self.at_once and not self._writes_one_value(first.region.buffer):
            return False
        if first.writes and second.writes:
            return self._surely_writes(second.unit, first)
        read, write = (second, first) if first.writes else (first, second)
        return self._is_written_first(read, write.unit)

    def _writes_one_value(self, buffer: Buffer) -> bool:
        """Whether iterations that run at once write the same to an element of a buffer."""
        writers = self.below.writers.get(buffer, ())
        one = len(writers) == 1 and writers[0].block.init is None
        return (one and not isinstance(writers[0], RawPlace)) or self._is_private(buffer)

    def _is_written_first(self, read: Access, by: BlockPlace) -> bool:
        """Whether, in the same iteration, an earlier unit surely writes what is read, or `by` is
        earlier and writes all that it ever writes of it."""
        earlier = self.below.writers_before(read.region.buffer, read.unit)
        return any(self._surely_writes(w, read, w.block is by.block) for w in earlier)

    def _surely_writes(self, writer: BlockPlace, access: Access, or_never: bool = True) -> bool:
        """Whether a unit writes all of a region in the same iteration of the loops around both, or
        (`or_never`) what it ever writes of it."""
        shared = shared_prefix([writer.loops, access.unit.loops])
        common = self.state.loop(shared[-1].loop_var)
        inner = access.unit.inner_loops(common.loop)
        analyzer = common.analyzer_inside()
        for var, domain in inner.items():
            analyzer.bind(var, domain)
        realize, region = access.unit.realize, access.region
        box = touched(realize, region, inner, analyzer)
        if must_write(writer, region.buffer, common.loop, box):
            return True
        may_never = or_never and not guards(writer, common.loop)
        return may_never and have_run(writer, region.buffer, [box], common.loop, analyzer)


def check_keeps_order(
    state: ScheduleState, below: Scope, chain: Sequence[For], new_order: Sequence[For]
) -> None:
    """Raise DataflowError where iterations of a chain of loops that depend on each other would
    change places in a new order of the loops."""
    signs = reversals(chain, new_order)
    _check(state, below, chain, signs, "which this order of the loops would turn around")


def check_any_order(state: ScheduleState, below: Scope, chain: Sequence[For]) -> None:
    """Raise DataflowError where iterations of a chain of loops depend on each other."""
    signs = [
        {**dict.fromkeys(range(n), ZERO), n: sign}
        for n in range(len(chain))
        for sign in (POSITIVE, NEGATIVE)
    ]
    _check(state, below, chain, signs, "which the new order may turn around")


def check_carries_nothing(state: ScheduleState, below: Scope, loop: For) -> None:
    """Raise DataflowError where the iterations of a loop depend on each other."""
    signs = [{0: POSITIVE}, {0: NEGATIVE}]
    _check(state, below, [loop], signs, "and these iterations may not run at once", at_once=True)


def check_stays_before(
    scope: Scope, first: BlockPlace, second: BlockPlace, chain: Sequence[For]
) -> None:
    """Raise DataflowError where, in loops that two units now share, an iteration of the second one
    comes before an iteration of the first one that it depends on."""
    signs = [{**dict.fromkeys(range(n), ZERO), n: NEGATIVE} for n in range(len(chain))]
    for buffer in scope.conflicts(first, second):
        scope.check_declared(buffer)
        for a, b in product(accesses_of(first, buffer), accesses_of(second, buffer)):
            if not (a.writes or b.writes):
                continue
            distances = distances_of(a, b, chain, signs, None, scope.leaves)
            if distances is not None:
                verbs = ["write" if access.writes else "read" for access in (a, b)]
                raise DataflowError(
                    f"In the merged loop the {second.title} would {verbs[1]} elements of "
                    f'"{buffer.name}" that the {first.title} {verbs[0]}s in a later iteration '
                    f"({_text(distances, chain)})",
                    [chain[-1], first.statement, second.statement],
                    "loops further outside, or ones that write all that is read in one iteration",
                )


def _text(distances: Sequence[int | None], chain: Sequence[For]) -> str:
    names = ", ".join(f'"{loop.loop_var.name}"' for loop in chain)
    distance = ", ".join("*" if d is None else str(d) for d in distances)
    return f"at the distance ({distance}) over {names}"


def _check(
    state: ScheduleState,
    below: Scope,
    chain: Sequence[For],
    signs: Sequence[Signs],
    what: str,
    at_once: bool = False,
) -> None:
    for buffer in below.writers:
        below.check_declared(buffer)
    dependence = find_dependence(state, below, chain, signs, at_once)
    if dependence is None:
        return
    first, second = dependence.first, dependence.second
    buffer = first.region.buffer.name
    verbs = ["writes" if access.writes else "reads" for access in (first, second)]
    title = second.unit.title
    if second.unit is first.unit:
        title = "it"
    raise DataflowError(
        f'The {first.unit.title} {verbs[0]} elements of "{buffer}" that {title} {verbs[1]} in '
        f"another iteration ({_text(dependence.distances, chain)}), {what}",
        [first.unit.statement, second.unit.statement, *chain],
        "write to a buffer of its own, one element in each iteration, or take other loops",
    )
