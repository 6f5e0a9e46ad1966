"""Inlining of blocks that do one thing to each element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlcweb.ir.op import Op
from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule.space.block_facts import (
    access_pattern,
    consumers_of,
    is_in_spatial_function,
    is_root,
    place_of,
    producers_of,
)
from mlcweb.meta_schedule.space.rules import ScheduleRule
from mlcweb.schedule import BlockRV, Schedule, ScheduleError
from mlcweb.schedule.primitives.inline import compute_inline, reverse_compute_inline
from mlcweb.schedule.scopes import is_output_block, is_trivially_true, scope_at, why_not_complete
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.expr import Call, Select
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, IfThenElse

_Primitive = Callable[[ScheduleState, BlockIdentity], ScheduleState]


class InlineConstantScalars(ScheduleRule):
    """Inlines blocks that make one number out of nothing: such a block would count as a second
    producer, and keep `AutoInline` from inlining into the first."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        found = place.block
        makes_scalar = not found.reads and len(found.writes) == 1
        if makes_scalar and not is_root(place) and not found.writes[0].buffer.shape:
            if not is_output_block(sch.state, place):
                sch.compute_inline(block)
        return [sch]


@dataclass(eq=False)
class AutoInline(ScheduleRule):
    """Inlines spatial blocks where nothing is lost by it.

    Args:
        into_producer: blocks may go into the block that they read from.
        into_consumer: blocks may go into the blocks that read from them.
        inline_const_tensor: blocks that read nothing are inlined whatever else holds.
        disallow_if_then_else: blocks with branches stay. This and what follows does not count in
            functions that reduce nothing.
        require_injective: blocks that read one element for several of their own stay.
        require_ordered: blocks that transpose stay.
        disallow_op: blocks that call operators of these names stay.
    """

    into_producer: bool
    into_consumer: bool
    inline_const_tensor: bool
    disallow_if_then_else: bool
    require_injective: bool
    require_ordered: bool
    disallow_op: list[str] | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if is_root(place) or len(place.block.writes) != 1:
            return [sch]
        inlines = self.inline_const_tensor and not place.block.reads
        if inlines and self._fits_consumers(sch.state, place):
            sch.compute_inline(block)
        elif self._is_allowed(sch, place):
            if self.into_consumer and self._fits_consumers(sch.state, place):
                sch.compute_inline(block)
            elif self.into_producer and self._fits_producer(sch.state, place):
                sch.reverse_compute_inline(block)
        return [sch]

    def _is_allowed(self, sch: Schedule, place: BlockPlace) -> bool:
        if place.block.annotations.get("meta_schedule.inline_rule") == "disable":
            return False
        if is_in_spatial_function(sch, place):
            return True
        if self.disallow_op and _calls(place.realize, self.disallow_op):
            return False
        if self.disallow_if_then_else and _branches(place.realize):
            return False
        if not self.require_injective and not self.require_ordered:
            return True
        for read in place.block.reads:
            pattern = access_pattern(read, place.block.writes[0])
            if self.require_injective and not (pattern and pattern.injective):
                return False
            if self.require_ordered and not (pattern and pattern.ordered):
                return False
        return True

    def _fits_consumers(self, state: ScheduleState, place: BlockPlace) -> bool:
        return bool(consumers_of(state, place)) and _works(compute_inline, state, place)

    def _fits_producer(self, state: ScheduleState, place: BlockPlace) -> bool:
        producers = producers_of(state, place)
        if len(producers) != 1 or "meta_schedule.auto_tensorize" in producers[0].block.annotations:
            return False
        scope = scope_at(state, state.scope_of(place))
        is_complete = why_not_complete(scope, producers[0].block) is None
        return is_complete and _works(reverse_compute_inline, state, place)


def _works(primitive: _Primitive, state: ScheduleState, place: BlockPlace) -> bool:
    try:
        primitive(state, place.block.identity)
    except ScheduleError:
        return False
    return True


def _names(node: Call) -> str:
    name = node.op.name if isinstance(node.op, Op) else node.op.name_hint
    return name.removeprefix("tir.").removeprefix("tirx.")


def _calls(realize: BlockRealize, names: list[str]) -> bool:
    bare = {name.removeprefix("tir.").removeprefix("tirx.") for name in names}
    return any(isinstance(node, Call) and _names(node) in bare for node in walk(realize))


def _branches(realize: BlockRealize) -> bool:
    for node in walk(realize):
        if isinstance(node, (IfThenElse, Select)):
            return True
        if isinstance(node, Call) and _names(node) == "if_then_else":
            return True
        if isinstance(node, BlockRealize) and not is_trivially_true(node.predicate):
            return True
    return False
