"""Which program and which steps the modules of a run came from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mlcweb.ir import IRModule, structural_equal
from mlcweb.playground.session import Document
from mlcweb.playground.trace_replay import replay
from mlcweb.schedule import Trace


class Derivation(NamedTuple):
    """`result` is what `trace` makes of `original`."""

    trace: Trace
    original: IRModule
    result: IRModule


class Step(NamedTuple):
    """A step on the way to a module that changed the program; `number` counts from 1."""

    number: int
    method: str
    derivation: Derivation


def complete(
    traces: Iterable[tuple[Trace, IRModule | None, IRModule | None]],
) -> list[Derivation]:
    """Those of traces whose start and result are known."""
    return [
        Derivation(trace.copy(), original, result)
        for trace, original, result in traces
        if original is not None and result is not None
    ]


def of(document: Document, module: IRModule) -> Derivation | None:
    """How a module of a document's last run was made, if a schedule made it."""
    derivations = document.derivations
    same = (each for each in derivations if each.result is module)
    equal = (each for each in derivations if structural_equal(each.result, module))
    return next(same, None) or next(equal, None)


def steps(derivation: Derivation | None) -> tuple[Step, ...]:
    """The steps that changed the program on the way to a module, without the last one, which made
    it."""
    if derivation is None:
        return ()
    changing = []
    for number, step in enumerate(replay(derivation.trace, derivation.original).steps, 1):
        if step.changed:
            insts = derivation.trace.insts[:number]
            decisions = {
                i: derivation.trace.decisions[i] for i in insts if i in derivation.trace.decisions
            }
            prefix = Derivation(Trace(insts, decisions), derivation.original, step.after.module)
            changing.append(Step(number, step.instruction.kind.method, prefix))
    return tuple(changing[:-1])
