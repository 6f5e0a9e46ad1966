"""The passes that keep memory in registers: small local buffers, and what a loop updates in place.

`place_in_registers` gives local buffers whose accesses all name constant elements the storage scope
"register". `promote_accumulators` finds the elements that every iteration of a loop reads or writes
at the same place, such as `C[i, j]` in the loop over k of a matrix product: they are loaded into
such a buffer before the loop, used there, and stored after it. What was stored there just before
the loop, as the start of a sum is, goes into the buffer at once. The same is done with stores one
after another, such as a loop that was unrolled leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby, takewhile

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on
from mlcweb.lower.optimize.accesses import (
    REGISTER_SCOPE,
    AccessMutator,
    aliasing,
    has_effects,
    pointers_passed_on,
    sure_statements,
    surely_runs,
)
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import variables_of
from mlcweb.lower.statement_simplifier import resequenced
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, constant_shape, decl_buffer
from mlcweb.tir.contents import Access, accesses_in, buffers_written, variables_used
from mlcweb.tir.expr import PointerType
from mlcweb.tir.function import PrimFunc


def place_in_registers(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Give local buffers that are only accessed at constant places the scope "register".

    Their elements are numbered anew, so that those of a vector are next to each other."""
    return func.with_body(_RegisterPlacement(func, machine).rewrite(func.body))


Placement = Mapping[int, int]
"""The new number of each element of a buffer that is used."""


class _RegisterPlacement(AccessMutator):
    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__()
        self.machine = machine
        self.buffers: dict[Buffer, tuple[Buffer, Placement]] = {}
        self.passed_on = pointers_passed_on(func.body)

    @on(S.AllocBuffer)
    def allocation(self, allocation: S.AllocBuffer) -> S.Stmt:
        buffer = allocation.buffer
        placement = None
        if buffer.scope() != REGISTER_SCOPE and buffer.data not in self.passed_on:
            placement = _placement(buffer, accesses_in(allocation.body), self.machine)
        if placement is None:
            body = self.rewrite(allocation.body)
            return allocation if body is allocation.body else replace(allocation, body=body)
        data = E.Var(buffer.data.name, "handle", PointerType(buffer.dtype, REGISTER_SCOPE))
        placed = replace(buffer, data=data, shape=(const(len(placement)),))
        self.buffers[buffer] = placed, placement
        body = self.rewrite(allocation.body)
        del self.buffers[buffer]  # Copies of a loop's body allocate the same buffer again.
        return replace(allocation, buffer=placed, body=body)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> Access:
        return super().store(store) if self.buffers else store

    def changed(self, access: Access) -> Access:
        if access.buffer not in self.buffers:
            return access
        buffer, placement = self.buffers[access.buffer]
        elements = _constant_elements(access.indices[0])
        assert elements is not None
        index = _index(const(placement[elements[0]]), len(elements))
        return replace(access, buffer=buffer, indices=(index,))


def _placement(
    buffer: Buffer, accesses: Iterable[Access], machine: MachineModel
) -> Placement | None:
    """Where elements go in registers, vector by vector; None where some access names elements that
    are not constant, or two accesses overlap in part. Single elements of vectors may be read."""
    if constant_shape(buffer) is None:
        return None
    vectors: dict[range, None] = {}
    read_alone: set[int] = set()
    size = machine.size_of(buffer.dtype)
    for access in accesses:
        if access.buffer.data is not buffer.data:
            continue
        elements = _constant_elements(access.indices[0])
        if access.buffer is not buffer or elements is None:
            return None
        if len(elements) == 1 and isinstance(access, E.BufferLoad):
            read_alone.add(elements[0])
        elif len(elements) > 1 and len(elements) * size > machine.vector_bytes:
            return None  # such a vector is not in one register
        else:
            vectors[elements] = None
    inside = [element for elements in vectors for element in elements]
    alone = read_alone.difference(inside)
    registers = len(vectors) + len(alone)
    if len(inside) > len(set(inside)) or not 0 < registers <= machine.registers:
        return None
    parts = sorted([*vectors, *(range(element, element + 1) for element in alone)], key=min)
    return {element: position for position, element in enumerate(chain.from_iterable(parts))}


