"""What is decided in a design space, in words: which loop a tiling is of, which block moves."""

from __future__ import annotations

from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.playground.trace_words import part_names
from mlcweb.schedule import Instruction, Schedule, Trace
from mlcweb.schedule.instruction import map_inputs


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
    schedule = Schedule(program)
    replayed: dict[Any, Any] = {}
    names: list[list[str]] = []
    for inst in trace.insts:
        inputs = map_inputs(inst.inputs, replayed)
        if inst.kind.sampling:
            name = _label(schedule, trace, inst, inputs)
            decision = trace.get_decision(inst)
            parts = len(decision) if isinstance(decision, list | tuple) else 1
            names.append(part_names(name, parts))
        try:
            outputs = schedule.replay(inst.kind, inputs, inst.attrs, trace.get_decision(inst))
        except (TVMError, ValueError, IndexError, TypeError):
            break
        replayed.update(zip(inst.outputs, outputs, strict=True))
    rest = [inst.kind.method for inst in trace.insts if inst.kind.sampling][len(names) :]
    return names + [[name.removeprefix("sample_").replace("_", " ")] for name in rest]


def _label(schedule: Schedule, trace: Trace, inst: Instruction, inputs: list[Any]) -> str:
    plain = inst.kind.method.removeprefix("sample_").replace("_", " ")
    if inst.kind.name == "SampleCategorical":
        [chosen] = inst.outputs
        for later in trace.insts:
            if later.kind.name == "Annotate" and any(value is chosen for value in later.inputs):
                return str(later.attrs[0]).strip('"').removeprefix("meta_schedule.")
        return plain
    place: Any = schedule.get(inputs[0])
    if hasattr(place, "loop_var"):
        return place.loop_var.name
    return f"{place.name_hint}: {plain}" if hasattr(place, "name_hint") else plain
