"""The program that a view shows, how its schedule made it, and what it can be compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mlcweb.ir import IRModule, structural_equal
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.session import Document, session
from mlcweb.playground.trace_replay import replay
from mlcweb.schedule import Trace
from mlcweb.tir.function import prim_funcs


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


def derivation_of(document: Document, module: IRModule) -> Derivation | None:
    """How a module of a document's last run was made, if a schedule made it."""
    derivations = document.derivations
    same = (each for each in derivations if each.result is module)
    equal = (each for each in derivations if structural_equal(each.result, module))
    return next(same, None) or next(equal, None)


def steps_of(derivation: Derivation | None) -> tuple[Step, ...]:
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


class Program(NamedTuple):
    """A program of a document, and how it was made."""

    document: Document
    module: IRModule
    made: Derivation | None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of its schedule, whose programs it can be compared with."""
        return self.document.cached(steps_of, self.made)

    def other(self, identifier: str) -> Program:
        """The program to compare with: of a step on the way, or another that the page knows."""
        for step in self.steps:
            if str(step.number) == identifier:
                return Program(self.document, step.derivation.result, step.derivation)
        return program(identifier)


def program(identifier: str) -> Program:
    """A program that the page knows."""
    document, module = session.program(identifier)
    return Program(document, module, derivation_of(document, module))


def choices(steps: Iterable[Step]) -> list[Titled]:
    """Steps of a schedule, as the page offers to compare with their programs."""
    return [Titled(str(step.number), f"after step {step.number}, {step.method}") for step in steps]


def same_function(module: IRModule, name: str) -> str:
    """The function of that name in another module, or else its main or first one."""
    names = list(prim_funcs(module))
    return name if name in names else "main" if "main" in names else names[0]


def differ(now: float, before: float) -> bool:
    """Whether two counts differ by more than half a percent."""
    return abs(now - before) > 0.005 * max(now, before)
