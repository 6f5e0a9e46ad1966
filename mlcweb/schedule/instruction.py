"""Instructions: what a schedule did, as data that prints as Python, serialises as JSON, replays.

The kinds of instructions are the schedule primitives; `registry` makes them of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.dialect import S_TIR, TIR, dialect_of
from mlcweb.schedule.errors import UnknownInstructionError
from mlcweb.schedule.index_maps import to_record
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import FloatImm, IntImm, PrimExpr, Var
from mlcweb.tir.substitute import substitute, variables_in


class _Known:
    """What is known by its identity, under TVM's name."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        return self is other


class _StatementRV(_Known, metaclass=NamedClass):
    """A random variable that stands for a statement of the program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tir.{type(self).__name__}({id(self):#x})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


class BlockRV(_StatementRV):
    """A random variable that stands for a block of the program."""

    __slots__ = ()


class LoopRV(_StatementRV):
    """A random variable that stands for a loop of the program."""

    __slots__ = ()


ExprRV = PrimExpr
"""A random variable that stands for an integer: a variable, or arithmetic on variables."""

RandomVariable = BlockRV | LoopRV | Var


class SpecialLocation(IntEnum):
    """Locations that are no loops, with the decisions that stand for them."""

    ROOT = -1
    INLINE = -2


Location = Var | SpecialLocation
"""What a random variable for a loop may stand for, where it was sampled."""


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """What a primitive takes an argument as: how it is resolved, recorded and replayed.

    `annotation` is the type of the method's parameter. `take(sch, value, taken)` gives what is
    recorded of a value, and what the primitive gets; `taken` holds what it gets for earlier
    parameters. `width` values are recorded, 0 stands for all that follow; `replayed` makes of them
    an argument of the method again. A role that `omits_empty` prints no empty lists.
    """

    annotation: str
    take: Callable[[Any, Any, dict[str, Any]], tuple[Any, Any]]
    is_input: bool = False
    width: int = 1
    replayed: Callable[..., Any] | None = None
    omits_empty: bool = False


Parameter = tuple[str, Role, bool]
"""A parameter that an instruction records: its name, its role, and whether it is among the inputs
(random variables, and values that may be random variables) or the attributes (plain values)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InstructionKind(_Known):
    """A primitive: the function that carries it out, and how the schedule records it.

    `signature` has names and types of the method's parameters, of which `starred` is one of the
    form `*loops`. A `sampling` kind carries a decision; a `pure`
    one changes nothing. The random variables that it returns are of class `result`, in a list where
    `returns_list`. `title` names it in error messages. `booleans_as_integers` says how these are
    recorded. A primitive that TVM has renamed has a kind for each name.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    signature: tuple[tuple[str, str], ...]
    starred: str | None
    sampling: bool
    result: type | None
    returns_list: bool
    title: str
    pure: bool = False
    prints_positional: bool = False
    booleans_as_integers: bool = True

    def __reduce__(self) -> Any:
        return kind_of, (self.name,)

    def __repr__(self) -> str:
        return f"tir.InstructionKind(name={self.name!r}, is_pure={self.pure})"

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of a name; UnknownInstructionError where there is none."""
        return kind_of(name)

    @property
    def is_pure(self) -> bool:
        """Whether the primitive asks or samples and leaves the program as it is: a trace can do
        without it where nothing uses its results."""
        return self.pure or self.sampling

    @property
    def method(self) -> str:
        """The name of the method of `Schedule`."""
        return self.function.__name__

    @property
    def is_postproc(self) -> bool:
        return self.name == "EnterPostproc"

    @property
    def dialect(self) -> str:
        """The spelling that has this name for the primitive: "tir" where both have it."""
        return (S_TIR if self.name in S_TIR.renamed.values() else TIR).name

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> dict[str, Any]:
        """The arguments of the method, by name, of recorded inputs and attributes; a ValueError
        where their number is wrong."""
        rest = {True: list(inputs), False: list(attrs)}
        arguments: dict[str, Any] = {}
        for name, role, is_input in self.parameters:
            values = rest[is_input]
            width = role.width or len(values)
            taken, values[:width] = values[:width], []
            if len(taken) < width:
                raise ValueError(f'The instruction "{self.name}" lacks "{name}"')
            if role.replayed is not None:
                arguments[name] = role.replayed(*taken)
            else:
                arguments[name] = taken[0] if role.width else taken
        if rest[True] or rest[False]:
            raise ValueError(f'The instruction "{self.name}" has values that it does not take')
        return arguments


