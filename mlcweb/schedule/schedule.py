"""Schedule: transforms a module step by step and records the steps in a trace."""

from __future__ import annotations

from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.interface.annotations import AnnotationMethods
from mlcweb.schedule.interface.blocks import BlockMethods
from mlcweb.schedule.interface.layout import LayoutMethods
from mlcweb.schedule.interface.loops import LoopMethods
from mlcweb.schedule.interface.reduction import ReductionMethods
from mlcweb.schedule.interface.regions import RegionMethods
from mlcweb.schedule.interface.sampling import SamplingMethods
from mlcweb.schedule.interface.storage import StorageMethods
from mlcweb.schedule.interface.structure import StructureMethods
from mlcweb.schedule.interface.tensorization import TensorizationMethods


class Schedule(
    SamplingMethods,
    LoopMethods,
    StructureMethods,
    BlockMethods,
    ReductionMethods,
    LayoutMethods,
    StorageMethods,
    RegionMethods,
    AnnotationMethods,
    TensorizationMethods,
):
    """A program being transformed, with TVM's interface.

    `mod` is a module or a single function. `seed` makes sampling repeatable. `error_render_level`
    says how much of the program a ScheduleError shows: "detail", "fast" or "none".
    """


__all__ = ["Schedule", "ScheduleError"]
