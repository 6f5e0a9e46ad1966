"""Refuses programs that leave the vector unit idle."""

from __future__ import annotations

from mlcweb.meta_schedule.postproc.postproc import Postproc
from mlcweb.meta_schedule.postproc.vectorize_innermost import vector_loops
from mlcweb.meta_schedule.schedule_rule.lanes import LANES
from mlcweb.schedule import Schedule


class VerifyVectorized(Postproc):
    """Refuses schedules with a spatial block whose inner loops move through neighbouring elements
    one at a time."""

    def apply(self, sch: Schedule) -> bool:
        places = sch.state.index.blocks.values()
        return not any(vector_loops(place, LANES)[0] for place in places)
