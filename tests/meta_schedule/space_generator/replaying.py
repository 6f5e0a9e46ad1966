"""Spaces of the cases, with the decisions that TVM made, and after post-processing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import mlcweb.meta_schedule.postproc as postproc
import mlcweb.meta_schedule.schedule_rule as schedule_rule
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.tir import Schedule
from tests.meta_schedule.space_generator.cases import CASES, module

NAMES = {"ms": SimpleNamespace(schedule_rule=schedule_rule, postproc=postproc)}


def generator(name: str) -> PostOrderApply:
    """The generator of a case, which knows its task."""
    case = CASES[name]
    kind = case["kind"] or Target(case["target"]).kind.name
    made = PostOrderApply(
        sch_rules=eval(case["rules"], NAMES) if case["rules"] else kind,
        postprocs=eval(case["postprocs"], NAMES) if case["postprocs"] else kind,
        mutator_probs=kind,
    )
    target = Target(case["target"])
    made._initialize_with_tune_context(
        SimpleNamespace(mod=module(case["program"]), target=target, rand_state=1)
    )
    return made


def finished(
    made: PostOrderApply, mod: IRModule, trace: Any, lines: Sequence[str]
) -> tuple[Schedule, bool]:
    """A schedule with the decisions of a trace of TVM, and whether post-processing accepts it."""
    chosen = iter(decisions(lines))
    sch = Schedule(mod)
    trace.apply_to_schedule(sch, remove_postproc=False, decision_provider=lambda *_: next(chosen))
    sch.enter_postproc()
    assert made.postprocs is not None
    return sch, all(each.apply(sch) for each in made.postprocs)


def decisions(lines: Sequence[str]) -> list[Any]:
    """What a trace decides, in order."""
    found = [re.search(r"decision=(\[[^\]]*\]|[^,)]*)", line) for line in lines]
    return [json.loads(match[1]) for match in found if match]
