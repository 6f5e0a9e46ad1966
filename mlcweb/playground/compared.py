"""The program that a view shows, and those that it can be compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mlcweb.ir import IRModule
from mlcweb.playground.access import derivation
from mlcweb.playground.access.derivation import Derivation, Step
from mlcweb.playground.protocol.access import AccessStep
from mlcweb.playground.session import Document, session
from mlcweb.tir.function import prim_funcs


class Program(NamedTuple):
    """A program of a document, and how it was made."""

    document: Document
    module: IRModule
    made: Derivation | None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of its schedule, whose programs it can be compared with."""
        return self.document.cached(derivation.steps, self.made)

    def other(self, identifier: str) -> Program:
        """The program to compare with: of a step on the way, or another that the page knows."""
        for step in self.steps:
            if str(step.number) == identifier:
                return Program(self.document, step.derivation.result, step.derivation)
        return program(identifier)


def program(identifier: str) -> Program:
    """A program that the page knows."""
    document, module = session.program(identifier)
    return Program(document, module, derivation.of(document, module))


def choices(steps: Iterable[Step]) -> list[AccessStep]:
    """Steps of a schedule, as the page offers to compare with their programs."""
    return [
        AccessStep(str(step.number), f"after step {step.number}, {step.method}") for step in steps
    ]


def same_function(module: IRModule, name: str) -> str:
    """The function of that name in another module, or else its main or first one."""
    names = list(prim_funcs(module))
    return name if name in names else "main" if "main" in names else names[0]
