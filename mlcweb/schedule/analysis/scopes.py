"""What the blocks of a scope are to each other: dependences, complete and reduction blocks.

The classes of blocks follow TVM's definitions (Feng et al., "TensorIR: An Abstraction for
Automatic Tensorized Program Optimization", ASPLOS 2023, section 3.1). A *complete* block is the
only writer of its buffers, reads none of what it writes and has spatial iterators alone. A
*reduction* block may also have reduction iterators, has an init and is the only writer.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlcweb.analysis.access_regions import element_region, same_range
from mlcweb.analysis.effects import exposed_reads, reads_old_elements
from mlcweb.arith import conjuncts
from mlcweb.arith.iter_map import BIJECTIVE, is_iter_map
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.units import (
    RawPlace,
    blocks_among,
    bound_reads,
    completed,
    in_the_same_memory,
    undeclared_accesses,
    units_below,
)
from mlcweb.schedule.errors import BindingError, BlockKindError, DataflowError
from mlcweb.schedule.state import BlockPlace, Place, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import logical_and
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, BufferStore, For, IterType
from mlcweb.tir.substitute import uses, variables_in


@dataclass(frozen=True, slots=True)
class Scope:
    """The units directly inside a block (its blocks, and its statements outside of blocks), in
    program order, and who writes and reads what.

    `writers` and `readers` go by what blocks declare; `undeclared_writers` and `undeclared_readers`
    are the blocks that access a buffer without declaring it, as some primitives (of TVM, and so
    ours) leave them behind. What rests on knowing all users of a buffer asks `writers_of` and
    `readers_of`.
    """

    units: tuple[BlockPlace, ...]
    writers: dict[Buffer, tuple[BlockPlace, ...]]
    readers: dict[Buffer, tuple[BlockPlace, ...]]
    undeclared_writers: dict[Buffer, tuple[BlockPlace, ...]]
    undeclared_readers: dict[Buffer, tuple[BlockPlace, ...]]

    positions: dict[BlockIdentity, int]

    @property
    def children(self) -> tuple[BlockPlace, ...]:
        """The blocks among the units."""
        return blocks_among(self.units)

    def position(self, block: Block) -> int:
        return self.positions[block.identity]

    def unit(self, block: Block) -> BlockPlace:
        """Where a block of the scope stands."""
        return self.units[self.position(block)]

    def producers(self, place: BlockPlace) -> list[BlockPlace]:
        """Earlier units that write what `place` reads, in the order in which it reads."""
        return self._linked(place, place.block.reads, self.writers, before=True)

    def consumers(self, place: BlockPlace) -> list[BlockPlace]:
        """Later units that read what `place` writes, in program order."""
        linked = self._linked(place, place.block.writes, self.readers, before=False)
        return sorted(linked, key=lambda unit: self.position(unit.block))

    def writers_of(self, buffer: Buffer) -> tuple[BlockPlace, ...]:
        """The units that write a buffer; a DataflowError where a block hides that it uses it."""
        self.check_declared(buffer)
        return self.writers.get(buffer, ())

    def readers_of(self, buffer: Buffer) -> tuple[BlockPlace, ...]:
        """The units that read a buffer; a DataflowError where a block hides that it uses it."""
        self.check_declared(buffer)
        return self.readers.get(buffer, ())

    def leaves(self, buffer: Buffer) -> bool:
        """Whether no unit writes a buffer."""
        return buffer not in self.writers and buffer not in self.undeclared_writers

    def writers_before(self, buffer: Buffer, unit: BlockPlace) -> list[BlockPlace]:
        """The units that stand before one and write a buffer."""
        here = self.position(unit.block)
        return [w for w in self.writers.get(buffer, ()) if self.position(w.block) < here]

    def conflicts(self, first: BlockPlace, second: BlockPlace) -> list[Buffer]:
        """The buffers that two units use, declared or not, and one of them writes."""
        (written, read), (other_written, other_read) = map(self._used_by, (first, second))
        return [
            buffer
            for buffer in dict.fromkeys((*written, *other_written))
            if (buffer in written or buffer in read)
            and (buffer in other_written or buffer in other_read)
        ]

    def _used_by(self, place: BlockPlace) -> tuple[list[Buffer], list[Buffer]]:
        """The buffers that a unit writes, and those that it reads."""
        tables = ((self.writers, self.undeclared_writers), (self.readers, self.undeclared_readers))
        written, read = (
            [
                buffer
                for table in pair
                for buffer, users in table.items()
                if any(user.block.identity is place.block.identity for user in users)
            ]
            for pair in tables
        )
        return written, read

    def check_links(self, place: BlockPlace) -> None:
        """Raise DataflowError where another block uses what `place` accesses, and one of the two
        does not declare it."""
        for region in place.block.writes:
            self.check_declared(region.buffer)
        self.check_links_of_reads(place)

    def check_links_of_reads(self, place: BlockPlace) -> None:
        """`check_links` of all but what `place` declares to write."""
        for region in place.block.reads:
            self.check_declared(region.buffer)
        for buffer in itertools.chain(*undeclared_accesses(place.realize)):
            users = (*self.writers.get(buffer, ()), *self.readers.get(buffer, ()))
            if users or len(self._hiding(buffer)) > 1:
                self.check_declared(buffer)

    def check_declared(self, buffer: Buffer) -> None:
        """Raise DataflowError where a block uses a buffer without declaring it."""
        hiding = self._hiding(buffer)
        if hiding:
            raise DataflowError(
                f'The block "{hiding[0].block.name_hint}" uses "{buffer.name}" without declaring '
                "it in T.reads or T.writes, so that it is not known what depends on what",
                [place.realize for place in hiding],
                "this step before loop_partition, cache_index or unsafe_hide_buffer_access, and "
                "bindings and predicates that read no memory, or what the block declares",
            )

    def _hiding(self, buffer: Buffer) -> tuple[BlockPlace, ...]:
        return (*self.undeclared_writers.get(buffer, ()), *self.undeclared_readers.get(buffer, ()))

    def _linked(self, place, regions, users, before: bool) -> list[BlockPlace]:
        here = self.position(place.block)
        linked: dict[BlockIdentity, BlockPlace] = {}
        for region in regions:
            for other in users.get(region.buffer, ()):
                if (self.position(other.block) < here) is before and other.block is not place.block:
                    linked.setdefault(other.block.identity, other)
        return list(linked.values())


def scope_at(state: ScheduleState, scope: BlockPlace) -> Scope:
    """The scope inside a block."""
    return state.cached(("scope", scope.block.identity), lambda: scope_below(state, scope))


def scope_around(state: ScheduleState, place: Place) -> Scope:
    """The scope that a loop or block is in."""
    return scope_at(state, state.scope_of(place))


def scope_below(state: ScheduleState, around: Place) -> Scope:
    """The scope inside a block, or the part of one inside a loop."""
    return _scope_of(state, units_below(state, around))


def effects_below(state: ScheduleState, around: Place) -> Scope:
    """The same scope, whose blocks are seen declaring all that they do. (What they declare says
    where other steps may move them; what depends on what, only what they do.)"""
    return _scope_of(state, [completed(state, unit) for unit in units_below(state, around)])


def _scope_of(state: ScheduleState, units: Sequence[BlockPlace]) -> Scope:
    writers: dict[Buffer, list[BlockPlace]] = {}
    hidden_readers: dict[Buffer, list[BlockPlace]] = {}
    tables = (writers, {}, {}, hidden_readers)
    for unit in units:
        stored, loaded = undeclared_accesses(unit.realize)
        written = [region.buffer for region in unit.block.writes]
        read = [region.buffer for region in unit.block.reads]
        hidden_writes = (*stored, *in_the_same_memory(state, unit, (*written, *stored)))
        hidden_reads = (*loaded, *in_the_same_memory(state, unit, (*read, *loaded)))
        used = (written, read, hidden_writes, hidden_reads)
        for table, buffers in zip(tables, used, strict=True):
            for buffer in dict.fromkeys(buffers):
                table.setdefault(buffer, []).append(unit)
    # What is declared may be other elements than those that a predicate or a binding loads.
    for unit in units:
        for buffer in bound_reads(unit.realize):
            if buffer in writers and unit not in hidden_readers.get(buffer, ()):
                hidden_readers.setdefault(buffer, []).append(unit)
    by_buffer = [{buffer: tuple(users) for buffer, users in table.items()} for table in tables]
    positions = {unit.block.identity: n for n, unit in enumerate(units)}
    return Scope(tuple(units), *by_buffer, positions=positions)


def loop_ranges(loops: Iterable[For]) -> dict[Var, Range]:
    """The domains of loop variables."""
    return {loop.loop_var: loop.domain for loop in loops}


def driven_iterators(realize: BlockRealize, loop: Var) -> dict[Var, IterType]:
    """The iterators of a block whose value depends on a loop, and what they mean."""
    return {
        iter_var.var: iter_var.iter_type
        for iter_var, value in realize.iterators
        if uses(value, loop)
    }


def iterators_by_variable(realize: BlockRealize) -> dict[Var, dict[Var, IterType]]:
    """`driven_iterators` of every variable that the values of a block's iterators depend on."""
    driven: dict[Var, dict[Var, IterType]] = {}
    for iter_var, value in realize.iterators:
        for variable in variables_in(value):
            driven.setdefault(variable, {})[iter_var.var] = iter_var.iter_type
    return driven


