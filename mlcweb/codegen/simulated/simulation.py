"""Running the threads of blocks in turns, and noticing where the result depends on their order.

Within a phase (from one barrier to the next) the threads of a block run one after the other, and
so do the blocks of a launch. So it is enough to know who came to an address first: if that was not
the one who comes now, two of them meet there.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Generator, Iterator, Sequence
from enum import Enum
from itertools import product
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.ir.span import Span
from mlcweb.lower.thread_axes import ThreadError

MAX_THREADS = 1024
"""The threads of a block that GPUs have at most."""

Array = np.ndarray[Any, Any]
Axes = Sequence[tuple[str, int]]


class DataRace(ThreadError):
    """Two threads touch one element, one of them to write, and nothing says who comes first."""


class PendingCopy(DataRace):
    """A thread touches what an asynchronous copy writes, for which nobody has waited yet."""


class UninitializedRead(ThreadError):
    """A thread reads what neither it nor, where others can, another has written."""


class BarrierDivergence(ThreadError):
    """Not all threads of a block reach a barrier."""


class Kind(Enum):
    """What is done to an element."""

    READ = "reads"
    WRITE = "writes"
    ATOMIC = "atomically updates"


_RIVALS = {
    Kind.READ: (Kind.WRITE, Kind.ATOMIC),
    Kind.WRITE: (Kind.READ, Kind.WRITE, Kind.ATOMIC),
    Kind.ATOMIC: (Kind.READ, Kind.WRITE),
}
"""What may not be done to an element meanwhile by another thread."""


class Statement(NamedTuple):
    """A part of the program, and where it is in the source text if that is known."""

    text: str
    span: Span | None

    def __str__(self) -> str:
        if self.span is None:
            return f"`{self.text.strip()}`"
        line = linecache.getline(self.span.filename, self.span.line).strip()
        return f"in line {self.span.line}, `{line or self.text.strip()}`"


class Access(NamedTuple):
    """An access in the text. `in_launch`: whether other blocks see the memory; `owner`: who has
    a copy of it."""

    kind: Kind
    buffer: str
    statement: Statement
    in_launch: bool
    owner: Literal["thread", "warp", "block"]


class _Touch(NamedTuple):
    """Who came to an address: the `party` is a thread of a block, or a block of a launch."""

    party: int
    access: int
    thread: int
    block: tuple[int, ...]


class _Pending(NamedTuple):
    """An asynchronous copy to an address: who copies, where, and in which of its groups."""

    thread: int
    access: int
    group: int


class _Log:
    """Who first touched each address, in each way, since all parties waited for each other."""

    def __init__(self) -> None:
        self.first: dict[Kind, dict[int, _Touch]] = {kind: {} for kind in Kind}

    def rivals(self, kind: Kind, address: int, touch: _Touch) -> Iterator[tuple[Kind, _Touch]]:
        """Others who do at an address what does not go together with a touch, which is noted."""
        for rival in _RIVALS[kind]:
            other = self.first[rival].get(address)
            if other is not None and other.party != touch.party:
                yield rival, other
        self.first[kind].setdefault(address, touch)


class Simulation:
    """The GPU of one function. `accesses` and `barriers` are those of its text."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.barriers: list[Statement] = []
        self.launch()
        self.forget()

    def launch(self) -> None:
        """A kernel begins: what was done before is done."""
        self.in_launch = _Log()
        self.block_number = -1

    def forget(self) -> None:
        """A block has ended, and with it what its memory held: `fresh` are its arrays by their id,
        which is theirs as long as they are here, `written` the addresses of elements that have a
        value, `own_writes` who gave one to its own copy of an element, `pending` the asynchronous
        copies by address, and `groups` what each thread copies to, by group, the open one last."""
        self.fresh: dict[int, Array] = {}
        self.written: set[int] = set()
        self.own_writes: dict[tuple[str, str], tuple[int, int]] = {}
        self.pending: dict[int, _Pending] = {}
        self.groups: dict[int, list[set[int]]] = {}

    def run(
        self, block: Axes, threads: Axes, thread: Callable[..., Generator[int, None, None]]
    ) -> None:
        """Run a block of threads.

        Args:
            block: its indices, by axis.
            threads: the extents of the axes of threads.
            thread: what one thread does; yields the numbers of barriers.

        Raises:
            DataRace, BarrierDivergence: the result depends on the order of threads, or there
                is none.
            IndexOutOfBounds: an index is out of bounds; the message tells in which thread.
            UninitializedRead: an element of the memory of a block or a thread has no value.
        """
        self.block_number += 1
        self.block, self.threads = block, threads
        self.block_indices = tuple(index for _, index in block)
        if prod(extent for _, extent in threads) > MAX_THREADS:
            extents = " * ".join(f"{extent} ({tag})" for tag, extent in threads)
            raise ThreadError(f"A block has {extents} threads, and GPUs have {MAX_THREADS} at most")
        try:
            self.run_phases([thread(*i) for i in product(*(range(n) for _, n in threads))])
        finally:
            self.forget()

    def run_phases(self, running: Sequence[Generator[int, None, None]]) -> None:
        """Run threads from barrier to barrier."""
        stops: list[int | None] = [-1]
        while any(stop is not None for stop in stops):
            self.in_phase = _Log()
            self.bases: dict[int, tuple[Array, int]] = {}
            self.race: DataRace | None = None
            self.unset: tuple[int, int, tuple[Any, ...]] | None = None
            self.outside: IndexOutOfBounds | None = None
            stops = [self.go_on(number, each) for number, each in enumerate(running)]
            if self.outside is not None:
                # An index that comes out of a race, or was never written, is no cause.
                raise self.race or self.unset_error() or self.outside
            self.check_alike(stops)
            # What is read too early, another thread may write after all.
            if (error := self.race or self.unset_error()) is not None:
                raise error

    def go_on(self, number: int, thread: Generator[int, None, None]) -> int | None:
        """The barrier at which a thread stops; None where it ends."""
        self.thread = number
        try:
            return next(thread, None)
        except IndexOutOfBounds as error:
            who = _capital(self.who(number, self.block_indices))
            where = f", {Statement('', error.span)}" if error.span else ""
            located = IndexOutOfBounds(f"{who}: {error.message}{where}", error.span)
            self.outside = self.outside or located
            return None

    def check_alike(self, stops: Sequence[int | None]) -> None:
        """Refuse threads that stop at different barriers."""
        if len(set(stops)) < 2:
            return
        waiting = next(i for i, stop in enumerate(stops) if stop is not None)
        other = next(i for i, stop in enumerate(stops) if stop != stops[waiting])
        first, second = stops[waiting], stops[other]
        assert first is not None
        does = "ends" if second is None else f"waits at another one, {self.barriers[second]}"
        raise BarrierDivergence(
            f"{_capital(self.who(waiting, self.block_indices))} waits at the barrier "
            f"{self.barriers[first]}, and {self.who(other, self.block_indices)} {does}. All "
            "threads of a block have to come to each barrier: move it out of the condition or "
            "loop that is not the same for all of them",
            self.barriers[first].span,
        )

    # Asynchronous copies

    def copy(self, value: Any, number: int, array: Array, indices: tuple[Any, ...]) -> None:
        """Stores a value that has not arrived before its thread has waited for its group."""
        self.write(value, number, array, indices)
        groups = self.groups.setdefault(self.thread, [set()])
        for address in self.addresses(array, indices):
            groups[-1].add(address)
            self.pending[address] = _Pending(self.thread, number, len(groups) - 1)

    def commit_group(self) -> None:
        """What a thread has copied since it last did so is a group."""
        self.groups.setdefault(self.thread, [set()]).append(set())

    def wait_group(self, most: int) -> None:
        """Waits until all groups of a thread have arrived but for the last ones, as many as
        `most`."""
        groups = self.groups.get(self.thread, [])
        for number, addresses in enumerate(groups[: max(len(groups) - 1 - most, 0)]):
            for address in addresses:
                copy = self.pending.get(address)
                if copy is not None and (copy.thread, copy.group) == (self.thread, number):
                    del self.pending[address]
            addresses.clear()

    def check_arrived(self, number: int, array: Array, indices: tuple[Any, ...]) -> None:
        """Notes it where an element is touched for which a copy is under way."""
        if not self.pending or self.race is not None:
            return
        for copy in filter(None, map(self.pending.get, self.addresses(array, indices))):
            access, theirs = self.accesses[number], self.accesses[copy.access]
            element = f"{access.buffer}[{', '.join(map(str, indices))}]"
            who, other = (self.who(n, self.block_indices) for n in (self.thread, copy.thread))
            self.race = self.race or PendingCopy(
                f"{_capital(who)} {access.kind.value} {element} {access.statement}, while {other} "
                f"copies to it asynchronously {theirs.statement}, and has not waited for that: let "
                "it commit the copy by T.ptx_commit_group(), wait by T.ptx_wait_group(0), and put "
                "a barrier after that",
                access.statement.span,
            )

    # Accesses

    def read(self, number: int, array: Array, indices: tuple[Any, ...]) -> tuple[Any, ...]:
        """Notes a read, and hands the indices on."""
        self.check_arrived(number, array, indices)
        addresses = self.addresses(array, indices)
        for address in addresses:
            for rival, other in self.rivals(number, address):
                self.race = self.race or self.error(number, rival, other, indices)
        if id(array) in self.fresh:
            self.check_value(number, indices, addresses)
        return indices

    def own_read(self, number: int, array: Array, indices: tuple[Any, ...]) -> tuple[Any, ...]:
        """Checks that what is read has a value, and hands the indices on."""
        if id(array) in self.fresh:
            self.check_value(number, indices, self.addresses(array, indices))
        return indices

    def check_value(self, number: int, indices: tuple[Any, ...], addresses: list[int]) -> None:
        """Notes it where an element is read before it has a value."""
        if not self.written.issuperset(addresses):
            self.unset = self.unset or (self.thread, number, indices)

    def own_write(self, value: Any, number: int, array: Array, indices: tuple[Any, ...]) -> None:
        """Stores a value in memory of one thread."""
        array[indices] = value
        self.written.update(self.addresses(array, indices))
        key = self.accesses[number].buffer, str(indices)
        self.own_writes.setdefault(key, (self.thread, number))

    def is_fresh(self, array: Array) -> None:
        """Memory of a block or a thread begins."""
        self.fresh[id(array)] = array

    def write(self, value: Any, number: int, array: Array, indices: tuple[Any, ...]) -> None:
        """Stores a value. Threads that write the same value do not race."""
        self.check_arrived(number, array, indices)
        before = np.copy(array[indices]).reshape(-1)
        array[indices] = value
        after = np.asarray(array[indices]).reshape(-1)
        addresses = self.addresses(array, indices)
        self.written.update(addresses)
        for lane, address in enumerate(addresses):
            for rival, other in self.rivals(number, address):
                old, new = before[lane], after[lane]
                both = self.accesses[number].kind is Kind.WRITE and rival is Kind.WRITE
                if both and old.tobytes() == new.tobytes():
                    continue
                values = f", first {old}, then {new}" if both else ""
                self.race = self.race or self.error(number, rival, other, indices, values)

    def rivals(self, number: int, address: int) -> Iterator[tuple[Kind, _Touch]]:
        """Others who get in the way of an access of the present thread."""
        access, thread, block = self.accesses[number], self.thread, self.block_indices
        yield from self.in_phase.rivals(access.kind, address, _Touch(thread, number, thread, block))
        if access.in_launch:
            touch = _Touch(self.block_number, number, thread, block)
            yield from self.in_launch.rivals(access.kind, address, touch)

    def addresses(self, array: Array, indices: tuple[Any, ...]) -> list[int]:
        """Where in memory elements are."""
        base = self.bases.get(id(array))
        if base is None:
            base = self.bases[id(array)] = array, array.__array_interface__["data"][0]
        where: Any = base[1]
        for index, stride in zip(indices, array.strides, strict=True):
            # Lanes are int32, and addresses are not.
            wide = index.astype(np.int64) if isinstance(index, np.ndarray) else index
            where = where + wide * stride
        return where.tolist() if isinstance(where, np.ndarray) else [where]

    # What errors say

    def who(self, thread: int, block: tuple[int, ...]) -> str:
        """Such as "thread (threadIdx.x=3) of block (blockIdx.x=0)"."""
        shape = tuple(extent for _, extent in self.threads)
        indices = np.unravel_index(thread, shape) if shape else ()
        names = ", ".join(
            f"{tag}={index}" for (tag, _), index in zip(self.threads, indices, strict=True)
        )
        text = f"thread ({names})" if names else "the thread"
        if self.block:
            names = ", ".join(
                f"{tag}={index}" for (tag, _), index in zip(self.block, block, strict=True)
            )
            text += f" of block ({names})"
        return text

    def unset_error(self) -> UninitializedRead | None:
        """What to say of a thread that has read an element without a value; None if none has."""
        if self.unset is None:
            return None
        reader, number, indices = self.unset
        access, here = self.accesses[number], self.block_indices
        element = f"{access.buffer}[{', '.join(map(str, indices))}]"
        reads = f"{_capital(self.who(reader, here))} reads {element} {access.statement}"
        other = (
            self.own_writes.get((access.buffer, str(indices))) if access.owner == "thread" else None
        )
        if other is not None:
            thread, write = other
            reason = (
                f"and {self.who(thread, here)} writes its own {self.accesses[write].statement}: "
                f'each thread has a "{access.buffer}" of its own. Use "shared" memory'
            )
        else:
            own = access.owner == "thread"
            writes = "it has not written" if own else f"no thread of its {access.owner} has written"
            reason = f"which {writes} before. Write it first, or read it under a condition"
            if access.owner == "warp":
                reason += f'. Each warp has a "{access.buffer}" of its own: use "shared" memory'
        return UninitializedRead(f"{reads}, {reason}", access.statement.span)

    def error(
        self,
        number: int,
        rival: Kind,
        other: _Touch,
        indices: tuple[Any, ...],
        values: str = "",
    ) -> DataRace:
        """What to say of two threads that meet at an element."""
        mine, theirs = self.accesses[number], self.accesses[other.access]
        element = ", ".join(map(str, indices))
        here = self.block_indices
        if other.block != here:
            advice = (
                "and blocks do not wait for each other. Give each block elements of its own, use "
                "two kernels, or add by T.atomic_add"
            )
        elif str(mine.statement) == str(theirs.statement) or mine.kind is rival:
            advice = (
                "with no barrier between the two. Give each thread an element of its own, keep "
                "the value in a local buffer across a barrier, or add by T.atomic_add"
            )
        else:
            advice = (
                "with no barrier between the two. Put "
                'T.evaluate(T.tvm_storage_sync("shared")) between them'
            )
        return DataRace(
            f"Threads race for {mine.buffer}[{element}]: {self.who(other.thread, other.block)} "
            f"{rival.value} it {theirs.statement}, and {self.who(self.thread, here)} "
            f"{mine.kind.value} it {mine.statement}{values}, {advice}",
            mine.statement.span,
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
