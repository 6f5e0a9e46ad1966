"""Refuses programs with loops of unknown length."""

from __future__ import annotations

from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule.postproc.postproc import Postproc
from mlcweb.meta_schedule.schedule_rule.block_facts import extent_of
from mlcweb.schedule import Schedule
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import For


class DisallowDynamicLoop(Postproc):
    """Refuses schedules with loops whose number of iterations is no constant."""

    def apply(self, sch: Schedule) -> bool:
        return all(
            extent_of(node) is not None
            for func in sch.mod.functions.values()
            if isinstance(func, PrimFunc)
            for node in walk(func.body)
            if isinstance(node, For)
        )
