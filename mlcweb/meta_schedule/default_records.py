"""Default schedules among the records of a tuned model.

A record without steps says that no trial was as fast as the schedule that `relax.build` gives the
function by default, whose constant weights are laid out ahead of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from mlcweb.dlight.defaults import schedule_by_default
from mlcweb.ir import IRModule, structural_hash
from mlcweb.lower.layout_preproc import remove_layout_copies
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.tuning_record import TuningRecord
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.relax.transform.apply_database import program_of
from mlcweb.relax.transform.layout_free import free_constants
from mlcweb.relax.transform.split_layout_rewrite import PREPACKED
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.schedule import Schedule
from mlcweb.tir.function import SCHEDULED, prim_funcs

ROUNDS, MIN_REPEAT_MS = 5, 2.0
"""How often two programs are timed in turn, and the shortest batch of calls, in milliseconds."""


def record_faster_defaults(
    database: Database, lowered: IRModule, target: Target | str
) -> dict[str, float]:
    """Record, for the functions of a lowered and fused model that were tuned for a processor, the
    default schedules that are faster than the fastest trial, beside which they are timed.

    Returns: their seconds per call, by the names of the functions.
    """
    chosen = Target(target)
    if chosen.kind.name in DEVICE_KINDS:
        return {}
    defaults = prim_funcs(schedule_by_default(lowered, chosen))
    faster: dict[str, float] = {}
    for name, func in prim_funcs(free_constants(lowered)).items():
        default = defaults.get(name + PREPACKED) or defaults[name]
        if SCHEDULED in func.attrs or SCHEDULED not in default.attrs:
            continue
        program = program_of(func)
        records = database.get_top_k(database.commit_workload(program), 1)
        if not records or not records[0].is_valid:
            continue
        tuned = remove_layout_copies(records[0].schedule().mod)
        share = share_of_time(program_of(default), tuned, chosen)
        if share < 1:
            faster[name] = records[0].seconds * share
            database.commit_tuning_record(
                TuningRecord(
                    Schedule(program).trace,
                    records[0].workload,
                    [faster[name]],
                    chosen,
                    ArgInfo.from_entry_func(program),
                    structural_hash(program),
                )
            )
    return faster


def share_of_time(mod: IRModule, other: IRModule, target: Target) -> float:
    """How much of the time of another program's "main" that of a program takes, timed in turn."""
    timers = [_timer(each, target) for each in (mod, other)]
    times = [[timer().median for timer in timers] for _ in range(ROUNDS)]
    own, others = (median(each) for each in zip(*times, strict=True))
    return own / others


def _timer(mod: IRModule, target: Target) -> Callable[..., Any]:
    library = build(mod, target)
    timer = library.time_evaluator("main", cpu(), 1, 3, min_repeat_ms=MIN_REPEAT_MS)
    return partial(timer, *random_inputs(mod).arrays())
