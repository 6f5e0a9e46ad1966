"""Stage pipelines: scopes in which each block's input is ready before the block starts.

Moving, inlining and caching blocks rests on it: no block overwrites what an earlier one reads, and
a block reads only what has been written by then (the *region cover* property of TVM).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from mlcweb.schedule.analysis.effects import is_uncovered
from mlcweb.schedule.analysis.scopes import Scope, scope_at
from mlcweb.schedule.analysis.units import RawPlace
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.state import BlockPlace, ScheduleState, shared_prefix
from mlcweb.tir.buffer import Buffer


def check_stage_pipeline(state: ScheduleState, scope: BlockPlace) -> None:
    """Raise DataflowError unless the blocks of `scope` form a stage pipeline.

    Checked: no block writes a buffer that an earlier one reads; no block is known to read elements
    that its producers, in the same loops, have not written.
    """
    # Whoever looks for a place for a block asks this of the same state for each place.
    state.cached(("stages", scope.block.identity), lambda: _check_stages(state, scope))


def _check_stages(state: ScheduleState, scope: BlockPlace) -> None:
    blocks = scope_at(state, scope)
    for buffer, writers in blocks.writers.items():
        check_not_overwritten(scope, blocks, buffer, writers, blocks.readers.get(buffer, ()))
    for reader in blocks.units:
        check_cover(scope, blocks, reader)


def check_not_overwritten(
    scope: BlockPlace,
    blocks: Scope,
    buffer: Buffer,
    writers: Iterable[BlockPlace],
    readers: Iterable[BlockPlace],
) -> None:
    """Raise DataflowError where one of `writers` comes after one of `readers` of a buffer."""
    for reader, writer in product(readers, writers):
        if isinstance(reader, RawPlace) and isinstance(writer, RawPlace):
            continue  # Nobody moves them.
        if blocks.position(writer.block) > blocks.position(reader.block):
            raise DataflowError(
                f"{_of(scope)} is not a stage pipeline: the {writer.title} overwrites "
                f'"{buffer.name}", which the {reader.title} before it reads',
                [writer.statement, reader.statement],
                "write to a buffer of its own",
            )


def check_cover(
    scope: BlockPlace, blocks: Scope, reader: BlockPlace, of: Buffer | None = None
) -> None:
    """Raise DataflowError where a block reads elements (of one buffer) that its producers do not
    write."""
    read = dict.fromkeys(region.buffer for region in reader.block.reads)
    for buffer in read if of is None else [of]:
        writers = blocks.writers_before(buffer, reader)
        producers = [writer for writer in writers if not _stays_before(writer, reader)]
        if producers and is_uncovered(buffer, producers, reader):
            names = ", ".join(f'"{p.block.name_hint}"' for p in producers)
            raise DataflowError(
                f"{_of(scope)} is not a stage pipeline: the {reader.title} reads "
                f'elements of "{buffer.name}" that its producer {names} has not written by then '
                "(the region cover property does not hold)",
                [reader.statement, *(producer.statement for producer in producers)],
                "let the producer write all that is read",
            )


def _stays_before(writer: BlockPlace, reader: BlockPlace) -> bool:
    """Whether a statement outside of blocks has run as a whole before another unit starts: what it
    has not written then are the values from before, wherever the unit is computed later on."""
    is_raw = isinstance(writer, RawPlace) or isinstance(reader, RawPlace)
    return is_raw and not shared_prefix([writer.loops, reader.loops])


def _of(scope: BlockPlace) -> str:
    return f'The scope of block "{scope.block.name_hint}"'
