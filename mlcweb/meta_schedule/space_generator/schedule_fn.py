"""Design spaces that a function spells out."""

from __future__ import annotations

from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space_generator.defaults import Defaults, of_kind
from mlcweb.meta_schedule.space_generator.space_generator import (
    FROM_TARGET,
    MutatorProbType,
    PostprocType,
    ScheduleFnType,
    ScheduleRuleType,
    SpaceGenerator,
)  # fmt: skip
from mlcweb.schedule import Schedule


class ScheduleFn(SpaceGenerator):
    """The design space of a schedule function.

    Args:
        sch_fn: transforms the schedule that it is given. What it returns is used if it is a
            schedule, or a list of schedules.
    """

    def __init__(
        self,
        sch_fn: ScheduleFnType,
        sch_rules: ScheduleRuleType = FROM_TARGET,
        postprocs: PostprocType = FROM_TARGET,
        mutator_probs: MutatorProbType = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn

    def _defaults(self, target: Any) -> Defaults:
        """Post-processors that leave a schedule as its function made it, but for what it asks for
        in annotations and for reductions that are still whole."""
        return of_kind("llvm")

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """See `SpaceGenerator`. A TypeError tells what else the function returned."""
        sch = Schedule(mod, seed=self.seed)
        result = self.sch_fn(sch)
        if result is None:
            return [sch]
        found = [result] if isinstance(result, Schedule) else result
        if not isinstance(found, (list, tuple)) or not all(
            isinstance(each, Schedule) for each in found
        ):
            raise TypeError(
                "A schedule function returns None, a schedule or a list of schedules, not "
                f"{type(result).__name__}"
            )
        return list(found)
