"""Trace: the steps of a schedule. With the original program it derives the final one again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.dialect import TIR, dialect_of
from mlcweb.ir.display import Listing, publish
from mlcweb.schedule.index_maps import from_record
from mlcweb.schedule.instruction import (
    BlockRV,
    Instruction,
    LoopRV,
    RandomVariable,
    kind_of,
    map_inputs,
    plain,
)  # fmt: skip
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.substitute import variables_in

if TYPE_CHECKING:
    from mlcweb.schedule.base import ScheduleBase
    from mlcweb.schedule.replay_cache import ReplayCache

DecisionProvider = Callable[[Instruction, Sequence[Any], Sequence[Any], Any], Any]
"""(instruction, inputs, attributes, recorded decision) -> decision to replay with."""


class Trace(metaclass=NamedClass):
    """Instructions, and the decisions of those that sample."""

    def __init__(
        self, insts: Sequence[Instruction] = (), decisions: Mapping[Instruction, Any] | None = None
    ) -> None:
        self.insts: list[Instruction] = list(insts)
        self.decisions: dict[Instruction, Any] = dict(decisions or {})

    def get_decision(self, inst: Instruction) -> Any:
        """The decision of a sampling instruction; None for others."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add a step at the end."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Remove the last step and return it; None where there is none."""
        if not self.insts:
            return None
        inst = self.insts.pop()
        self.decisions.pop(inst, None)
        return inst

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """The trace with the decision of one sampling instruction replaced."""
        insts = self._insts(remove_postproc)
        kept = {i: self.decisions[i] for i in insts if i in self.decisions}
        return Trace(insts, {**kept, inst: decision})

    def simplified(self, remove_postproc: bool) -> Trace:
        """The trace without queries and samples whose results nothing uses."""
        used: set[Any] = set()
        kept: list[Instruction] = []
        for inst in reversed(self._insts(remove_postproc)):
            if inst.kind.is_pure and not any(output in used for output in inst.outputs):
                continue
            used.update(variables_of(inst.inputs))
            kept.append(inst)
        kept.reverse()
        return Trace(kept, {i: self.decisions[i] for i in kept if i in self.decisions})

    def names(self) -> dict[RandomVariable, str]:
        """The names of all random variables: b, l or v and one count, in order of appearance."""
        names: dict[RandomVariable, str] = {}
        outputs = (output for inst in self.insts for output in inst.outputs)
        for number, output in enumerate(outputs):
            letter = "v"
            if isinstance(output, BlockRV):
                letter = "b"
            elif isinstance(output, LoopRV):
                letter = "l"
            if output is not None:
                names[output] = f"{letter}{number}"
        return names

    @property
    def dialect(self) -> str:
        """The spelling of the steps: "s_tir" where one has a name that TVM has since 2026."""
        return next((i.kind.dialect for i in self.insts if i.kind.dialect != TIR.name), TIR.name)

    def as_python(self, remove_postproc: bool = False, *, dialect: str | None = None) -> list[str]:
        """The steps as lines of Python, in one of the spellings of `mlcweb.ir.dialect`: by default
        in that of the steps."""
        names = self.names()
        dialect = dialect or self.dialect
        return [
            inst.as_python(names, self.decisions.get(inst), dialect)
            for inst in self._insts(remove_postproc)
        ]

    def as_json(self, remove_postproc: bool = False, *, dialect: str | None = None) -> list[Any]:
        """The steps and decisions in the layout of TVM's records. Instructions have the names that
        a TVM of the dialect loads; `apply_json_to_schedule` takes both."""
        names = self.names()
        dialect = dialect or self.dialect
        insts = self._insts(remove_postproc)
        steps = [inst.as_json(names, dialect) for inst in insts]
        decisions = [
            [position, plain(self.decisions[inst])]
            for position, inst in enumerate(insts)
            if inst in self.decisions
        ]
        return [steps, decisions]

    @staticmethod
    def apply_json_to_schedule(
        json_obj: Any, sch: ScheduleBase, *, dialect: str | None = None
    ) -> None:
        """Replay a trace in JSON form (of `as_json`, or of a record of TVM) onto a schedule, whose
        steps are spelled as in the record, or as in a dialect."""
        steps, decision_list = json_obj
        decisions = {int(position): decision for position, decision in decision_list}
        table: dict[str, Any] = {}
        for position, (name, inputs, attrs, outputs) in enumerate(steps):
            kind = kind_of(name if dialect is None else dialect_of(dialect).of(name))
            values = [_from_json(value, table) for value in inputs]
            results = sch.replay(
                kind, values, [_constant(a) for a in attrs], decisions.get(position)
            )
            table.update(zip(outputs, results, strict=True))

    def apply_to_schedule(
        self,
        sch: ScheduleBase,
        remove_postproc: bool = False,
        decision_provider: DecisionProvider | None = None,
        *,
        memory: ReplayCache | None = None,
    ) -> None:
        """Replay the steps onto a schedule of the original program.

        `decision_provider` may replace the recorded decisions. Where there is a `memory` the
        schedule has no steps yet; what other replays did at first is taken over.
        """
        table: dict[Any, Any] = {}
        point = None if memory is None else memory.start()
        for inst in self._insts(remove_postproc):
            inputs = map_inputs(inst.inputs, table)
            decision = self.decisions.get(inst)
            if decision_provider is not None and inst.kind.sampling:
                decision = decision_provider(inst, inputs, inst.attrs, decision)
            if memory is None:
                outputs = sch.replay(inst.kind, inputs, inst.attrs, decision)
            else:
                step = (inst.kind, inputs, inst.attrs, decision)
                outputs, point = memory.replay(sch, point, *step)
            table.update(zip(inst.outputs, outputs, strict=True))

    def show(
        self, style: str | None = None, black_format: bool = False, *, dialect: str | None = None
    ) -> None:
        """Show the trace as a Python function."""
        publish(Listing(self.text("  ", dialect)) if dialect else self)

    def text(self, indent: str, dialect: str | None = None) -> str:
        """The trace as a Python function."""
        dialect = dialect or self.dialect
        lines = self.as_python(dialect=dialect) or ["pass"]
        module = dialect_of(dialect).of("tir")
        head = [f"# from tvm import {module}", f"def apply_trace(sch: {module}.Schedule) -> None:"]
        return "\n".join(head + [indent + line for line in lines])

    def copy(self) -> Trace:
        """A trace of its own with the same steps."""
        return Trace(self.insts, self.decisions)

    def _insts(self, remove_postproc: bool) -> list[Instruction]:
        if remove_postproc:
            for position, inst in enumerate(self.insts):
                if inst.kind.is_postproc:
                    return self.insts[:position]
        return self.insts

    def __repr__(self) -> str:
        return self.text("  ")


def variables_of(values: Any) -> set[Any]:
    """The random variables in the inputs of an instruction."""
    variables: set[Any] = set()
    for value in values:
        if isinstance(value, (BlockRV, LoopRV)):
            variables.add(value)
        elif isinstance(value, PrimExpr):
            variables |= variables_in(value)
        elif isinstance(value, (list, tuple)):
            variables |= variables_of(value)
    return variables


_WRITTEN_CONSTANT = re.compile(r"T\.(?:float|int)\d+\((.+)\)")


def _constant(value: Any) -> Any:
    """A record's attribute; TVM writes some numbers as TVMScript, `T.float32(0.25)`."""
    if isinstance(value, list):
        return [_constant(item) for item in value]
    match = _WRITTEN_CONSTANT.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) if match else value


def _from_json(value: Any, table: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_from_json(item, table) for item in value]
    if isinstance(value, str):
        if value in table:
            return table[value]
        if value == "None":
            return None
        if value.startswith('{"root_index"'):
            index_map = from_record(value)  # Names in it may be of random variables.
            free = variables_in(*index_map.final_indices).difference(index_map.initial_indices)
            return index_map.with_values({v: table[v.name] for v in free if v.name in table})
        return value[1:-1] if value[:1] == '"' else value
    return value
