"""Several design spaces as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space_generator.space_generator import (
    FROM_TARGET,
    MutatorProbType,
    PostprocType,
    ScheduleRuleType,
    SpaceGenerator,
)  # fmt: skip
from mlcweb.schedule import Schedule

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


class SpaceGeneratorUnion(SpaceGenerator):
    """The design spaces of several generators, in their order. Post-processors and mutators are
    the union's own."""

    def __init__(
        self,
        space_generators: Sequence[SpaceGenerator],
        sch_rules: ScheduleRuleType = FROM_TARGET,
        postprocs: PostprocType = FROM_TARGET,
        mutator_probs: MutatorProbType = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = list(space_generators)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        for generator in self.space_generators:
            generator._initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        return [
            sch
            for generator in self.space_generators
            for sch in generator.generate_design_space(mod)
        ]

    def clone(self) -> Self:
        other = super().clone()
        other.space_generators = [generator.clone() for generator in self.space_generators]
        return other
