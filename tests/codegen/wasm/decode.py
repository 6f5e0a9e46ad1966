"""Bytes to modules: reads back what `binary.encode` writes, and what other tools write if it uses
no more of WebAssembly than we do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from mlcweb.codegen.wasm.binary import (
    EXPORT_KINDS,
    FUNCTION_NAMES,
    FUNCTION_TYPE,
    GLOBAL_NAMES,
    HEADER,
    LABEL_NAMES,
    LOCAL_NAMES,
    MODULE_NAME,
    NO_RESULT,
    VALUE_TYPE_CODES,
)
from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction, Operation
from mlcweb.codegen.wasm.module import (
    Export,
    Function,
    FunctionType,
    Global,
    GlobalType,
    Import,
    Memory,
    Module,
    WasmError,
)

Item = TypeVar("Item")

_BY_OPCODE: dict[tuple[int | None, int], Operation] = {
    (operation.prefix, operation.number): operation for operation in OPERATIONS.values()
}
_PREFIXES = {prefix for prefix, _ in _BY_OPCODE if prefix is not None}
_VALUE_TYPES = {code: name for name, code in VALUE_TYPE_CODES.items()}
_EXPORT_KINDS = {code: kind for kind, code in EXPORT_KINDS.items()}


def decode(code: bytes, names: bool = True) -> Module:
    """The module that `code` is. Other custom sections than the names are left out.

    Functions and globals without a name, and all of them where `names` is false, are called
    `function0`, `global0` and so on by their index. Raises a WasmError that gives the byte offset
    where the bytes are no module or use what we do not support.
    """
    decoder = _Decoder(code)
    try:
        return decoder.module(names)
    except (LookupError, ValueError, struct.error) as error:
        raise WasmError(f"Not a module we can read, at byte {decoder.position}: {error}") from error


class _Decoder:
    """A position in the bytes, and what indices in them refer to."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.position = 0
        self.sections: dict[int | str, tuple[int, int]] = {}
        self.names: dict[int, Any] = {}
        self.types: tuple[FunctionType, ...] = ()
        self.functions = 0
        self.globals = 0

    def byte(self) -> int:
        value = self.code[self.position]
        self.position += 1
        return value

    def bytes(self, size: int) -> bytes:
        start = self.position
        if start + size > len(self.code):
            raise ValueError("it ends too early")
        self.position = start + size
        return self.code[start : start + size]

    def unsigned(self) -> int:
        value = shift = 0
        while (group := self.byte()) > 127:
            value |= (group & 127) << shift
            shift += 7
        return value | group << shift

    def signed(self) -> int:
        start = self.position
        value = self.unsigned()
        bits = 7 * (self.position - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        return self.bytes(self.unsigned()).decode()

    def vector(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        return tuple(item() for _ in range(self.unsigned()))

    def expect(self, expected: bytes, what: str) -> None:
        if self.bytes(len(expected)) != expected:
            raise ValueError(f"expected {what}")

    def module(self, names: bool) -> Module:
        self.expect(HEADER, "the magic number and version 1")
        self.find_sections()
        if names and "name" in self.sections:
            self.read_names()
        # In this order, since later sections count on from earlier ones.
        self.types = self.section(1, self.function_type)
        imports = self.section(2, self.imported)
        types = self.section(3, lambda: self.types[self.unsigned()])
        memories = self.section(5, self.limits)
        globals_ = self.section(6, self.global_variable)
        exports = self.section(7, self.exported)
        remaining = iter(types)
        return Module(
            name=self.names.get(MODULE_NAME, ""),
            imports=imports,
            functions=self.section(10, lambda: self.function(next(remaining))),
            memory=memories[0] if memories else None,
            globals=globals_,
            exports=exports,
        )

    def find_sections(self) -> None:
        """Note where the content of each section lies; a custom section is known by its name."""
        while self.position < len(self.code):
            kind = self.byte()
            if kind > 11:
                raise ValueError(f"section {kind} is not supported")
            end = self.unsigned() + self.position
            name = kind or self.text()
            self.sections[name] = (self.position, end)
            self.position = end

    def section(self, kind: int, item: Callable[[], Item]) -> tuple[Item, ...]:
        if kind not in self.sections:
            return ()
        self.position, end = self.sections[kind]
        items = self.vector(item)
        if self.position != end:
            raise ValueError(f"section {kind} should end at byte {end}")
        return items

    def read_names(self) -> None:
        readers = {
            MODULE_NAME: self.text,
            FUNCTION_NAMES: lambda: _without_repetition(self.name_map()),
            GLOBAL_NAMES: lambda: _without_repetition(self.name_map()),
            LOCAL_NAMES: self.nested_name_map,
            LABEL_NAMES: self.nested_name_map,
        }
        self.position, end = self.sections["name"]
        while self.position < end:
            kind = self.byte()
            after = self.unsigned() + self.position
            if kind in readers:
                self.names[kind] = readers[kind]()
            self.position = after

    def name_map(self) -> dict[int, str]:
        return dict(self.vector(lambda: (self.unsigned(), self.text())))

    def nested_name_map(self) -> dict[int, dict[int, str]]:
        return dict(self.vector(lambda: (self.unsigned(), self.name_map())))

    def names_inside(self, kind: int, function: int, count: int) -> tuple[str, ...]:
        names = self.names.get(kind, {}).get(function, {})
        return tuple(names.get(index, "") for index in range(count)) if names else ()

    def function_name(self, index: int) -> str:
        return self.names.get(FUNCTION_NAMES, {}).get(index, f"function{index}")

    def global_name(self, index: int) -> str:
        return self.names.get(GLOBAL_NAMES, {}).get(index, f"global{index}")

    def value_type(self) -> str:
        return _VALUE_TYPES[self.byte()]

    def function_type(self) -> FunctionType:
        self.expect(bytes((FUNCTION_TYPE,)), "a function type")
        return FunctionType(self.vector(self.value_type), self.vector(self.value_type))

    def limits(self) -> Memory:
        flags = self.byte()
        minimum = self.unsigned()
        return Memory(minimum, self.unsigned() if flags & 1 else None, bool(flags & 2))

    def global_type(self) -> GlobalType:
        return GlobalType(self.value_type(), bool(self.byte()))

    def imported(self) -> Import:
        module, field, kind = self.text(), self.text(), self.byte()
        if kind == 0:
            self.functions += 1
            name = self.function_name(self.functions - 1)
            return Import(module, field, self.types[self.unsigned()], name)
        if kind == 2:
            return Import(module, field, self.limits())
        if kind == 3:
            self.globals += 1
            return Import(module, field, self.global_type(), self.global_name(self.globals - 1))
        raise ValueError("an imported table is not supported")

    def exported(self) -> Export:
        field, kind, index = self.text(), _EXPORT_KINDS[self.byte()], self.unsigned()
        names = {"function": self.function_name, "global": self.global_name}
        return Export(field, kind, names[kind](index) if kind in names else "")

    def global_variable(self) -> Global:
        self.globals += 1
        name = self.global_name(self.globals - 1)
        return Global(name, self.global_type(), self.constant())

    def constant(self) -> Instruction:
        """A constant expression of one instruction."""
        value = self.instruction()
        if self.instruction() != ("end",):
            raise ValueError("a constant expression has more than one instruction")
        return value

    def function(self, type: FunctionType) -> Function:
        index = self.functions
        self.functions += 1
        end = self.unsigned() + self.position
        runs = self.vector(lambda: (self.unsigned(), self.value_type()))
        locals_ = tuple(type for count, type in runs for _ in range(count))
        body: list[Instruction] = []
        while self.position < end:
            body.append(self.instruction())
        if body.pop() != ("end",):
            raise ValueError("a function does not end in `end`")
        labels = sum(instruction[0] in ("block", "loop", "if") for instruction in body)
        return Function(
            self.function_name(index),
            type,
            locals_,
            tuple(body),
            self.names_inside(LOCAL_NAMES, index, len(type.parameters) + len(locals_)),
            self.names_inside(LABEL_NAMES, index, labels),
        )

    def instruction(self) -> Instruction:
        first = self.byte()
        key = (first, self.unsigned()) if first in _PREFIXES else (None, first)
        operation = _BY_OPCODE.get(key)
        if operation is None:
            raise ValueError(f"no instruction has the opcode {key[1]:#x} (prefix {key[0]})")
        values = tuple(_IMMEDIATES[kind](self) for kind in operation.immediates)
        return (operation.mnemonic, *values)

    def memory_offset(self) -> int:
        if self.unsigned() > 4:
            raise ValueError("a memory other than the first is not supported")
        return self.unsigned()

    def block_type(self) -> str | None:
        code = self.byte()
        return None if code == NO_RESULT else _VALUE_TYPES[code]


_IMMEDIATES: dict[str, Callable[[_Decoder], Any]] = {
    "i32": _Decoder.signed,
    "i64": _Decoder.signed,
    "f32": lambda decoder: struct.unpack("<f", decoder.bytes(4))[0],
    "f64": lambda decoder: struct.unpack("<d", decoder.bytes(8))[0],
    "v128": lambda decoder: decoder.bytes(16),
    "memory": _Decoder.memory_offset,
    "lane": _Decoder.byte,
    "lanes": lambda decoder: tuple(decoder.bytes(16)),
    "local": _Decoder.unsigned,
    "label": _Decoder.unsigned,
    "block": _Decoder.block_type,
    "function": lambda decoder: decoder.function_name(decoder.unsigned()),
    "global": lambda decoder: decoder.global_name(decoder.unsigned()),
}


def _without_repetition(names: dict[int, str]) -> dict[int, str]:
    """A name that several things have is left to the first."""
    first = {name: index for index, name in reversed(names.items())}
    return {index: name for name, index in first.items()}
