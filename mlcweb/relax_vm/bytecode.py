"""Programs of calls, returns and jumps, as in TVM's virtual machine: what `ExecBuilder` makes.

An argument is an integer, as in TVM: its kind in the upper eight bits, its value in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.relax_vm.builtins import truth
from mlcweb.relax_vm.executable import Executable
from mlcweb.relax_vm.packed import call_packed, nested, outward
from mlcweb.relax_vm.sizes import ShapeTuple
from mlcweb.runtime.arguments import ArgumentTypeError
from mlcweb.runtime.ndarray import NDArray

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine

Argument = int

VALUE_BITS = 56


class Kind(IntEnum):
    """What an argument is the number of."""

    REGISTER = 0
    IMMEDIATE = 1
    CONSTANT = 2
    FUNCTION = 3


class SpecialReg(IntEnum):
    """Registers that are not a function's own: nothing, and the virtual machine."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(IntEnum):
    """Whether a function is a registered one or a program's own."""

    PACKED_FUNC = 0
    VM_FUNC = 1


def argument(kind: Kind, value: int) -> Argument:
    return (kind << VALUE_BITS) | (value & ((1 << VALUE_BITS) - 1))


def kind_of(arg: Argument) -> Kind:
    return Kind(arg >> VALUE_BITS)


def value_of(arg: Argument) -> int:
    """The number in an argument, which is signed."""
    value = arg & ((1 << VALUE_BITS) - 1)
    return value - (1 << VALUE_BITS) if value >> (VALUE_BITS - 1) else value


@dataclass(frozen=True, slots=True)
class Call:
    function: int
    args: tuple[Argument, ...]
    dst: int


@dataclass(frozen=True, slots=True)
class Ret:
    result: int


@dataclass(frozen=True, slots=True)
class Goto:
    offset: int


@dataclass(frozen=True, slots=True)
class If:
    """On to the next instruction where the condition holds, else by `offset`."""

    condition: int
    offset: int


Instruction = Call | Ret | Goto | If


@dataclass(slots=True)
class Function:
    """A function of the program: the first registers are its parameters."""

    name: str
    param_names: tuple[str, ...]
    instructions: list[Instruction] = field(default_factory=list)

    def check(self, constants: int) -> None:
        """Raises: TVMError: a register is read that no instruction before sets, there are not so
        many constants, or a jump leaves the function."""
        count = len(self.instructions)
        defined = set(range(len(self.param_names))) | set(SpecialReg)
        for number, item in enumerate(self.instructions):
            for register in _reads(item):
                if register not in defined:
                    raise TVMError(
                        f'The register {register} of "{self.name}" is read by the instruction '
                        f"{number}, but no call before it has it as dst"
                    )
            if isinstance(item, Call):
                defined.add(item.dst)
            for arg in item.args if isinstance(item, Call) else ():
                if kind_of(arg) is Kind.CONSTANT and value_of(arg) >= constants:
                    raise TVMError(
                        f'The instruction {number} of "{self.name}" takes the constant '
                        f"{value_of(arg)}; there are {constants}, from convert_constant"
                    )
            if isinstance(item, (Goto, If)) and not 0 <= number + item.offset < count:
                raise TVMError(
                    f'The instruction {number} of "{self.name}" jumps by {item.offset}, out of '
                    f"its {count} instruction(s)"
                )

    def renumbered(self) -> Function:
        """The function with its registers numbered in the order in which they are set."""
        own = [*range(len(self.param_names)), *SpecialReg]
        new = {register: register for register in own}

        def arg(old: Argument) -> Argument:
            return new[old] if kind_of(old) is Kind.REGISTER else old

        items: list[Instruction] = []
        for item in self.instructions:
            match item:
                case Call(function, args, dst):
                    args = tuple(map(arg, args))
                    new.setdefault(dst, len(new) - len(SpecialReg))
                    item = Call(function, args, new[dst])
                case Ret(result):
                    item = Ret(new[result])
                case If(condition, offset):
                    item = If(new[condition], offset)
            items.append(item)
        return Function(self.name, self.param_names, items)


def _reads(item: Instruction) -> Iterator[int]:
    match item:
        case Call(args=args):
            yield from (value_of(arg) for arg in args if kind_of(arg) is Kind.REGISTER)
        case Ret(result=register) | If(condition=register):
            yield register


class BytecodeExecutable(Executable):
    """What an `ExecBuilder` has built. `kinds` are all functions by name in the order of their
    numbers, `bytecode` those of the program."""

    def __init__(
        self,
        kinds: dict[str, VMFuncKind],
        bytecode: dict[str, Function],
        constants: list[object],
    ) -> None:
        super().__init__({}, None, {}, IRModule())
        self.kinds = kinds
        self.bytecode = bytecode
        self.constants = constants

    def functions_on(self, machine: VirtualMachine) -> dict[str, BytecodeFunction]:
        """The functions of the program, which a virtual machine runs."""
        return {name: BytecodeFunction(machine, self, code) for name, code in self.bytecode.items()}

    def export_library(self, file_name: object, **options: object) -> None:
        """Not possible for a program without a module.

        Raises: TVMError
        """
        raise TVMError("What an ExecBuilder has built cannot be saved; run its Python again")

    @property
    def function_names(self) -> list[str]:
        return list(self.bytecode)

    @property
    def packed_names(self) -> list[str]:  # type: ignore[override]
        return [name for name in self.kinds if name not in self.bytecode]

    def stats(self) -> str:
        """The constants and the functions."""
        constants = ", ".join(map(_constant_text, self.constants))
        return (
            "Relax VM executable statistics:\n"
            f"  Constant pool (# {len(self.constants)}): [{constants}]\n"
            f"  Globals (#{len(self.kinds)}): [{', '.join(self.kinds)}]\n"
        )

    def as_text(self) -> str:
        names = list(self.kinds)
        parts = []
        for name in names:
            if name in self.bytecode:
                items = self.bytecode[name].instructions
                lines = [f"  {_written(item, names, _TEXT)}\n" for item in items]
                parts.append(f"@{name}:\n{''.join(lines)}\n")
            else:
                parts.append(f"@{name} packed_func;\n\n")
        return "".join(parts)

    def as_python(self) -> str:
        """The calls of an `ExecBuilder` that build this."""
        names = list(self.kinds)
        lines = ["ib = relax.ExecBuilder()"]
        for func in self.bytecode.values():
            lines.append(f'with ib.function("{func.name}", num_inputs={len(func.param_names)}):')
            lines += [f"    ib.{_written(item, names, _PYTHON)}" for item in func.instructions]
        return "\n".join(lines) + "\n"


