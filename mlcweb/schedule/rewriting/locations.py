"""Where new blocks that copy a buffer stand between the block that writes it and its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.schedule.analysis.scopes import scope_at, short_title
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.rewriting.nests import position_in, statements_of
from mlcweb.schedule.state import BlockPlace, ScheduleState, shared_prefix
from mlcweb.tir.stmt import Block, For


@dataclass(frozen=True, slots=True)
class StageLocation:
    """The loop, or the scope's block, in whose body a stage is inserted, and where there."""

    container: For | Block
    position: int

    @property
    def loop(self) -> For | None:
        return self.container if isinstance(self.container, For) else None


def location_after(
    state: ScheduleState, scope: BlockPlace, writer: BlockPlace, readers: Sequence[BlockPlace]
) -> StageLocation:
    """Right before the first reader after the writer, in the innermost loop around both; at the end
    of the scope where no reader follows."""
    blocks = scope_at(state, scope)
    after = blocks.position(writer.block)
    later = [reader for reader in readers if blocks.position(reader.block) > after]
    if not later:
        return StageLocation(scope.block, len(statements_of(scope.block)))
    reader = min(later, key=lambda place: blocks.position(place.block))
    shared = shared_prefix([writer.parents, reader.parents])
    container = next(p for p in reversed(shared) if isinstance(p, (For, Block)))
    ends = [position_in(container, place) for place in (writer, reader)]
    if ends[0] >= ends[1]:
        raise DataflowError(
            f"There is no place for a copy between the blocks {short_title(writer)} and "
            f"{short_title(reader)}",
            [writer.statement, reader.statement],
            "bring the blocks into loops of their own first",
        )
    return StageLocation(container, ends[1])
