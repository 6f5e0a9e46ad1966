"""Design spaces, the schedules of a program with their decisions open: made by rules, written as a
function, and several as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Self

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.mutator import Mutator
from mlcweb.meta_schedule.space import Defaults, TaskInfo, of_kind
from mlcweb.meta_schedule.space.defaults import defaults_for
from mlcweb.meta_schedule.space.postprocs import Postproc
from mlcweb.meta_schedule.space.rules import SCHEDULE_RULE, ApplyCustomRule, ScheduleRule
from mlcweb.meta_schedule.utils import not_implemented
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.analysis.block_facts import has_block, place_of
from mlcweb.schedule.state import executed_substatements
from mlcweb.tir.function import prim_funcs
from mlcweb.tir.stmt import Block, Stmt

ScheduleFnType = Callable[[Schedule], "Schedule | Sequence[Schedule] | None"]
ScheduleRuleType = Sequence[ScheduleRule] | str
PostprocType = Sequence[Postproc] | str
MutatorProbType = Mapping[Mutator, float] | str

FROM_TARGET = "from-target"

_PARTS = ("sch_rules", "postprocs", "mutator_probs")


class SpaceGenerator(ABC):
    """Makes the design spaces of a program: schedules whose traces are replayed with other
    decisions.

    Args:
        sch_rules: rules, or the name of a kind of target with defaults ("wasm", "llvm"), or
            "from-target" for those of the task's target.
        postprocs: what every schedule goes through at the end; names as above.
        mutator_probs: how traces are changed, each with its probability; names as above.
    """

    def __init__(
        self,
        sch_rules: ScheduleRuleType = FROM_TARGET,
        postprocs: PostprocType = FROM_TARGET,
        mutator_probs: MutatorProbType = FROM_TARGET,
    ) -> None:
        self.sch_rules: list[ScheduleRule] | None = _own(sch_rules, list, "sch_rules")
        self.postprocs: list[Postproc] | None = _own(postprocs, list, "postprocs")
        self.mutator_probs: dict[Mutator, float] | None = _own(mutator_probs, dict, "mutator_probs")
        self.seed: int | None = None

    def _initialize_with_tune_context(self, context: TaskInfo) -> None:
        """Learn of the task, and let the rules, post-processors and mutators do so."""
        self.seed = getattr(context, "rand_state", None)
        self._settle(context.target)
        for name in _PARTS:
            for part in getattr(self, name):
                part._initialize_with_tune_context(context)

    def _defaults(self, target: Target | None) -> Defaults:
        """What is taken "from-target"."""
        return defaults_for(target)

    def _settle(self, target: Target | None) -> None:
        for name in _PARTS:
            if getattr(self, name) is None:
                setattr(self, name, getattr(self._defaults(target), name)())

    @abstractmethod
    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The design spaces of a module; each is a schedule with some decisions."""

    def clone(self) -> Self:
        """A generator of the same options, for another task."""
        other = copy(self)
        if self.sch_rules is not None:
            other.sch_rules = [rule.clone() for rule in self.sch_rules]
        if self.postprocs is not None:
            other.postprocs = [postproc.clone() for postproc in self.postprocs]
        if self.mutator_probs is not None:
            other.mutator_probs = {m.clone(): p for m, p in self.mutator_probs.items()}
        return other

    @staticmethod
    def create(kind: str | ScheduleFnType = "post-order-apply", **options: Any) -> SpaceGenerator:
        """A generator by name ("post-order-apply", "union", or a kind of target, whose defaults
        are taken), or of a schedule function."""
        if not isinstance(kind, str):
            return ScheduleFn(
                kind, **{"sch_rules": [], "postprocs": [], "mutator_probs": {}, **options}
            )
        if kind == "post-order-apply":
            return PostOrderApply(**options)
        if kind == "union":
            return SpaceGeneratorUnion(**options)
        return PostOrderApply(sch_rules=kind, postprocs=kind, mutator_probs=kind, **options)


def _own(parts: Any, kind: Callable[[Any], Any], name: str) -> Any:
    """Rules, post-processors or mutators, or the defaults of a kind; None for "from-target"."""
    if not isinstance(parts, str):
        return kind(parts)
    return None if parts == FROM_TARGET else getattr(of_kind(parts), name)()


class PySpaceGenerator(SpaceGenerator):
    """What generators of a program's own are subclasses of, in TVM. Their `__init__` need not call
    this one."""

    sch_rules = None
    postprocs = None
    mutator_probs = None
    seed = None

    _initialize_with_tune_context = not_implemented(SpaceGenerator, "_initialize_with_tune_context")


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

    def _defaults(self, target: Target | None) -> Defaults:
        """Post-processors that leave a schedule as its function made it, but for what it asks for
        in annotations and for reductions that are still whole."""
        return of_kind("llvm")

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """See `SpaceGenerator`. A TypeError tells what else the function returned."""
        sch = Schedule(mod, seed=self.seed)
        result = self.sch_fn(sch)
        if result is None:
            return [sch]
        schedules = [result] if isinstance(result, Schedule) else result
        if not isinstance(schedules, (list, tuple)) or not all(
            isinstance(each, Schedule) for each in schedules
        ):
            raise TypeError(
                "A schedule function returns None, a schedule or a list of schedules, not "
                f"{type(result).__name__}"
            )
        return list(schedules)


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

    def _initialize_with_tune_context(self, context: TaskInfo) -> None:
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
        schedules = [sch]
        for rule in self.sch_rules or ():
            schedules = _applied(rule, schedules, blocks)
        return schedules

    def _blocks(self, sch: Schedule) -> list[BlockRV]:
        """The blocks of all functions, inner ones before those around them. A TVMError where two of
        a function have one name: steps tell blocks by their names."""
        blocks: list[BlockRV] = []
        for name, func in prim_funcs(sch.mod).items():
            statements = _in_post_order(func.body)
            names = Counter(block.name_hint for block in statements)
            for block in statements:
                if self.f_block_filter is not None and not self.f_block_filter(block):
                    continue
                if names[block.name_hint] > 1:
                    raise TVMError(
                        f"Duplicated block name {block.name_hint} in function {name} not "
                        "supported! Give each block a name of its own"
                    )
                blocks.append(sch.get_block(block.name_hint, name))
        return blocks


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
            waiting.extend((offered, left - 1) for offered in rule.apply(sch, block))
        else:
            waiting.append((sch, left - 1))
    return done


def _is_for(rule: ScheduleRule, sch: Schedule, block: BlockRV) -> bool:
    """Blocks with a rule of their own are left to it."""
    named = SCHEDULE_RULE in place_of(sch, block).block.annotations
    return not named or isinstance(rule, ApplyCustomRule)


def _in_post_order(statement: Stmt) -> list[Block]:
    blocks = [b for below in executed_substatements(statement) for b in _in_post_order(below)]
    return [*blocks, statement] if isinstance(statement, Block) else blocks


create = SpaceGenerator.create