def runs_one_to_one(state: ScheduleState, place: BlockPlace, loops: Sequence[For]) -> bool:
    """Whether those of `loops` that drive iterators of a block run through iterations of their own:
    with the other loops fixed, no two of them repeat the same values. So do some loops where all do
    around the block."""
    return _all_run_one_to_one(state, place) or (
        len(loops) < len(place.loops) and _is_one_to_one(state, place, loops)
    )


def _all_run_one_to_one(state: ScheduleState, place: BlockPlace) -> bool:
    return state.cached(
        ("one to one", place.block.identity), lambda: _is_one_to_one(state, place, place.loops)
    )


def _is_one_to_one(state: ScheduleState, place: BlockPlace, loops: Iterable[For]) -> bool:
    realize, used = place.realize, driving_variables(state, place)
    driving = loop_ranges(loop for loop in loops if loop.loop_var in used)
    predicates = (True,) if is_trivially_true(realize.predicate) else (realize.predicate, True)
    return any(is_iter_map(realize.iter_values, driving, p, BIJECTIVE) for p in predicates)


def driving_variables(state: ScheduleState, place: BlockPlace) -> set[Var]:
    """The variables that the values of a block's iterators depend on."""
    return state.cached(
        ("driving", place.block.identity), lambda: variables_in(*place.realize.iter_values)
    )


