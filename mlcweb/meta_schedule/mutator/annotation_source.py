"""Which sampling steps choose the value of an annotation."""

from __future__ import annotations

from collections.abc import Collection

from mlcweb.schedule import Instruction, Trace
from mlcweb.tir.expr import Var


def sampled_for(trace: Trace, keys: Collection[str]) -> list[Instruction]:
    """The `sample_categorical` steps whose result is the value of an annotation with one of the
    keys."""
    made = {
        output: inst
        for inst in trace.insts
        if inst.kind.name == "SampleCategorical"
        for output in inst.outputs
    }
    found = []
    for inst in trace.insts:
        if inst.kind.name == "Annotate" and inst.attrs[0] in keys:
            source = made.get(inst.inputs[1]) if isinstance(inst.inputs[1], Var) else None
            if source is not None and source not in found:
                found.append(source)
    return found
