"""Rules that a block names itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.schedule_rule.block_facts import place_of
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.runtime.registry import get_global_func
from mlcweb.schedule import BlockRV, Schedule

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext

SCHEDULE_RULE = "schedule_rule"
"""The annotation of a block with a rule of its own, which other rules leave alone."""


class ApplyCustomRule(ScheduleRule):
    """Applies to a block with the annotation `schedule_rule = "name"` the global function
    `meta_schedule.<key>.<name>`, for a key of the target: "cpu", or its kind. Where there is none,
    the annotation is taken away, and other rules apply."""

    keys: tuple[str, ...] = ("cpu",)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        target: Any = context.target
        if target is not None:
            self.keys = (*target.keys, target.kind.name)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = place_of(sch, block).block.annotations.get(SCHEDULE_RULE)
        if name is None or name == "None":
            return [sch]
        for prefix in ("meta_schedule", "s_tir.meta_schedule"):
            for key in self.keys:
                function: Any = get_global_func(f"{prefix}.{key}.{name}", allow_missing=True)
                if function is not None:
                    result = function(sch, block)
                    return [sch] if result is None else list(result)
        # Nobody knows that rule: the others take the block.
        sch.unannotate(block, SCHEDULE_RULE)
        return [sch]
