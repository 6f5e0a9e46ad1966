"""References to the blocks and loops of a schedule's program, and what is known of these, as TVM's
tools ask for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from mlcweb.tir.stmt import Block, For


@dataclass(frozen=True, slots=True)
class StmtSRef:
    """A reference to a block or loop in the program of a schedule, and to the next one around it.
    It stays what it was when the schedule goes on. After `ScheduleState.replace` it refers to what
    its statement has become, or to None."""

    stmt: Block | For | None
    parent: StmtSRef | None
    _schedule: object = field(repr=False)

    def same_as(self, other: object) -> bool:
        """Whether both refer to one statement of one schedule; that of a copy is another."""
        return (
            isinstance(other, StmtSRef)
            and self.stmt is other.stmt
            and self._schedule is other._schedule
        )

    @staticmethod
    def inline_mark() -> StmtSRef:
        """The reference, to no statement, that stands for inlining in the place of a loop."""
        return _INLINE_MARK

    @staticmethod
    def root_mark() -> StmtSRef:
        """The reference, to no statement, that stands for staying where a block is."""
        return _ROOT_MARK

    def _refer(self, stmt: Block | For | None, parent: StmtSRef | None) -> None:
        object.__setattr__(self, "stmt", stmt)
        object.__setattr__(self, "parent", parent)


_INLINE_MARK, _ROOT_MARK = (StmtSRef(None, None, object()) for _ in range(2))


class CachedFlags(NamedTuple):
    """What holds of a block.

    Attributes:
        affine_binding: its loops run its iterators through their domains one to one, upwards in
            steps of one.
        region_cover: what it reads, the blocks before it in its scope have written, if any has.
        stage_pipeline: inside of it, blocks read what has been written, and overwrite nothing that
            was read.
    """

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class DepKind(IntEnum):
    """How a block depends on an earlier one: it reads what that wrote, writes it again, or writes
    what that read."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@dataclass(frozen=True, slots=True)
class Dependency:
    """That the block `dst` depends on the block `src`."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


@dataclass(frozen=True, slots=True)
class BlockScope:
    """The dependences between the blocks of a scope."""

    dependencies: tuple[Dependency, ...]

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """What depends on a block."""
        return [each for each in self.dependencies if each.src.same_as(block)]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """What a block depends on."""
        return [each for each in self.dependencies if each.dst.same_as(block)]
