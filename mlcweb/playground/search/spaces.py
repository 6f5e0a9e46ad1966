"""What is decided in a design space, in words: which loop a tiling is of, which block moves."""

from __future__ import annotations

from mlcweb.ir import IRModule
from mlcweb.playground.trace_replay import ReplayedStep, replay
from mlcweb.playground.trace_words import part_names
from mlcweb.schedule import Instruction, Trace
from mlcweb.schedule.state import BlockPlace, LoopPlace


def signature(trace: Trace) -> tuple[str, ...]:
    """Equal for traces that decide the same things."""
    return tuple(
        f"{position} {inst.kind.name}"
        for position, inst in enumerate(trace.insts)
        if inst.kind.sampling
    )


def labels(trace: Trace, program: IRModule) -> list[list[str]]:
    """For each decision of a trace the names of its numbers: parts of the loop that is tiled, the
    block that is moved, the annotation whose value is chosen."""
    steps = [step for step in replay(trace, program).steps if step.instruction.kind.sampling]
    sampling = [inst for inst in trace.insts if inst.kind.sampling]
    names = []
    for inst, step in zip(sampling, steps, strict=False):
        decision = trace.get_decision(inst)
        parts = len(decision) if isinstance(decision, list | tuple) else 1
        names.append(part_names(_label(trace, inst, step), parts))
    return names + [[_plain(inst)] for inst in sampling[len(names) :]]


def _plain(inst: Instruction) -> str:
    return inst.kind.method.removeprefix("sample_").replace("_", " ")


def _label(trace: Trace, inst: Instruction, step: ReplayedStep) -> str:
    if inst.kind.name == "SampleCategorical":
        [chosen] = inst.outputs
        for later in trace.insts:
            if later.kind.name == "Annotate" and any(value is chosen for value in later.inputs):
                return str(later.attrs[0]).strip('"').removeprefix("meta_schedule.")
        return _plain(inst)
    place = step.inputs[0]
    if isinstance(place, LoopPlace):
        return place.loop.loop_var.name
    block = f"{place.block.name_hint}: " if isinstance(place, BlockPlace) else ""
    return block + _plain(inst)
