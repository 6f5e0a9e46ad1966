"""What a schedule knows of blocks and scopes, as TVM's tools ask for it: whether iterations can be
rearranged, and which blocks depend on which."""

from __future__ import annotations

from mlcweb.arith import detect_iter_map
from mlcweb.schedule.analysis.block_facts import is_root
from mlcweb.schedule.analysis.effects import is_covered
from mlcweb.schedule.analysis.scopes import Scope, is_affine, loop_ranges, scope_around, scope_at
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.analysis.units import RawPlace
from mlcweb.schedule.errors import is_accepted
from mlcweb.schedule.references import BlockScope, CachedFlags, Dependency, DepKind
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.stmt import Block


def cached_flags(state: ScheduleState, place: BlockPlace) -> CachedFlags:
    """What holds of a block."""
    blocks = scope_at(state, place)
    return CachedFlags(
        is_affine(state, place) and _has_unit_steps(place),
        is_root(place) or _is_covered(scope_around(state, place), place),
        is_accepted(lambda: check_stage_pipeline(state, place))
        and all(_is_covered(blocks, child) for child in blocks.children),
    )


def _has_unit_steps(place: BlockPlace) -> bool:
    """Whether each iterator is bound to one part of the loops at most, scaled by nothing."""
    realize = place.realize
    ranges = loop_ranges(place.loops)
    sums = detect_iter_map(realize.iter_values, ranges, realize.predicate).indices
    return sums is not None and all(
        len(each.args) <= 1 and all(is_const_int(part.scale, 1) for part in each.args)
        for each in sums
    )


def _is_covered(scope: Scope, reader: BlockPlace) -> bool:
    """Whether what a block reads has been written, of buffers that earlier blocks write."""
    for buffer in {region.buffer for region in reader.block.reads}:
        producers = scope.writers_before(buffer, reader)
        if producers and not is_covered(buffer, producers, reader):
            return False
    return True


def block_scope(state: ScheduleState, place: BlockPlace) -> BlockScope:
    """The dependences between the blocks directly inside of a block."""
    scope = scope_at(state, place)
    blocks = [unit for unit in scope.units if not isinstance(unit, RawPlace)]
    dependencies: list[Dependency] = []
    for number, later in enumerate(blocks):
        for earlier in blocks[:number]:
            for kind in _kinds(earlier.block, later.block):
                dependencies.append(
                    Dependency(state.reference(earlier), state.reference(later), kind)
                )
    return BlockScope(tuple(dependencies))


def _kinds(earlier: Block, later: Block) -> list[DepKind]:
    """How a block depends on an earlier one, by the buffers that they declare."""
    read, written = ({r.buffer for r in regions} for regions in (earlier.reads, earlier.writes))
    reads, writes = ({r.buffer for r in regions} for regions in (later.reads, later.writes))
    pairs = (
        (DepKind.RAW, written & reads),
        (DepKind.WAW, written & writes),
        (DepKind.WAR, read & writes),
    )
    return [kind for kind, shared in pairs if shared]