def is_trivially_true(predicate: PrimExpr) -> bool:
    return isinstance(predicate, IntImm) and predicate.value != 0


def is_affine(state: ScheduleState, place: BlockPlace) -> bool:
    """Whether the loops around a block run its iterators through their domains one to one."""
    predicate = place.realize.predicate
    if is_trivially_true(predicate) and _all_run_one_to_one(state, place):
        return True
    return state.cached(("affine", place.block.identity), lambda: _is_affine(place, predicate))


def _is_affine(place: BlockPlace, predicate: PrimExpr | bool) -> bool:
    return is_iter_map(place.realize.iter_values, loop_ranges(place.loops), predicate)


def check_affine(
    state: ScheduleState, place: BlockPlace, even_without_predicate: bool = False
) -> None:
    """Raise BindingError unless the block's binding is affine.

    `even_without_predicate` is for those to whom it does not matter that the predicate leaves out
    iterations: it may bound iterators together that are bound to loops of their own, as that of a
    reduction whose parts are of unequal lengths, or quotients and remainders of loops, as that of
    copies of tiles that stick out.
    """
    if not is_affine(state, place) and not (
        even_without_predicate and any(_is_affine(place, p) for p in _parts(place))
    ):
        raise BindingError(
            f"The iterators of {place.title} are not bound to its loops one to one (the binding "
            "is not affine), so its iterations cannot be rearranged",
            [place.realize],
            "bind every iterator to a sum of scaled loop variables that covers its domain once",
        )


