"""Addresses of buffer elements: pointers that move with the loops, and constant offsets.

The index of an access is a sum of scaled loop variables, other terms, and a constant. Each loop
keeps one pointer for all accesses that share the terms known so far; it starts at the pointer of
the loop around it and moves by a constant step, so that no index is ever multiplied out. The
constant goes into the memory instruction, where it is free. WebAssembly adds it without wrapping
round at 32 bits, so it may only stand there if the rest cannot be negative.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlcweb.codegen.wasm.select_types import UnsupportedError, stack_type
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.lower.optimize.indices import Indices, Sum
from mlcweb.lower.optimize.rewriter import loops_in
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import may_trap
from mlcweb.tir.contents import Access, accesses_in, variables_used
from mlcweb.tir.dtype import wrap_integer

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector

Key = Hashable


@dataclass(frozen=True, slots=True)
class Place:
    """An element of a buffer: the index without its constant, and the constant.

    `bias` is the part of the constant that has to be added to the pointer itself.
    """

    data: E.Var
    element_bytes: int
    total: Sum
    bias: int
    key: Key

    @property
    def offset(self) -> int:
        """Bytes for the memory instruction."""
        return (self.total.constant - self.bias) * self.element_bytes


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A local that holds the address of a place, without the terms that are still missing."""

    local: int
    missing: dict[E.PrimExpr, int]


class Addresses:
    """Plans and writes the addresses of one function."""

    def __init__(self, selector: FunctionSelector, indices: Indices) -> None:
        self.selector = selector
        self.indices = indices
        self.places: dict[Access, Place] = {}
        self.in_loop: dict[S.For, dict[Key, Place]] = {}
        self.pointers: dict[Key, _Pointer] = {}

    def plan(self, body: S.Stmt) -> None:
        """Find out which places each loop needs pointers for; those that become functions have
        plans of their own."""
        outlined = {inner for loop in self.selector.regions for inner in loops_in(loop)}
        for loop in loops_in(body):
            if loop in outlined:
                continue
            self.in_loop[loop] = {
                place.key: place
                for place in self._places_in(loop)
                if loop.loop_var in place.total.terms
            }

    def _places_in(self, statement: S.Stmt) -> list[Place]:
        accesses = accesses_in(statement)
        return [self.place(each) for each in accesses if each.buffer.scope() != REGISTER_SCOPE]

    def place(self, access: Access) -> Place:
        """Where an access reads or writes (its first element, if several)."""
        place = self.places.get(access)
        if place is None:
            place = self.places[access] = self._place(access)
        return place

    def _place(self, access: Access) -> Place:
        index, data = access.indices[0], access.buffer.data
        base = index.base if isinstance(index, E.Ramp) else index
        if dtypes.lanes(base.dtype) > 1:
            raise UnsupportedError("WebAssembly has no gathering load", access.span)
        # Views of other types share the memory, but not the distance between elements.
        element_bytes = dtypes.size_in_bytes(dtypes.element_of(access.buffer.dtype))
        total = self.indices.sum_of(base)
        low = self.indices.sum_interval(total.with_constant(0))[0]
        if low >= 0 <= total.constant:
            bias = 0
        elif low + total.constant >= 0:
            bias = -int(low)
        else:
            bias = total.constant
        key = (data, element_bytes, bias, frozenset(total.terms.items()))
        return Place(data, element_bytes, total, bias, key)

    @contextmanager
    def loop(self, loop: S.For) -> Iterator[list[tuple[int, int]]]:
        """Around the code of a loop, before which its pointers are set. Gives the locals that have
        to advance at the end of each iteration, and by how many bytes."""
        outer = self.pointers
        self.pointers = dict(outer)
        pointer_locals: dict[Key, int] = {}
        steps: list[tuple[int, int]] = []
        for key, place in self.in_loop[loop].items():
            pointer = outer.get(key)
            missing = dict(pointer.missing if pointer else place.total.terms)
            step = missing.pop(loop.loop_var, 0)
            if step == 0 or (pointer is None and place.data not in self.selector.locals):
                continue  # a buffer allocated inside of the loop has no address before it
            ready = {atom: scale for atom, scale in missing.items() if self.is_settled(atom)}
            source = pointer.local if pointer else (place.data, place.bias)
            identity = (source, frozenset(ready.items()), step, place.element_bytes)
            local = pointer_locals.get(identity)
            if local is None:
                self.push_start(place, pointer)
                for atom, scale in ready.items():
                    self.add_scaled(atom, scale * place.element_bytes)
                self.add_scaled(loop.min, step * place.element_bytes)
                local = pointer_locals[identity] = self.selector.builder.local(
                    "i32", place.data.name
                )
                self.selector.emit("local.set", local)
                steps.append((local, step * place.element_bytes))
            rest = {atom: scale for atom, scale in missing.items() if atom not in ready}
            self.pointers[key] = _Pointer(local, rest)
        yield steps
        for local in pointer_locals.values():
            self.selector.builder.release(local)
        self.pointers = outer

    def is_settled(self, atom: E.PrimExpr) -> bool:
        """Whether a term is known here, and cannot change in the loop that is about to start."""
        if isinstance(atom, E.Var):
            return atom in self.selector.locals
        # A condition in the loop may be what the check of an index, or a quotient, relies on.
        return (
            not may_trap(atom)
            and not accesses_in(atom)
            and all(var in self.selector.locals for var in variables_used(atom))
        )

    def push(self, place: Place) -> None:
        """Leave on the stack the address that, with the offset of `place`, is the element's."""
        pointer = self.pointers.get(place.key)
        self.push_start(place, pointer)
        for atom, scale in (pointer.missing if pointer else place.total.terms).items():
            self.add_scaled(atom, scale * place.element_bytes)

    def push_start(self, place: Place, known: _Pointer | None) -> None:
        emit = self.selector.emit
        if known is not None:
            emit("local.get", known.local)
            return
        emit("local.get", self.selector.locals[place.data])
        if place.bias:
            emit("i32.const", wrap_integer(place.bias * place.element_bytes, "int32"))
            emit("i32.add")

    def add_scaled(self, term: E.PrimExpr, scale: int) -> None:
        """Add `term * scale` to the address on the stack."""
        emit = self.selector.emit
        if isinstance(term, E.IntImm):
            amount = wrap_integer(term.value * scale, "int32")
            if amount:
                emit("i32.const", amount)
                emit("i32.add")
            return
        self.selector.push(term)
        if stack_type(term.dtype) == "i64":
            emit("i32.wrap_i64")
        if scale & (scale - 1) == 0 and scale > 1:
            emit("i32.const", scale.bit_length() - 1)
            emit("i32.shl")
        elif scale != 1:
            emit("i32.const", wrap_integer(scale, "int32"))
            emit("i32.mul")
        emit("i32.add")
