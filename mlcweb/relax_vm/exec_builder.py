"""ExecBuilder: executables of the virtual machine, instruction by instruction.

    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("my.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    vm = relax.VirtualMachine(ib.get(), tvm.cpu())

Called functions are registered ones (`tvm.register_func`), or functions of the same program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlcweb.ir.array import Array
from mlcweb.ir.errors import TVMError
from mlcweb.relax.constant_data import contents
from mlcweb.relax_vm import bytecode as code
from mlcweb.relax_vm.bytecode import Argument, Kind, SpecialReg, VMFuncKind
from mlcweb.relax_vm.sizes import ShapeTuple
from mlcweb.runtime.ndarray import NDArray
from mlcweb.tir.dtype import DataType

__all__ = ["ExecBuilder", "SpecialReg", "VMFuncKind"]


class ExecBuilder:
    """Emits instructions, and builds the executable of them."""

    def __init__(self) -> None:
        self._kinds: dict[str, VMFuncKind] = {}
        self._functions: dict[str, code.Function] = {}
        self._constants: list[object] = []
        self._open: code.Function | None = None

    # Arguments

    def r(self, idx: int) -> Argument:
        """A register. Those of parameters come first."""
        if idx < 0:
            raise ValueError(f"Registers are counted from 0; there is no register {idx}")
        return code.argument(Kind.REGISTER, idx)

    def imm(self, value: int) -> Argument:
        """An integer."""
        if not -(1 << 55) <= value < 1 << 55:
            raise ValueError(f"An immediate has 56 bits, which are too few for {value}")
        return code.argument(Kind.IMMEDIATE, value)

    def c(self, idx: int) -> Argument:
        """A constant by its number, in the order in which they were converted."""
        return code.argument(Kind.CONSTANT, idx)

    def f(self, name: str) -> Argument:
        """A function that was declared or called, as a value.

        Raises: TVMError: no function of that name was met yet.
        """
        if name not in self._kinds:
            raise TVMError(
                f'There is no function "{name}" yet; declare_function("{name}") declares it'
            )
        return code.argument(Kind.FUNCTION, list(self._kinds).index(name))

    def void_arg(self) -> Argument:
        """No value."""
        return self.r(SpecialReg.VOID_ARG)

    def vm_state(self) -> Argument:
        """The virtual machine itself."""
        return self.r(SpecialReg.VM_STATE)

    def convert_constant(self, const: object) -> Argument:
        """A tensor, a shape, an element type or a text as an argument; an integer is one itself."""
        if isinstance(const, int):
            return self.imm(const)
        if type(const) in (Array, tuple, list):
            const = ShapeTuple(const)  # type: ignore[arg-type]
        if not isinstance(const, (NDArray, ShapeTuple, str, float)):
            raise TypeError(
                "A constant is a tensor, a shape, an element type, a number or a text, not "
                f"{type(const).__name__}"
            )
        for number, there in enumerate(self._constants):
            if there is const or (type(there) is type(const) and _same(there, const)):
                return self.c(number)
        self._constants.append(const)
        return self.c(len(self._constants) - 1)

    # Functions

    def declare_function(self, func_name: str, kind: VMFuncKind = VMFuncKind.PACKED_FUNC) -> None:
        """Let instructions name a function before it is called or defined."""
        self._kinds.setdefault(func_name, VMFuncKind(kind))

    @contextmanager
    def function(
        self,
        func_name: str,
        num_inputs: int | None = 0,
        param_names: Sequence[str] | None = None,
    ) -> Iterator[ExecBuilder]:
        """A scope in which the instructions of a function are emitted.

        Raises:
            TVMError: the function is defined already, or another one is open.
            ValueError: there are more or fewer names than inputs.
        """
        if self._open is not None:
            raise TVMError(f'"{func_name}" begins inside of "{self._open.name}"; end that first')
        if func_name in self._functions:
            raise TVMError(f'The function "{func_name}" is defined already')
        names = param_names or [f"param_{n}" for n in range(num_inputs or 0)]
        if len(names) != (num_inputs or 0):
            raise ValueError(f'"{func_name}" has {num_inputs} input(s), but {len(names)} name(s)')
        self._kinds[func_name] = VMFuncKind.VM_FUNC
        self._open = self._functions[func_name] = code.Function(func_name, tuple(names))
        try:
            yield self
        finally:
            self._open = None

    def _emit(self, item: code.Instruction) -> None:
        if self._open is None:
            raise ValueError("emit should happen in a function scope: `with ib.function(name):`")
        self._open.instructions.append(item)

    # Instructions

    def emit_call(
        self,
        name: str,
        args: Sequence[Argument | tuple[int, ...] | NDArray | DataType] | None = None,
        dst: Argument | None = None,
    ) -> None:
        """Call a function. Arguments are made by `r`, `imm`, `c` and `f`, or are tensors, shapes
        and element types, which become constants. `dst` is the register of the result."""
        self.declare_function(name)
        operands = tuple(
            arg if isinstance(arg, int) else self.convert_constant(arg) for arg in args or ()
        )
        result = SpecialReg.VOID_ARG if dst is None else _register(dst)
        self._emit(code.Call(list(self._kinds).index(name), operands, result))

    def emit_ret(self, result: Argument) -> None:
        """Return the value of a register."""
        self._emit(code.Ret(_register(result)))

    def emit_goto(self, pc_offset: int) -> None:
        """Go on so many instructions further; back, where the number is negative."""
        self._emit(code.Goto(pc_offset))

    def emit_if(self, cond: Argument, false_offset: int) -> None:
        """Go on with the next instruction if the register holds true, else so many further."""
        self._emit(code.If(_register(cond), false_offset))

    def get(self) -> code.BytecodeExecutable:
        """The executable. Registers are numbered anew, in the order in which they are set.

        Raises: TVMError: a register is read that no instruction before sets, there is no such
            constant, or a jump leaves its function.
        """
        for func in self._functions.values():
            func.check(len(self._constants))
        functions = {name: func.renumbered() for name, func in self._functions.items()}
        return code.BytecodeExecutable(dict(self._kinds), functions, list(self._constants))


def _register(arg: Argument) -> int:
    if not isinstance(arg, int) or code.kind_of(arg) is not Kind.REGISTER:
        raise TypeError(f"A register is asked for, ib.r(…), not {arg!r}")
    return int(arg)


def _same(there: object, const: object) -> bool:
    """Whether two constants of one type are equal; tensors are by what they hold."""
    if isinstance(there, NDArray) and isinstance(const, NDArray):
        return contents(there) == contents(const)
    return there == const