def _constant_text(value: object) -> str:
    if isinstance(value, NDArray):
        return str(list(value.shape))
    if isinstance(value, ShapeTuple):
        return f"shapetuple{list(value)}"
    return f'"{value}"' if type(value) is str else str(value)


def _register_text(register: object) -> str:
    special = {SpecialReg.VOID_ARG: "void", SpecialReg.VM_STATE: "vm"}
    return f"%{special.get(register, register)}"  # type: ignore[call-overload]


_TEXT: dict[object, Callable[..., str]] = {
    Kind.REGISTER: _register_text, Kind.IMMEDIATE: "i{}".format, Kind.CONSTANT: "c[{}]".format,
    Kind.FUNCTION: "f[{}]".format, "dst": _register_text,
    Call: "call  {:<16} in: {:<12} dst: {}".format, Ret: "ret   {}".format,
    Goto: "goto  {}".format, If: "If    {}, {}".format,
}  # fmt: skip

_PYTHON: dict[object, Callable[..., str]] = {
    Kind.REGISTER: "ib.r({})".format, Kind.IMMEDIATE: "ib.imm({})".format,
    Kind.CONSTANT: "ib.c({})".format, Kind.FUNCTION: 'ib.f("{}")'.format,
    "dst": lambda dst: "" if dst == SpecialReg.VOID_ARG else f", dst=ib.r({dst})",
    Call: 'emit_call("{}", args=[{}]{})'.format, Ret: "emit_ret({})".format,
    Goto: "emit_goto({})".format, If: "emit_if({}, {})".format,
}  # fmt: skip
"""How the kinds of arguments, the register of a call's result, and instructions are written."""


def _written(
    item: Instruction, names: list[str], notation: dict[object, Callable[..., str]]
) -> str:
    def shown(arg: Argument) -> str:
        kind, value = kind_of(arg), value_of(arg)
        return notation[kind](names[value] if kind is Kind.FUNCTION else value)

    match item:
        case Call(function, args, dst):
            parts = names[function], ", ".join(map(shown, args)), notation["dst"](dst)
        case Ret(result):
            parts = (shown(result),)
        case Goto(offset):
            parts = (offset,)
        case If(condition, offset):
            parts = shown(condition), offset
    return notation[type(item)](*parts)


class BytecodeFunction:
    """A function of a built program that can be called: `vm["main"](x)`."""

    def __init__(
        self, machine: VirtualMachine, executable: BytecodeExecutable, code: Function
    ) -> None:
        self.machine = machine
        self.executable = executable
        self.code = code
        self.names = list(executable.kinds)

    @property
    def param_names(self) -> tuple[str, ...]:
        return self.code.param_names

    def __call__(self, *arguments: object) -> object:
        """The result for arguments.

        Raises:
            ArgumentTypeError: there are more or fewer arguments than parameters.
            TVMError: the function ends without a return.
        """
        code = self.code
        if len(arguments) != len(code.param_names):
            raise ArgumentTypeError(
                f'"{code.name}" takes {len(code.param_names)} argument(s) '
                f"({', '.join(code.param_names)}) but got {len(arguments)}"
            )
        registers: dict[int, object] = dict(enumerate(arguments))
        registers[SpecialReg.VM_STATE] = self.machine
        at = 0
        while at < len(code.instructions):
            match code.instructions[at]:
                case Call(function, args, dst):
                    values = [self._value(arg, registers) for arg in args]
                    result = self._call(self.names[function], values)
                    if dst != SpecialReg.VOID_ARG:
                        registers[dst] = result
                case Ret(result):
                    return outward(nested(registers.get(result)))
                case Goto(offset):
                    at += offset
                    continue
                case If(condition, offset) if not truth(registers.get(condition)):
                    at += offset
                    continue
            at += 1
        raise TVMError(f'"{code.name}" ends without a return: emit_ret gives its result')

    def _value(self, arg: Argument, registers: dict[int, object]) -> object:
        value = value_of(arg)
        match kind_of(arg):
            case Kind.REGISTER:
                return registers.get(value)
            case Kind.IMMEDIATE:
                return value
            case Kind.CONSTANT:
                return self.executable.constants[value]
            case Kind.FUNCTION:
                return self._function(self.names[value])

    def _function(self, name: str) -> Callable[..., Any]:
        if name in self.executable.bytecode:
            return self.machine[name]
        return self.machine.packed(name)

    def _call(self, name: str, values: list[object]) -> object:
        function = self._function(name)
        if isinstance(function, BytecodeFunction):
            return nested(function(*values))
        return call_packed(name, function, values)

    def __repr__(self) -> str:
        names = ", ".join(self.code.param_names)
        return f"<{type(self).__module__}.{type(self).__name__} {self.code.name}({names})>"
