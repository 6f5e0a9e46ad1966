"""Design spaces made by rules, applied to each block."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space.block_facts import has_block, place_of
from mlcweb.meta_schedule.space.generator import (
    FROM_TARGET,
    MutatorProbType,
    PostprocType,
    ScheduleRuleType,
    SpaceGenerator,
)
from mlcweb.meta_schedule.space.rules import SCHEDULE_RULE, ApplyCustomRule, ScheduleRule
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.state import executed_substatements
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, Stmt


class PostOrderApply(SpaceGenerator):
    """Applies each rule to all blocks, from the last to the first, the root block before all.
    Where a rule offers several ways, each goes on by itself.

    Args:
        f_block_filter: tells of a block whether rules are applied to it; to all by default.
    """

    def __init__(
        self,
        f_block_filter: Callable[[Block], bool] | None = None,
        sch_rules: ScheduleRuleType = FROM_TARGET,
        postprocs: PostprocType = FROM_TARGET,
        mutator_probs: MutatorProbType = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        if self.sch_rules is None:
            self._settle(None)
        sch = Schedule(mod, seed=self.seed)
        blocks = self._blocks(sch)
        found = [sch]
        for rule in self.sch_rules or ():
            found = _applied(rule, found, blocks)
        return found

    def _blocks(self, sch: Schedule) -> list[BlockRV]:
        """The blocks of all functions, inner ones before those around them."""
        return [
            sch.get_block(block.name_hint, var.name_hint)
            for var, func in sch.mod.functions.items()
            if isinstance(func, PrimFunc)
            for block in _in_post_order(func.body)
            if self.f_block_filter is None or self.f_block_filter(block)
        ]


def _applied(
    rule: ScheduleRule, schedules: list[Schedule], blocks: list[BlockRV]
) -> list[Schedule]:
    """What a rule makes of schedules; what it offers last comes first."""
    done: list[Schedule] = []
    waiting = [(sch, len(blocks)) for sch in schedules]
    while waiting:
        sch, left = waiting.pop()
        if left == 0:
            done.append(sch)
            continue
        block = blocks[left - 1]
        if has_block(sch, block) and _is_for(rule, sch, block):
            waiting.extend((made, left - 1) for made in rule.apply(sch, block))
        else:
            waiting.append((sch, left - 1))
    return done


def _is_for(rule: ScheduleRule, sch: Schedule, block: BlockRV) -> bool:
    """Blocks with a rule of their own are left to it."""
    named = SCHEDULE_RULE in place_of(sch, block).block.annotations
    return not named or isinstance(rule, ApplyCustomRule)


def _in_post_order(statement: Stmt) -> list[Block]:
    found = [b for below in executed_substatements(statement) for b in _in_post_order(below)]
    return [*found, statement] if isinstance(statement, Block) else found
