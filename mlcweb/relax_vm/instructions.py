"""What the virtual machine executes: the instructions of a function, on numbered registers.

A register holds a tensor (NDArray), a shape, a number, a string, a tuple of values, a function, or
nothing. Parameters are in the first registers, constants in registers that never change. Extents
are expressions, since shapes may be symbolic; they are evaluated when a function is prepared for
the sizes that it is called with, or where they are known only by then, when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mlcweb.relax.expr import Binding
from mlcweb.relax.struct_info import StructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

Register = int


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base. `origin` is the binding that the instruction comes from; `reads` are the registers that
    it reads or passes on, `dst` is the one that it sets, if it sets one."""

    origin: Binding | None = field(default=None, kw_only=True, repr=False, compare=False)

    operand: ClassVar[str] = ""
    """The field of a register that it reads beside `args`, if there is one."""

    @property
    def reads(self) -> tuple[Register, ...]:
        first = (getattr(self, self.operand),) if self.operand else ()
        return (*first, *getattr(self, "args", ()))


@dataclass(frozen=True, slots=True)
class Alloc(Instruction):
    """A new tensor, its content undefined."""

    dst: Register
    shape: tuple[PrimExpr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class CallKernel(Instruction):
    """A call of a compiled function; the last arguments are what it writes."""

    kernel: str
    args: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class CallPacked(Instruction):
    """A call of a registered function. Without `dst` it writes its last arguments."""

    dst: Register | None
    name: str
    args: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class CallFunction(Instruction):
    """A call of a graph function of the module."""

    dst: Register
    function: str
    args: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class CallValue(Instruction):
    """A call of the function in a register."""

    dst: Register
    callee: Register
    args: tuple[Register, ...]

    operand: ClassVar[str] = "callee"


@dataclass(frozen=True, slots=True)
class CallBuiltin(Instruction):
    """An operation of the virtual machine itself; see `builtins.py`."""

    dst: Register
    name: str
    args: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class MakeFunction(Instruction):
    """A function as a value. `args` are the values that a local function takes from around it, as
    its first parameters; those of a `make_closure` are its last ones."""

    dst: Register
    function: str
    args: tuple[Register, ...] = ()
    last: bool = False


@dataclass(frozen=True, slots=True)
class LoadFunction(Instruction):
    """A compiled function of the module as a value, or a registered one."""

    dst: Register
    name: str
    compiled: bool


@dataclass(frozen=True, slots=True)
class MakeTuple(Instruction):
    dst: Register
    args: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class GetItem(Instruction):
    dst: Register
    source: Register
    index: int

    operand: ClassVar[str] = "source"


@dataclass(frozen=True, slots=True)
class MakeShape(Instruction):
    """A shape, from extents that are known when it runs."""

    dst: Register
    values: tuple[PrimExpr, ...]


@dataclass(frozen=True, slots=True)
class MakeScalar(Instruction):
    """A number, from symbolic extents."""

    dst: Register
    value: PrimExpr


@dataclass(frozen=True, slots=True)
class Match(Instruction):
    """The check that a value is what a struct info says, which gives values to new extents.
    `place` says in messages which value."""

    source: Register
    info: StructInfo
    place: str

    operand: ClassVar[str] = "source"


@dataclass(frozen=True, slots=True)
class Body:
    """Instructions in order, and the register of their result."""

    instructions: tuple[Instruction, ...]
    result: Register


@dataclass(frozen=True, slots=True)
class Branch(Instruction):
    """One of two bodies, by a boolean; `dst` gets its result."""

    dst: Register
    condition: Register
    true: Body
    false: Body

    operand: ClassVar[str] = "condition"


@dataclass(frozen=True, slots=True)
class Release(Instruction):
    """Registers that are not read any more let go of their values."""

    registers: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    info: StructInfo | None


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """A graph function as instructions.

    `constants` are registers and what they hold: tensors, or plain values. `outer` are symbolic
    extents that a local function takes from the function around it.
    """

    name: str
    params: tuple[Parameter, ...]
    registers: int
    constants: tuple[tuple[Register, object], ...]
    body: Body
    is_pure: bool = True
    outer: tuple[PrimVar, ...] = ()


def bodies(instruction: Instruction) -> tuple[Body, ...]:
    """The bodies inside of an instruction."""
    return (instruction.true, instruction.false) if isinstance(instruction, Branch) else ()


def walk(body: Body) -> Iterator[Instruction]:
    """All instructions in order; those of both branches after the branch itself."""
    for instruction in body.instructions:
        yield instruction
        for inner in bodies(instruction):
            yield from walk(inner)