def _parts(place: BlockPlace) -> tuple[PrimExpr | bool, ...]:
    """What may be left of a predicate: its bounds of sums of loops, which say how far the loops of
    a split go, and nothing."""
    divisions = (FloorDiv, FloorMod)
    bounds = [
        part
        for part in conjuncts(place.realize.predicate)
        if not any(isinstance(node, divisions) for node in walk(part))
    ]
    return (functools.reduce(logical_and, bounds), True) if bounds else (True,)


def check_binds_loops(place: BlockPlace, loops: Sequence[For]) -> None:
    """Raise BindingError where a block that leaves some loops uses them other than by its
    iterators."""
    used = variables_in(place.block)
    if not place.block.iter_vars:
        used |= variables_in(place.realize.predicate)
    lost = [loop for loop in loops if loop.loop_var in used]
    if lost:
        names = ", ".join(f'"{loop.loop_var.name}"' for loop in lost)
        raise BindingError(
            f"The {place.title} uses the loop {names} around it without an iterator, and has no "
            "value for it elsewhere",
            [place.realize, *lost],
            "a block whose iterators are bound to its loops",
        )


def why_not_complete(scope: Scope, block: Block) -> str | None:
    """Why a block is not complete; None where it is."""
    for iter_var in block.iter_vars:
        if iter_var.iter_type != IterType.DATA_PARALLEL:
            return f'its iterator "{iter_var.var.name}" is not spatial'
    reason = _why_not_dominant(scope, block)
    if reason:
        return reason
    written = {region.buffer for region in block.writes}
    reads = (region.buffer for region in block.reads)
    for buffer in (*reads, *bound_reads(scope.unit(block).realize)):
        if buffer in written:
            return f'it both reads and writes "{buffer.name}"'
    return None


def why_not_reduction(scope: Scope, block: Block, may_go_on: bool = False) -> str | None:
    """Why a block is not a reduction block; None where it is. With `may_go_on` its init may also
    change what is there: `C[vi] = C[vi] * scale[vi]`."""
    if block.init is None:
        return "it has no init statement"
    allowed = (IterType.DATA_PARALLEL, IterType.COMM_REDUCE)
    for iter_var in block.iter_vars:
        if iter_var.iter_type not in allowed:
            return f'its iterator "{iter_var.var.name}" is neither spatial nor a reduction'
    reason = _why_not_dominant(scope, block)
    if reason:
        return reason
    for region in block.writes:
        goes_on = may_go_on and _goes_on(block, region.buffer)
        if not goes_on and reads_old_elements(block, region.buffer):
            return f'it reads elements of "{region.buffer.name}" that its init does not set'
    reduced = {i.var for i in block.iter_vars if i.iter_type == IterType.COMM_REDUCE}
    for var in reduced & variables_in(*block.writes):
        return f'its reduction iterator "{var.name}" indexes the output'
    for buffer in bound_reads(scope.unit(block).realize):
        if any(region.buffer is buffer for region in block.writes):
            return f'its predicate or a binding reads its output "{buffer.name}"'
    return None


def _goes_on(block: Block, buffer: Buffer) -> bool:
    """Whether all that an iteration reads of what was in a buffer before is the element that its
    init stores to, and those of other spatial iterators have other elements."""
    init = block.init
    if not isinstance(init, BufferStore) or init.buffer is not buffer:
        return False
    spatial = {i.var for i in block.iter_vars if i.iter_type == IterType.DATA_PARALLEL}
    own = element_region(buffer, init.indices)
    return spatial <= set(init.indices) and all(
        all(map(same_range, region.region, own.region))
        for region in exposed_reads(block)
        if region.buffer is buffer
    )


