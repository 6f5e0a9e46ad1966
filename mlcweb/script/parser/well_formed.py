"""Checks that a function read from a script makes sense as a whole."""

from __future__ import annotations

from collections.abc import Container

from mlcweb.analysis.well_formed import WellFormed
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block


def check_well_formed(function: PrimFunc, inferred: Container[Block]) -> None:
    """Raise a DiagnosticError at the first fault of those that `analysis/well_formed.py` lists.
    `inferred` are the blocks without T.reads or T.writes."""
    rules = WellFormed(function, inferred)
    rules.check()
    if rules.partial is not None and not _reads_only_what_is_written(function):
        raise rules.partial


def _reads_only_what_is_written(function: PrimFunc) -> bool:
    # Loaded here, since few programs compute anything in part.
    from mlcweb.ir.module import IRModule
    from mlcweb.schedule.analysis.scopes import scope_at
    from mlcweb.schedule.analysis.stage_pipeline import check_cover
    from mlcweb.schedule.errors import DataflowError
    from mlcweb.schedule.state import ScheduleState

    state = ScheduleState(IRModule({"main": function}))
    parameters = set(function.buffer_map.values())  # They hold values from before.
    try:
        for scope in list(state.index.blocks.values()):
            blocks = scope_at(state, scope)
            for child in blocks.children:
                if "explicit_read_region" in child.block.annotations:  # It may read less.
                    continue
                for buffer in {region.buffer for region in child.block.reads} - parameters:
                    check_cover(scope, blocks, child, buffer)
    except DataflowError:
        return False
    return True
