"""Instructions: what a schedule did, as data that prints as Python, serialises as JSON, replays.

An instruction kind is described once: the method of `Schedule` that it records, its inputs (random
variables, or values that may be random variables) and its attributes (plain values).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.dialect import dialect_of
from mlcweb.schedule.index_map_record import to_record
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import FloatImm, IntImm, PrimExpr, Var
from mlcweb.tir.substitute import substitute, variables_in


class BlockRV:
    """A random variable that stands for a block of the program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tir.BlockRV({id(self):#x})"


class LoopRV:
    """A random variable that stands for a loop of the program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tir.LoopRV({id(self):#x})"


ExprRV = PrimExpr
"""A random variable that stands for an integer: a variable, or arithmetic on variables."""

RandomVariable = BlockRV | LoopRV | Var


@dataclass(frozen=True, slots=True)
class InstructionKind:
    """How one schedule method is recorded.

    `inputs` names the parameters that take random variables; a leading `*` marks the last one as
    taking a list. `positional` inputs print without their names. `attributes` names the plain
    parameters, in the order of TVM's records; `printed_order` is that of the method's parameters,
    where it is another. A `sampling` kind carries a decision. `as_arguments` makes the method's
    arguments of the recorded ones, where these are others.
    """

    name: str
    method: str
    inputs: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    positional: bool = False
    sampling: bool = False
    pure: bool = False
    printed_order: tuple[str, ...] = ()
    optional: Mapping[str, Any] = field(default_factory=dict)
    booleans_as_integers: bool = True
    aliases: tuple[str, ...] = ()
    as_arguments: Callable[[dict[str, Any]], dict[str, Any]] = dict

    @property
    def is_postproc(self) -> bool:
        return self.name == "EnterPostproc"


_kinds: dict[str, InstructionKind] = {}


def register_kind(kind: InstructionKind) -> InstructionKind:
    """Add an instruction kind under its name and aliases (the names of other TVM generations)."""
    for name in (kind.name, *kind.aliases):
        _kinds[name] = kind
    return kind


def kind_of(name: str) -> InstructionKind:
    """The instruction kind of a name; ValueError where there is none."""
    if name not in _kinds:
        raise ValueError(f'Unknown schedule instruction "{name}"')
    return _kinds[name]


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One step of a schedule: `outputs = kind(inputs, attrs)`."""

    kind: InstructionKind
    inputs: tuple[Any, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[RandomVariable, ...]

    def arguments(self) -> dict[str, Any]:
        """The arguments of the schedule method by parameter name."""
        given: dict[str, Any] = {}
        for position, name in enumerate(self.kind.inputs):
            if name.startswith("*"):
                given[name[1:]] = list(self.inputs[position:])
            else:
                given[name] = self.inputs[position]
        given.update(zip(self.kind.attributes, self.attrs, strict=True))
        return self.kind.as_arguments(given)

    def as_python(
        self, names: Mapping[Any, str], decision: Any = None, dialect: str = "tir"
    ) -> str:
        """The step as a line of Python. `names` gives the random variables their names."""
        parts = []
        inputs = {name.lstrip("*") for name in self.kind.inputs}
        arguments = self.arguments()
        for name in self.kind.printed_order or arguments:
            value = arguments[name]
            if name in self.kind.optional and value == self.kind.optional[name]:
                continue
            if name in inputs and self.kind.positional:
                values = value if isinstance(value, list) else [value]
                parts.extend(python_text(item, names) for item in values)
            else:
                shown = int(value) if name in inputs and isinstance(value, bool) else value
                parts.append(f"{name}={python_text(shown, names)}")
        if self.kind.sampling:
            parts.append(f"decision={python_text(decision, names)}")
        outputs = ", ".join(names[output] for output in self.outputs)
        if len(self.outputs) == 1 and self.kind.method in LIST_RESULTS:
            outputs += ","
        call = f"sch.{dialect_of(dialect).of(self.kind.method)}({', '.join(parts)})"
        return f"{outputs} = {call}" if outputs else call

    def as_json(self, names: Mapping[Any, str], dialect: str = "tir") -> list[Any]:
        """The step in TVM's record layout: [name, inputs, attributes, outputs]."""
        attrs = [
            int(a) if isinstance(a, bool) and self.kind.booleans_as_integers else plain(a)
            for a in self.attrs
        ]
        inputs = [json_value(item, names) for item in self.inputs]
        name = dialect_of(dialect).of(self.kind.name)
        return [name, inputs, attrs, [names[output] for output in self.outputs]]


LIST_RESULTS = {
    "get_loops", "get_child_blocks", "get_producers", "get_consumers", "get_output_blocks", "split",
    "loop_partition", "sample_perfect_tile", "sample_partitioned_tile", "cache_index",
    "cache_inplace",
}  # fmt: skip
"""The methods that return lists: one result prints as `l1, = …`."""


def plain(value: Any) -> Any:
    """A constant as the plain Python value that it is."""
    if isinstance(value, (IntImm, FloatImm)):
        return constant_value(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return to_record(value) if isinstance(value, IndexMap) else value


def python_text(value: Any, names: Mapping[Any, str]) -> str:
    """A value as Python source."""
    if isinstance(value, (BlockRV, LoopRV, Var)) and value in names:
        return names[value]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(python_text(item, names) for item in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Mapping):
        items = (f"{python_text(k, names)}: {python_text(v, names)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (IntImm, FloatImm)):
        value = constant_value(value)
    if isinstance(value, float):
        return f"{value:.17g}"
    if isinstance(value, PrimExpr):
        renamed = {var: Var(names.get(var, var.name), var.dtype) for var in variables_in(value)}
        return repr(substitute(value, renamed))
    return str(value)


def json_value(value: Any, names: Mapping[Any, str]) -> Any:
    """A value in TVM's record layout: random variables by name, strings in quotes."""
    if isinstance(value, (BlockRV, LoopRV, Var)) and value in names:
        return names[value]
    if value is None:
        return "None"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return [json_value(item, names) for item in value]
    if isinstance(value, (IntImm, FloatImm)):
        return constant_value(value)
    if isinstance(value, PrimExpr):
        return python_text(value, names)
    return to_record(value) if isinstance(value, IndexMap) else value


def map_inputs(values: Sequence[Any], table: Mapping[Any, Any]) -> list[Any]:
    """Inputs with their random variables replaced; values stay as they are."""

    def translate(value: Any) -> Any:
        if isinstance(value, (BlockRV, LoopRV, Var)):
            return table.get(value, value)
        if isinstance(value, (list, tuple)):
            return [translate(item) for item in value]
        if isinstance(value, PrimExpr):
            return substitute(value, table)
        return value

    return [translate(value) for value in values]
