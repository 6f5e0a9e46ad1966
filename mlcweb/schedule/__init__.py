"""Schedules: transformations of TensorIR programs, with checks, sampling and traces."""

from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.instruction import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV
from mlcweb.schedule.schedule import Schedule
from mlcweb.schedule.state import ScheduleState
from mlcweb.schedule.trace import Trace

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
