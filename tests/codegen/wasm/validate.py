"""Checks a module before an engine does, and says which instruction of which function is at fault.

Types are checked by the algorithm in the appendix of the WebAssembly specification ("Validation
Algorithm"): a stack of operand types and a stack of enclosing blocks, where after an unconditional
jump the operand stack holds any number of values of any type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction, ValueType
from mlcweb.codegen.wasm.module import (
    Function,
    FunctionType,
    GlobalType,
    Memory,
    Module,
    WasmError,
)

_ANY = "any"
"""The type of an operand that code which never runs would find."""


def validate(module: Module) -> None:
    """Raise a WasmError where `module` is no valid WebAssembly.

    The message names the function, the instruction and its index, what was on the stack and what
    is needed there, and the source tag of the instruction where there is one.
    """
    memories = [i.what for i in module.imports if isinstance(i.what, Memory)]
    memories += [module.memory] if module.memory else []
    if len(memories) > 1:
        raise WasmError("A module has more than one memory")
    for memory in memories:
        if memory.shared and memory.maximum is None:
            raise WasmError("A shared memory needs a maximum size")
    context = _Context(module.function_types(), module.global_types(), bool(memories))
    _check_references(module, context)
    for function in module.functions:
        _FunctionCheck(function, context).run()


@dataclass(frozen=True, slots=True)
class _Context:
    functions: dict[str, FunctionType]
    globals: dict[str, GlobalType]
    has_memory: bool


def _check_references(module: Module, context: _Context) -> None:
    known = {"function": context.functions, "global": context.globals}
    for export in module.exports:
        if export.kind in known and export.name not in known[export.kind]:
            raise WasmError(f'Export "{export.field}": there is no {export.kind} "{export.name}"')
    for variable in module.globals:
        if variable.initial[0] != f"{variable.type.type}.const":
            raise WasmError(f"Global {variable.name} starts as no constant {variable.type.type}")


@dataclass(slots=True)
class _Block:
    """A block being checked: what a jump to it takes, what it leaves, and the operands below it."""

    kind: str
    jump: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    height: int
    reachable: bool = True


class _FunctionCheck:
    def __init__(self, function: Function, context: _Context) -> None:
        self.function = function
        self.context = context
        self.locals = (*function.type.parameters, *function.locals)
        self.stack: list[ValueType] = []
        results = function.type.results
        self.blocks = [_Block("function", results, results, 0)]

    def run(self) -> None:
        for index, instruction in enumerate((*self.function.body, ("end",))):
            before = self.stack[-4:]
            try:
                if not self.blocks:
                    raise WasmError("it stands after the end of the function")
                if index == len(self.function.body) and len(self.blocks) > 1:
                    raise WasmError(f"a {self.blocks[-1].kind} has no end")
                self.step(instruction)
            except (WasmError, LookupError, TypeError, ValueError) as error:
                raise WasmError(self.describe(index, instruction, before, error)) from None

    def describe(
        self, index: int, instruction: Instruction, stack: list[ValueType], error: Exception
    ) -> str:
        sources = self.function.sources
        origin = f" (from {sources[index]})" if index < len(sources) and sources[index] else ""
        shown = " ".join(map(str, instruction))
        return (
            f"Function {self.function.name}, instruction {index}, {shown}{origin}: "
            f"{error}; on the stack: {' '.join(stack) or 'nothing'}"
        )

    def step(self, instruction: Instruction) -> None:
        mnemonic, *values = instruction
        operation = OPERATIONS.get(mnemonic)
        if operation is None:
            raise WasmError("there is no such instruction")
        if len(values) != len(operation.immediates):
            raise WasmError(f"it takes the immediates ({', '.join(operation.immediates)})")
        if operation.access or mnemonic.startswith("memory."):
            self.check_access(values)
        if "lane" in operation.immediates:
            shape = mnemonic.partition(".")[0]
            lanes = 16 // operation.access if operation.access else int(shape.partition("x")[2])
            if not 0 <= values[-1] < lanes:
                raise WasmError(f"there are only {lanes} lanes")
        if operation.effect is None:
            _SPECIAL[mnemonic](self, *values)
            return
        if mnemonic == "i8x16.shuffle" and not all(0 <= lane < 32 for lane in values[0]):
            raise WasmError("a shuffle picks from 32 bytes")
        operands, results = operation.effect
        self.pop(operands)
        self.stack.extend(results)

    def check_access(self, values: Sequence[Any]) -> None:
        if not self.context.has_memory:
            raise WasmError("the module has no memory")
        if values and not 0 <= values[0] < 1 << 32:
            raise WasmError("the offset is not within 32 bits")

    def pop(self, types: Sequence[ValueType]) -> list[ValueType]:
        """Take operands of these types from the stack, and return what was found there."""
        block = self.blocks[-1]
        found = self.stack[max(block.height, len(self.stack) - len(types)) :]
        del self.stack[len(self.stack) - len(found) :]
        if len(found) < len(types) and not block.reachable:
            found = [_ANY] * (len(types) - len(found)) + found
        fits = len(found) == len(types) and all(
            _ANY in pair or pair[0] == pair[1] for pair in zip(found, types, strict=True)
        )
        if not fits:
            raise WasmError(f"it needs {' '.join(types)}, found {' '.join(found) or 'nothing'}")
        return found

    def leave(self) -> None:
        """What follows is never reached."""
        block = self.blocks[-1]
        del self.stack[block.height :]
        block.reachable = False

    def block(self, depth: int) -> _Block:
        if not 0 <= depth < len(self.blocks):
            raise WasmError(f"there are only {len(self.blocks)} enclosing blocks")
        return self.blocks[-1 - depth]

    def open(self, kind: str, result: ValueType | None) -> None:
        if kind == "if":
            self.pop(("i32",))
        results = (result,) if result else ()
        self.blocks.append(
            _Block(kind, () if kind == "loop" else results, results, len(self.stack))
        )

    def close(self) -> _Block:
        block = self.blocks[-1]
        self.pop(block.results)
        if len(self.stack) > block.height:
            left = " ".join(self.stack[block.height :])
            raise WasmError(f"the {block.kind} would leave {left} on the stack")
        return self.blocks.pop()

    def otherwise(self) -> None:
        block = self.close()
        if block.kind != "if":
            raise WasmError(f"it stands in a {block.kind}, not in an if")
        self.blocks.append(_Block("else", block.results, block.results, block.height))

    def end(self) -> None:
        block = self.close()
        if block.kind == "if" and block.results:
            raise WasmError("an if with a result needs an else")
        self.stack.extend(block.results)

    def jump(self, depth: int) -> None:
        self.pop(self.block(depth).jump)
        self.leave()

    def jump_if(self, depth: int) -> None:
        self.pop(("i32",))
        types = self.block(depth).jump
        self.pop(types)
        self.stack.extend(types)

    def call(self, type: FunctionType) -> None:
        self.pop(type.parameters)
        self.stack.extend(type.results)

    def call_named(self, name: str) -> None:
        if name not in self.context.functions:
            raise WasmError(f'there is no function "{name}"')
        self.call(self.context.functions[name])

    def return_(self) -> None:
        self.pop(self.blocks[0].results)
        self.leave()

    def select(self) -> None:
        self.pop(("i32",))
        first, second = self.pop((_ANY, _ANY))
        if _ANY not in (first, second) and first != second:
            raise WasmError(f"it chooses between {first} and {second}")
        self.stack.append(second if first == _ANY else first)

    def local(self, index: int) -> ValueType:
        if not 0 <= index < len(self.locals):
            raise WasmError(f"there are only {len(self.locals)} locals")
        return self.locals[index]

    def global_(self, name: str, write: bool) -> ValueType:
        if name not in self.context.globals:
            raise WasmError(f'there is no global "{name}"')
        variable = self.context.globals[name]
        if write and not variable.mutable:
            raise WasmError("it is constant")
        return variable.type

    def tee(self, index: int) -> None:
        type = self.local(index)
        self.pop((type,))
        self.stack.append(type)


_SPECIAL: dict[str, Callable[..., object]] = {
    "unreachable": _FunctionCheck.leave,
    "block": lambda check, result: check.open("block", result),
    "loop": lambda check, result: check.open("loop", result),
    "if": lambda check, result: check.open("if", result),
    "else": _FunctionCheck.otherwise,
    "end": _FunctionCheck.end,
    "br": _FunctionCheck.jump,
    "br_if": _FunctionCheck.jump_if,
    "return": _FunctionCheck.return_,
    "call": _FunctionCheck.call_named,
    "drop": lambda check: check.pop((_ANY,)),
    "select": _FunctionCheck.select,
    "local.get": lambda check, index: check.stack.append(check.local(index)),
    "local.set": lambda check, index: check.pop((check.local(index),)),
    "local.tee": _FunctionCheck.tee,
    "global.get": lambda check, name: check.stack.append(check.global_(name, False)),
    "global.set": lambda check, name: check.pop((check.global_(name, True),)),
}
