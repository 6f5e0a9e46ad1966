"""Random walks through the schedule primitives, written down for a real TVM to repeat."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.schedule.instruction import Instruction, InstructionKind
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.random_programs.programs import RandomProgram
from tests.random_programs.stages import random_program
from tests.random_schedules import EVERY_STEP, random_step

STEPS, ATTEMPTS = 5, 16

SHARED_STEPS = [step for step in EVERY_STEP if step.__name__ != "set_axis_separator"]
"""TVM 0.27 no longer has that one."""


@dataclass(frozen=True)
class Step:
    """A call of a primitive; `refusal` is empty where we accepted it, else our reason."""

    call: str
    refusal: str

    @property
    def primitive(self) -> str:
        found = re.search(r"sch\.(\w+)\(", self.call)
        assert found is not None
        return found[1]


@dataclass(frozen=True)
class Walk:
    """A program, the calls that were tried on it, and the program after those that we accepted."""

    program: RandomProgram
    before: IRModule
    after: IRModule
    steps: list[Step]

    def question(self, scripts: bool = False) -> dict[str, Any]:
        """As `replay_walks.py` is asked it."""
        steps = [(step.call, not step.refusal) for step in self.steps]
        module = self.before.script(dialect="s_tir")
        return {"module": module, "steps": steps, "scripts": scripts}


class _Recorder(Schedule):
    """Also keeps the calls that are refused, with how many instructions there were before."""

    def __init__(self, mod: IRModule, seed: int) -> None:
        super().__init__(mod, seed=seed, error_render_level="fast")
        self.refused: list[tuple[int, Instruction, str]] = []

    def _perform(self, kind: InstructionKind, arguments: dict[str, Any]) -> Any:
        try:
            return super()._perform(kind, arguments)
        except Exception as error:
            inputs: list[Any] = []
            attrs: list[Any] = []
            taken: dict[str, Any] = {}
            for name, role, is_input in kind.parameters:
                recorded, taken[name] = role.take(self, arguments[name], taken)
                values = inputs if is_input else attrs
                values.extend([recorded] if role.width == 1 else recorded)
            instruction = Instruction(kind, tuple(inputs), tuple(attrs), ())
            self.refused.append((len(self.trace.insts), instruction, str(error)))
            raise


def random_walk(seed: int) -> Walk | None:
    """The walk of a seed over the program of that seed; None where threads exchange data, of which
    TVM's primitives know nothing: it puts in the barriers when it builds, or does not."""
    program = random_program(seed)
    if "shared" in program.text:
        return None
    before = IRModule({"main": from_source(program.text)})
    random = Random(seed)
    sch = _Recorder(before, seed + 1)
    accepted = 0

    def choose(options: Any) -> Any:
        if not options:
            raise IndexError("nothing to choose from")
        return random.choice(options)

    for _ in range(ATTEMPTS):
        accepted += random_step(sch, choose, SHARED_STEPS)
        if accepted == STEPS:
            break
    return Walk(program, before, sch.mod, _written_down(sch))


def _written_down(sch: _Recorder) -> list[Step]:
    names = sch.trace.names()
    tried = [(n, 1, inst, "") for n, inst in enumerate(sch.trace.insts)]
    tried += [(n, 0, inst, refusal) for n, inst, refusal in sch.refused]
    steps = []
    for _, _, inst, refusal in sorted(tried, key=lambda one: one[:2]):
        decision = None if refusal else sch.trace.get_decision(inst)
        call = inst.as_python(names, decision, "s_tir")
        # A list of floats that prints as integers is none to TVM, though it prints the same.
        steps.append(Step(call.replace("probs=[1]", "probs=[1.0]"), refusal))
    return steps