def _constant_elements(index: E.PrimExpr) -> range | None:
    """The elements that a constant index names, in order."""
    if isinstance(index, E.Ramp):
        base, step = index.base, index.stride
        if isinstance(base, E.IntImm) and isinstance(step, E.IntImm) and step.value > 0:
            return range(
                base.value, base.value + step.value * dtypes.lanes(index.dtype), step.value
            )
        return None
    return range(index.value, index.value + 1) if isinstance(index, E.IntImm) else None


def promote_accumulators(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Keep what a loop updates at a fixed place in registers while the loop runs."""
    return func.with_body(_Promotion(func, machine).rewrite(func.body))


Place = tuple[E.PrimExpr, range]
"""What an access touches: a start, and the distances of elements from it."""


@dataclass
class _Candidate:
    """The accesses of a loop, or of stores one after another, to one buffer."""

    buffer: Buffer
    places: dict[Place, None] = field(default_factory=dict)
    written: set[Place] = field(default_factory=set)
    certain: set[Place] = field(default_factory=set)
    stores: int = 0


class _Promotion(AccessMutator):
    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__()
        self.machine = machine
        self.may_alias = aliasing(func)
        self.indices = Indices()
        self.places: dict[tuple[Buffer, Place], tuple[Buffer, int]] = {}
        self.promoted: set[Buffer] = set()

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        done: list[S.Stmt] = []
        for part in statement.seq:
            if isinstance(part, S.For):
                part = self.loop(part, before=done)
            else:
                part = self.rewrite(part)
            done.append(part)
        return resequenced(statement, self.promoted_runs(done))

    def promoted_runs(self, statements: list[S.Stmt]) -> list[S.Stmt]:
        """The statements, where stores one after another keep in registers what they store to more
        than once."""
        result: list[S.Stmt] = []
        for are_stores, group in groupby(statements, lambda part: isinstance(part, S.BufferStore)):
            run = [*group]
            if are_stores:
                start = _number_of_constants(run)
                before, body = run[:start], S.sequence(*run[start:])
                chosen = [item for item in self.candidates(body) if item.stores > len(item.written)]
                if chosen:
                    part = self.in_registers(body, chosen, before)
                    run = [*before, part]
            result += run
        return result

    @on(S.For)
    def loop(self, loop: S.For, before: list[S.Stmt] | None = None) -> S.Stmt:
        """The loop with what it updates in registers. Of the statements `before` it, those go that
        store to the same places, as the loop's result overwrites them."""
        possible = surely_runs(loop) and not has_effects(loop.body)
        chosen = self.candidates(loop) if possible else []
        return (
            self.in_registers(loop, chosen, before or []) if chosen else self.rewrite_children(loop)
        )

    def in_registers(self, part: S.Stmt, chosen: list[_Candidate], before: list[S.Stmt]) -> S.Stmt:
        """A loop or sequence with `chosen` in registers, which are loaded before it and stored
        after it."""
        start, end, buffers = [], [], []
        outer, promoted = self.places, self.promoted
        self.places = dict(outer)
        self.promoted = promoted | {candidate.buffer for candidate in chosen}
        for candidate in chosen:
            registers = self.registers(candidate)
            buffers.append(registers)
            stored = self.stored_before(candidate, before)
            for place in candidate.places:
                base, elements = place
                position = self.places[candidate.buffer, place][1]
                here = _index(const(position), len(elements))
                there = _index(base + elements.start, len(elements), elements.step)
                first = stored.get(place)
                value = first.value if first else E.BufferLoad(candidate.buffer, (there,))
                span = first.span if first else part.span
                start.append(S.BufferStore(registers, value, (here,), span=span))
                if place in candidate.written:
                    kept = E.BufferLoad(registers, (here,))
                    end.append(S.BufferStore(candidate.buffer, kept, (there,), span=part.span))
        body = self.rewrite_children(part)
        self.places, self.promoted = outer, promoted
        result: S.Stmt = S.sequence(*start, body, *end)
        for buffer in buffers:
            result = S.AllocBuffer(buffer, result)
        return result

    def stored_before(
        self, candidate: _Candidate, before: list[S.Stmt]
    ) -> dict[Place, S.BufferStore]:
        """Take the stores of constants to the candidate's places off the end of `before`."""
        stores: dict[Place, S.BufferStore] = {}
        while before and isinstance(before[-1], S.BufferStore):
            store = before[-1]
            place = self.place(store.indices[0]) if store.buffer is candidate.buffer else None
            if place not in candidate.written or not _is_constant(store.value):
                break
            stores.setdefault(place, store)
            before.pop()
        return stores

    def registers(self, candidate: _Candidate) -> Buffer:
        """A register buffer with room for the candidate's places, which are entered."""
        start = 0
        name = f"{candidate.buffer.name}_registers"
        size = sum(len(elements) for _, elements in candidate.places)
        registers = decl_buffer((size,), candidate.buffer.dtype, name, scope=REGISTER_SCOPE)
        for place in sorted(candidate.places, key=lambda place: place[1].start):
            self.places[candidate.buffer, place] = registers, start
            start += len(place[1])
        return registers

    def candidates(self, part: S.Stmt) -> list[_Candidate]:
        """What a loop or sequence accesses at fixed places, and writes."""
        moving = variables_of(part)
        accesses = accesses_in(part)
        certain = set(sure_statements(part))
        excluded = set(self.promoted)
        excluded.update(n.buffer for n in S.statements_in(part) if isinstance(n, S.AllocBuffer))
        candidates = []
        for buffer in buffers_written(part):
            if buffer.scope() == REGISTER_SCOPE or buffer in excluded:
                continue
            candidate = self.candidate(buffer, accesses, moving, certain)
            if candidate is not None and self.is_separate(candidate):
                candidates.append(candidate)
        if sum(len(candidate.places) for candidate in candidates) > self.machine.registers:
            return []
        return candidates

    def candidate(
        self, buffer: Buffer, accesses: Iterable[Access], moving: set[E.Var], certain: set[S.Stmt]
    ) -> _Candidate | None:
        result = _Candidate(buffer)
        for access in accesses:
            if access.buffer is not buffer:
                if self.may_alias(access.buffer, buffer):
                    return None
                continue
            place = self.place(access.indices[0])
            if place is None:
                return None
            base, elements = place
            if len(elements) * self.machine.size_of(buffer.dtype) > self.machine.vector_bytes:
                return None
            if not moving.isdisjoint(variables_used(base)) or accesses_in(base):
                return None
            result.places[place] = None
            if isinstance(access, S.BufferStore):
                result.written.add(place)
                result.stores += 1
            if access in certain:
                result.certain.add(place)
        return result

    def place(self, index: E.PrimExpr) -> Place | None:
        """What an index touches, from its part that is not constant."""
        lanes, step = dtypes.lanes(index.dtype), 1
        if isinstance(index, E.Ramp):
            if not isinstance(index.stride, E.IntImm) or index.stride.value == 0:
                return None
            index, step = index.base, index.stride.value
        elif lanes > 1:
            return None
        total = self.indices.sum_of(index)
        start = total.constant
        elements = range(start, start + lanes * step, step)
        return self.indices.expression(total.with_constant(0)), elements

    def is_separate(self, candidate: _Candidate) -> bool:
        """Whether the places are surely touched and surely do not overlap."""
        bases = {base for base, _ in candidate.places}
        if len(bases) > 1 or set(candidate.places) - candidate.certain:
            return False
        touched = [element for _, elements in candidate.places for element in elements]
        return len(touched) == len(set(touched))

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> Access:
        return super().store(store) if self.places else store

    def changed(self, access: Access) -> Access:
        place = self.place(access.indices[0]) if access.buffer in self.promoted else None
        if place is None:
            return access
        registers, start = self.places[access.buffer, place]
        return replace(access, buffer=registers, indices=(_index(const(start), len(place[1])),))


def _index(start: E.PrimExpr, lanes: int, step: int = 1) -> E.PrimExpr:
    return start if lanes == 1 else E.Ramp(start, const(step, start.dtype), lanes)


def _number_of_constants(stores: list[S.Stmt]) -> int:
    """How many stores of constants there are before the first of another value."""
    values = (store.value for store in stores if isinstance(store, S.BufferStore))
    return sum(1 for _ in takewhile(_is_constant, values))


def _is_constant(value: E.PrimExpr) -> bool:
    value = value.value if isinstance(value, E.Broadcast) else value
    return isinstance(value, (E.IntImm, E.FloatImm))