def _why_not_dominant(scope: Scope, block: Block) -> str | None:
    for region in block.writes:
        writers = scope.writers.get(region.buffer, ())
        for hiding in scope.undeclared_writers.get(region.buffer, ()):
            name = hiding.block.name_hint
            return f'the block "{name}" writes "{region.buffer.name}" without declaring it'
        for reading in scope.undeclared_readers.get(region.buffer, ()):
            if reading.block.identity is block.identity:
                return f'it reads "{region.buffer.name}" without declaring it'
        if len(writers) > 1:
            names = ", ".join(short_title(w) for w in writers)
            return f'it is not the only writer of "{region.buffer.name}": {names} write it'
    return None


def short_title(place: BlockPlace) -> str:
    """A unit's name in a list of them."""
    return place.title if isinstance(place, RawPlace) else f'"{place.block.name_hint}"'


def check_complete(state: ScheduleState, place: BlockPlace) -> None:
    """Raise BlockKindError unless the block is complete in its scope."""
    reason = why_not_complete(scope_around(state, place), place.block)
    if reason:
        raise BlockKindError(
            f"The {place.title} is not a complete block: {reason}",
            [place.realize],
            "a block with spatial iterators alone, which is the only writer of what it writes",
        )


def check_complete_or_reduction(state: ScheduleState, place: BlockPlace) -> None:
    """Raise BlockKindError unless the block is complete or a reduction block in its scope."""
    scope = scope_around(state, place)
    complete = why_not_complete(scope, place.block)
    reduction = why_not_reduction(scope, place.block)
    if complete and reduction:
        raise BlockKindError(
            f"The {place.title} is neither a complete block ({complete}) nor a reduction block "
            f"({reduction})",
            [place.realize],
            "this step before decompose_reduction, or on the only writer of a buffer",
        )


def check_reduction(
    state: ScheduleState, place: BlockPlace, advice: str, may_go_on: bool = False
) -> None:
    """Raise BlockKindError unless the block is a reduction block in its scope (see
    `why_not_reduction`)."""
    reason = why_not_reduction(scope_around(state, place), place.block, may_go_on)
    if reason:
        raise BlockKindError(
            f"The {place.title} is not a reduction block: {reason}", [place.realize], advice
        )


def check_not_output(state: ScheduleState, place: BlockPlace, advice: str) -> None:
    """Raise BlockKindError where a block writes a buffer that lives on outside of its scope,
    whether it declares that or not."""
    stored, _ = undeclared_accesses(place.realize)
    own = state.scope_of(place).block.alloc_buffers
    if is_output_block(state, place) or any(buffer not in own for buffer in stored):
        raise BlockKindError(
            f"The {place.title} is an output block: what it writes is seen outside of the block "
            f'"{state.scope_of(place).block.name_hint}"',
            [place.realize],
            advice,
        )


def check_leaf(place: BlockPlace, advice: str) -> None:
    """Raise BlockKindError where a block holds other blocks."""
    if any(True for _ in block_realizes_below(place.block.body)):
        raise BlockKindError(
            f"The {place.title} is not a leaf block: it holds other blocks", [place.realize], advice
        )


def only_writer(writers: Sequence[BlockPlace], buffer: Buffer) -> BlockPlace | None:
    """The writer of a buffer, if there is one; DataflowError where there are several."""
    if len(writers) > 1:
        names = ", ".join(short_title(writer) for writer in writers)
        raise DataflowError(
            f'The buffer "{buffer.name}" is written by {len(writers)} blocks ({names}); this takes '
            "a buffer with a single writer",
            [writer.statement for writer in writers],
            "this step before decompose_reduction",
        )
    return writers[0] if writers else None


def is_output_block(state: ScheduleState, place: BlockPlace) -> bool:
    """Whether a block writes a buffer that lives on outside of its scope."""
    own = set(state.scope_of(place).block.alloc_buffers)
    return any(region.buffer not in own for region in place.block.writes)
