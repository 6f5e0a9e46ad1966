"""Schedules: transformations of TensorIR programs, with checks, sampling and traces."""

from mlcweb.tir.schedule.errors import ScheduleError
from mlcweb.tir.schedule.instruction import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV
from mlcweb.tir.schedule.schedule import Schedule
from mlcweb.tir.schedule.state import ScheduleState
from mlcweb.tir.schedule.trace import Trace

__all__ = [
    "BlockRV",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "Schedule",
    "ScheduleError",
    "ScheduleState",
    "Trace",
]
