"""Patterns of several bindings of a dataflow block, and who uses what between them.

with PatternContext() as context:
    first, second = is_op("relax.matmul")(…), is_op("relax.nn.relu")(…)
    first >> second
    found = context.match_dfb(block)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise

from mlcweb.ir.visitor import walk
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import udchain
from mlcweb.relax.dpl.match import extract
from mlcweb.relax.dpl.pattern import CallPattern, DFPattern
from mlcweb.relax.struct_info import TensorStructInfo

_contexts: ContextVar[tuple[PatternContext, ...]] = ContextVar("pattern_contexts", default=())


@dataclass(frozen=True, slots=True)
class _Use:
    """`consumer` uses `producer`: as argument `index`, if that is not -1."""

    producer: DFPattern
    consumer: DFPattern
    index: int
    only: bool


class PatternContext:
    """A set of patterns, each for one binding of a block, and what is said of their uses.

    `incremental`: begin with what the context outside of this one says.
    """

    def __init__(self, incremental: bool = False) -> None:
        outside = PatternContext.current() if incremental else None
        self._uses: dict[_Use, None] = dict(outside._uses) if outside else {}
        self._same_shape: list[list[DFPattern]] = list(outside._same_shape) if outside else []

    def __enter__(self) -> PatternContext:
        _contexts.set((*_contexts.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _contexts.set(_contexts.get()[:-1])

    @staticmethod
    def current() -> PatternContext | None:
        contexts = _contexts.get()
        return contexts[-1] if contexts else None

    def note(
        self, producer: DFPattern, consumer: DFPattern, index: int, only: bool = False
    ) -> None:
        self._uses[_Use(producer, consumer, index, only)] = None

    def note_same_shape(self, patterns: list[DFPattern]) -> None:
        self._same_shape.append(patterns)

    def patterns(self) -> list[DFPattern]:
        """The patterns that something is said of, in the order in which it was."""
        ordered: dict[DFPattern, None] = {}
        for use in self._uses:
            ordered.update({use.producer: None, use.consumer: None})
        return list(ordered)

    def match_dfb(
        self,
        dfb: E.DataflowBlock,
        start_hint: E.Var | None = None,
        must_include_hint: bool = False,
    ) -> dict[DFPattern, E.Var] | None:
        """A variable of the block (or one that it uses) for each pattern, or None.

        Args:
            start_hint: a variable that the match should include, where there is a choice.
            must_include_hint: whether it has to.
        """
        search = _Search(self._uses, self._same_shape, dfb)
        first = None
        for bound in search.matches(self.patterns()):
            if start_hint is None or start_hint in bound.values():
                return bound
            first = first or bound
        return None if must_include_hint else first


class _Search:
    def __init__(
        self, uses: dict[_Use, None], same_shape: list[list[DFPattern]], block: E.DataflowBlock
    ) -> None:
        self.uses = list(uses)
        self.same_shape = same_shape
        self.values = {binding.var: binding.value for binding in block.bindings}
        self.users = udchain(block)
        self.results = {var for var in self.values if not isinstance(var, E.DataflowVar)}
        used = (var for var in self.users if var not in self.values)
        self.variables = [*used, *self.values]

    def matches(self, patterns: Sequence[DFPattern]) -> Iterator[dict[DFPattern, E.Var]]:
        return self.extend({}, self.connected(patterns))

    def connected(self, patterns: Sequence[DFPattern]) -> list[DFPattern]:
        """The patterns, each after one that it has to do with, calls first: those rule out most."""
        rest = sorted(patterns, key=lambda pattern: not isinstance(pattern, CallPattern))
        ordered: list[DFPattern] = []
        while rest:
            near = [p for p in rest if any(self.touch(p, other) for other in ordered)]
            ordered.append((near or rest)[0])
            rest.remove(ordered[-1])
        return ordered

    def touch(self, a: DFPattern, b: DFPattern) -> bool:
        return any({use.producer, use.consumer} == {a, b} for use in self.uses)

    def extend(
        self, bound: dict[DFPattern, E.Var], rest: Sequence[DFPattern]
    ) -> Iterator[dict[DFPattern, E.Var]]:
        if not rest:
            if self.shapes_agree(bound):
                yield bound
            return
        pattern = rest[0]
        for var in self.variables:
            if isinstance(pattern, CallPattern) and self.is_taken(var, bound):
                continue
            if extract(pattern, var, self.values) is None:
                continue
            more = {**bound, pattern: var}
            if all(self.holds(use, more) for use in self.uses if pattern in _ends(use)):
                yield from self.extend(more, rest[1:])

    def is_taken(self, var: E.Var, bound: dict[DFPattern, E.Var]) -> bool:
        """Whether another call is this variable's already."""
        return any(value is var for other, value in bound.items() if isinstance(other, CallPattern))

    def holds(self, use: _Use, bound: dict[DFPattern, E.Var]) -> bool:
        producer, consumer = bound.get(use.producer), bound.get(use.consumer)
        if producer is None or consumer is None:
            return True
        if consumer not in self.users.get(producer, ()):
            return False
        if use.index >= 0 and not self.is_argument(producer, consumer, use.index):
            return False
        if not use.only:
            return True
        return producer not in self.results and all(
            user is consumer for user in self.users[producer]
        )

    def is_argument(self, producer: E.Var, consumer: E.Var, index: int) -> bool:
        """Whether the variable is the one at this place among those that the value uses, which
        the fields of a tuple of arguments are, too, and constants are not."""
        used = [node for node in walk(self.values[consumer]) if isinstance(node, E.Var)]
        return index < len(used) and used[index] is producer

    def shapes_agree(self, bound: dict[DFPattern, E.Var]) -> bool:
        for patterns in self.same_shape:
            infos = [bound[p].struct_info for p in patterns if p in bound]
            extents = [i.values for i in infos if isinstance(i, TensorStructInfo)]
            shapes = [values for values in extents if values is not None]
            if len(shapes) < len(infos) or any(
                not dims.same_shape(shapes[0], shape) for shape in shapes[1:]
            ):
                return False
        return True


def _ends(use: _Use) -> tuple[DFPattern, DFPattern]:
    return use.producer, use.consumer


@dataclass(eq=False, slots=True)
class PatternSeq:
    """Patterns of which each uses the one before: `a ^ b ^ c`, or alone where `a >> b`."""

    patterns: list[DFPattern] = field(default_factory=list)
    only_use: bool = False

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Say that `other` uses the last pattern of this."""
        return used_by(self, other, index, only=False)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Say that `other` uses the last pattern of this, and nothing else does."""
        return used_by(self, other, index, only=True)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)

    def dup(self) -> PatternSeq:
        """Patterns that match the same in a row, but other values."""
        return chained([pattern.dup() for pattern in self.patterns], self.only_use)


def chained(patterns: Sequence[DFPattern], only: bool) -> PatternSeq:
    """Patterns of which each uses the one before."""
    context = PatternContext.current()
    if context:
        for before, after in pairwise(patterns):
            context.note(before, after, -1, only)
    return PatternSeq(list(patterns), only)


def used_by(
    producer: DFPattern | PatternSeq, consumer: DFPattern | PatternSeq, index: int, only: bool
) -> PatternSeq:
    before = producer.patterns if isinstance(producer, PatternSeq) else [producer]
    after = consumer.patterns if isinstance(consumer, PatternSeq) else [consumer]
    context = PatternContext.current()
    if context:
        context.note(before[-1], after[0], index, only)
    return PatternSeq([*before, *after], only)
