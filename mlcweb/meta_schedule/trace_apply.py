"""The steps of one program for another with the same anchor block: the reduction that computes
most, with other elementwise blocks around it (TVM's `ScheduleUsingAnchorTrace`)."""

from __future__ import annotations

from mlcweb.meta_schedule.space.defaults import defaults_for
from mlcweb.meta_schedule.space.rules import AutoInline
from mlcweb.meta_schedule.space.thread_rules import AutoBind
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.schedule import Schedule, Trace
from mlcweb.schedule.analysis.block_facts import is_spatial, place_of
from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.instruction import map_inputs
from mlcweb.schedule.trace import variables_of

_MAY_FAIL = ("GetBlock", "ReverseComputeAt")
"""Steps about blocks that only the other program has, or has elsewhere."""


def schedule_using_anchor_trace(sch: Schedule, anchor_trace: Trace, target: Target | str) -> None:
    """Apply the trace of a program to the schedule of another that has the same anchor block.
    Blocks that the trace does not name are inlined where the target's rules say so; of those that
    then stay as they were, each goes into its producer where that is spatial (the cache that the
    product writes to), and runs in parallel else.

    Raises:
        ScheduleError: the steps do not fit the anchor block.
    """
    target = Target(target)
    named = {inst.attrs[0] for inst in anchor_trace.insts if inst.kind.name == "GetBlock"}
    for rule in defaults_for(target).sch_rules():
        if isinstance(rule, AutoInline):
            for name, function in _loops(sch):
                if name not in named:
                    rule.apply(sch, sch.get_block(name, function))
            break
    before = _loops(sch)
    _replay(sch, anchor_trace)
    for (name, function), kinds in _loops(sch).items():
        if kinds and kinds == before.get((name, function)):
            _finish(sch, name, function, target)


def _loops(sch: Schedule) -> dict[tuple[str, str], tuple[object, ...]]:
    """The blocks of a schedule but the root blocks, with the kinds of the loops around them."""
    return {
        (place.block.name_hint, place.function): tuple(loop.kind for loop in place.loops)
        for place in sch.state.index.blocks.values()
        if place.parents
    }


def _replay(sch: Schedule, trace: Trace) -> None:
    """The steps of a trace that are about blocks which the schedule has, too."""
    table, foreign = {}, set()
    for inst in trace.insts:
        if foreign.isdisjoint(variables_of(inst.inputs)):
            try:
                inputs = map_inputs(inst.inputs, table)
                outputs = sch.replay(inst.kind, inputs, inst.attrs, trace.get_decision(inst))
            except ScheduleError:
                if inst.kind.name not in _MAY_FAIL:
                    raise
            else:
                # There may be more child blocks than in the other program.
                exact = inst.kind.name != "GetChildBlocks"
                table.update(zip(inst.outputs, outputs, strict=exact))
                continue
        foreign.update(inst.outputs)


def _finish(sch: Schedule, name: str, function: str, target: Target) -> None:
    block = sch.get_block(name, function)
    producers = [place_of(sch, each).block for each in sch.get_producers(block)]
    if len(producers) == 1 and is_spatial(producers[0]):
        sch.reverse_compute_inline(block)
    elif target.kind.name in DEVICE_KINDS:
        rule = AutoBind()
        rule.target = target
        rule.apply(sch, block)
    else:
        sch.parallel(sch.fuse(*sch.get_loops(block)))
