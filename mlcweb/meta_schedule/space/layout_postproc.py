"""The post-processor that lays weights out as their loops read them."""

from __future__ import annotations

from mlcweb.meta_schedule.space.postprocs import Postproc
from mlcweb.schedule import Schedule
from mlcweb.schedule.layout_rewrite import free_buffers, rewrite_layout
from mlcweb.tir.function import prim_funcs


class RewriteLayout(Postproc):
    """Reads each parameter whose layout is free through a copy that has its elements in the order
    of the loops that read it last. Blocks that copy it before take the same layout."""

    def apply(self, sch: Schedule) -> bool:
        for name in prim_funcs(sch.mod):
            for number in free_buffers(sch, name).values():
                rewrite_layout(sch, name, number)
        return True
