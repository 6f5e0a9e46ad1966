"""ApplyDefaultSchedule: the first rule that knows a function schedules it."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.dlight.base.schedule_rule import ScheduleRule
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass, PassContext, PassInfo
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule, ScheduleError
from mlcweb.tir.function import SCHEDULED, PrimFunc


class ApplyDefaultSchedule(Pass):
    """Schedule each function of TensorIR by the first of some rules that has a schedule for it, and
    give it the attribute "tir.is_scheduled". Functions that have the attribute stay, and so do
    those that no rule knows.

    The target is that of the function (its attribute "target"), else that of the surrounding
    `with target:`.
    """

    def __init__(self, *rules: ScheduleRule) -> None:
        self.rules = rules
        self.info = PassInfo(0, "ApplyDefaultSchedule")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        scheduled = {
            var: func.with_attr(SCHEDULED, True)
            for var, old in mod.functions.items()
            if isinstance(old, PrimFunc) and SCHEDULED not in old.attrs
            for func in (_scheduled(old, target_of(old, "ApplyDefaultSchedule"), self.rules),)
            if func is not None
        }
        return mod.with_functions({**mod.functions, **scheduled}) if scheduled else mod


def target_of(func: PrimFunc, name: str) -> Target:
    """The target of a function, or that of the surrounding `with target:`.

    Raises:
        TVMError: there is none; the message has the name of the pass that asks.
    """
    target = func.attrs.get("target") or Target.current()
    if target is None:
        raise TVMError(
            f"{name} does not know the target: run it inside of `with target:`, or give functions "
            'the attribute "target"'
        )
    return Target(target)


def _scheduled(func: PrimFunc, target: Target, rules: Sequence[ScheduleRule]) -> PrimFunc | None:
    """A function with the schedule of the first rule that has one."""
    for rule in rules:
        if not rule.is_target_available(target):
            continue
        try:
            space = rule.apply(func, target, False)
        except ScheduleError:
            continue
        schedules = [space] if isinstance(space, Schedule) else space
        if schedules:
            (var,) = schedules[0].mod.functions
            new = schedules[0].mod.functions[var]
            assert isinstance(new, PrimFunc)
            return new
    return None