KINDS: dict[str, InstructionKind] = {}
"""The primitives by the names and aliases of their instructions; `primitives` fills this."""


def kind_of(name: str) -> InstructionKind:
    """The instruction kind of a name; UnknownInstructionError where there is none."""
    if name not in KINDS:
        raise UnknownInstructionError(f'Unknown schedule instruction "{name}"')
    return KINDS[name]


class _Anonymous(dict[Any, str]):
    """Calls every random variable "_"."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: Any) -> str:
        return "_"


@dataclass(slots=True, eq=False, repr=False)
class Instruction(_Known):
    """One step of a schedule: `outputs = kind(inputs, attrs)`."""

    kind: InstructionKind
    inputs: tuple[Any, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[RandomVariable | None, ...]
    """None stands for a factor to be inferred."""

    def arguments(self) -> dict[str, Any]:
        """The arguments of the schedule method by parameter name."""
        return self.kind.arguments(self.inputs, self.attrs)

    def __repr__(self) -> str:
        return self.as_python(_Anonymous()).replace('"', "")

    def as_python(
        self, names: Mapping[Any, str], decision: Any = None, dialect: str | None = None
    ) -> str:
        """The step as a line of Python, by default in the spelling of its kind. `names` gives the
        random variables their names."""
        kind = self.kind
        parts = []
        arguments = self.arguments()
        for name, role, is_input in kind.parameters:
            value = arguments[name]
            if role.omits_empty and not value:
                continue
            if name == kind.starred:
                parts.extend(python_text(item, names) for item in value)
            elif kind.prints_positional:
                parts.append(python_text(value, names))
            else:
                shown = _with_integers(value) if is_input else value
                parts.append(f"{name}={python_text(shown, names)}")
        if kind.sampling:
            parts.append(f"decision={python_text(decision, names)}")
        outputs = ", ".join(self._named_outputs(names))
        if len(self.outputs) == 1 and kind.returns_list:
            outputs += ","
        call = f"sch.{dialect_of(dialect or kind.dialect).of(kind.method)}({', '.join(parts)})"
        return f"{outputs} = {call}" if outputs else call

    def as_json(self, names: Mapping[Any, str], dialect: str | None = None) -> list[Any]:
        """The step in TVM's record layout: [name, inputs, attributes, outputs]."""
        attrs = [
            int(a) if isinstance(a, bool) and self.kind.booleans_as_integers else plain(a)
            for a in self.attrs
        ]
        inputs = [json_value(item, names) for item in self.inputs]
        name = dialect_of(dialect or self.kind.dialect).of(self.kind.name)
        return [name, inputs, attrs, self._named_outputs(names)]

    def _named_outputs(self, names: Mapping[Any, str]) -> list[str]:
        return ["_" if output is None else names[output] for output in self.outputs]


def _with_integers(value: Any) -> Any:
    """An annotation as traces print it: booleans are 1 and 0, as deep as they are."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_with_integers(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _with_integers(item) for key, item in value.items()}
    return value


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
    if isinstance(value, IndexMap):
        return _with_names(value, names).to_python_string()
    return str(value)


def _with_names(index_map: IndexMap, names: Mapping[Any, str]) -> IndexMap:
    """A map in which random variables have the names of a trace."""
    return index_map.with_values(
        {rv: Var(name, rv.dtype) for rv, name in names.items() if isinstance(rv, Var)}
    )


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
    return to_record(_with_names(value, names)) if isinstance(value, IndexMap) else value


def map_inputs(values: Sequence[Any], table: Mapping[Any, Any]) -> list[Any]:
    """Inputs with their random variables replaced; values stay as they are."""

    def translate(value: Any) -> Any:
        if isinstance(value, (BlockRV, LoopRV, Var)):
            return table.get(value, value)
        if isinstance(value, (list, tuple)):
            return [translate(item) for item in value]
        if isinstance(value, PrimExpr):
            return substitute(value, table)
        return value.with_values(table) if isinstance(value, IndexMap) else value

    return [translate(value) for value in values]
