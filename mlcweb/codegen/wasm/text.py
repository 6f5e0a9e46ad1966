"""The text format of WebAssembly (WAT), one instruction a line, for people to read.

What is printed, an assembler turns back into the same module.
"""

from __future__ import annotations

import itertools
import math
import string
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.wasm.binary import single_bytes
from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction, ValueType
from mlcweb.codegen.wasm.module import Function, GlobalType, Memory, Module

_IDENTIFIER_CHARACTERS = {*string.ascii_letters, *string.digits, *"!#$%&'*+-./:<=>?@\\^_`|~"}
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Text:
    """A printed module. `sources` has, for each line, the tag of the instruction on it or None."""

    text: str
    sources: tuple[Hashable, ...]


def print_text(module: Module) -> Text:
    """`module` in the text format, with the names of functions, globals, locals and labels."""
    printer = _Printer(module)
    printer.print()
    return Text("\n".join(printer.lines) + "\n", tuple(printer.sources))


def format_float(value: float, bits: int) -> str:
    """`value` in the fewest digits that give the same float of 32 or 64 `bits` back."""
    if math.isnan(value):
        sign, payload = _nan_parts(value, bits)
        quiet = 1 << (22 if bits == 32 else 51)
        return sign + ("nan" if payload == quiet else f"nan:{payload:#x}")
    if bits == 64 or math.isinf(value):
        return repr(value)
    single = _as_single(value)
    digits = (f"{single:.{count}g}" for count in range(1, 10))
    return next(text for text in digits if _as_single(float(text)) == single)


def _as_single(value: float) -> float:
    return struct.unpack("<f", single_bytes(value))[0]


def _nan_parts(value: float, bits: int) -> tuple[str, int]:
    packed = struct.pack("<f" if bits == 32 else "<d", value)
    number = int.from_bytes(packed, "little")
    mantissa = number & ((1 << (23 if bits == 32 else 52)) - 1)
    return "-" if number >> (bits - 1) else "", mantissa


def _identifiers(names: Iterable[str]) -> list[str]:
    """For each name an identifier that no other has; "" for those without a name."""
    used: set[str] = set()
    identifiers: list[str] = []
    for name in names:
        clean = "".join(c if c in _IDENTIFIER_CHARACTERS else "_" for c in name)
        identifier = f"${clean}" if name else ""
        for count in itertools.count(1):
            if identifier not in used or not name:
                break
            identifier = f"${clean}_{count}"
        used.add(identifier)
        identifiers.append(identifier)
    return identifiers


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def _string(content: str) -> str:
    plain = set(range(0x20, 0x7F)) - set(b'"\\')
    return '"' + "".join(chr(c) if c in plain else f"\\{c:02x}" for c in content.encode()) + '"'


def _memory(memory: Memory) -> str:
    maximum = "" if memory.maximum is None else str(memory.maximum)
    return f"(memory {_words(str(memory.minimum), maximum, 'shared' if memory.shared else '')})"


def _global_type(variable: GlobalType) -> str:
    return f"(mut {variable.type})" if variable.mutable else variable.type


def _types(keyword: str, types: Sequence[ValueType]) -> str:
    return f"({keyword} {' '.join(types)})" if types else ""


def _vector_constant(value: bytes) -> str:
    return "i32x4 " + " ".join(f"{lane:#010x}" for lane in struct.unpack("<4I", value))


class _Printer:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.sources: list[Hashable] = []
        functions, globals_ = module.function_types(), module.global_types()
        self.functions = dict(zip(functions, _identifiers(functions), strict=True))
        self.globals = dict(zip(globals_, _identifiers(globals_), strict=True))
        self.locals: list[str] = []
        self.labels: list[str] = []

    def line(self, depth: int, text: str, source: Hashable = None) -> None:
        self.lines.append(INDENT * depth + text)
        self.sources.append(source)

    def print(self) -> None:
        module = self.module
        self.line(0, _words("(module", *_identifiers([module.name])))
        for item in module.imports:
            self.line(1, f"(import {_string(item.module)} {_string(item.field)} {self.what(item)})")
        if module.memory:
            self.line(1, _memory(module.memory))
        for variable in module.globals:
            initial = self.instruction(variable.initial)
            kind = _global_type(variable.type)
            self.line(1, f"(global {self.globals[variable.name]} {kind} ({initial}))")
        for function in module.functions:
            self.function(function)
        for export in module.exports:
            names = {"function": self.functions, "global": self.globals}.get(export.kind, {"": "0"})
            kind = "func" if export.kind == "function" else export.kind
            self.line(1, f"(export {_string(export.field)} ({kind} {names[export.name]}))")
        self.line(0, ")")

    def what(self, item: Any) -> str:
        what = item.what
        if isinstance(what, Memory):
            return _memory(what)
        if isinstance(what, GlobalType):
            return f"(global {self.globals[item.name]} {_global_type(what)})"
        types = _words(_types("param", what.parameters), _types("result", what.results))
        return f"({_words('func', self.functions[item.name], types)})"

    def function(self, function: Function) -> None:
        parameters = function.type.parameters
        types = (*parameters, *function.locals)
        names = function.local_names or ("",) * len(types)
        identifiers = _identifiers(names)
        self.locals = [name or str(index) for index, name in enumerate(identifiers)]
        variables = [_words(*pair) for pair in zip(identifiers, types, strict=True)]
        header = [f"(param {variable})" for variable in variables[: len(parameters)]]
        result = _types("result", function.type.results)
        self.line(1, _words("(func", self.functions[function.name], *header, result))
        for variable in variables[len(parameters) :]:
            self.line(2, f"(local {variable})")
        self.body(function)
        self.line(1, ")")

    def body(self, function: Function) -> None:
        blocks = sum(instruction[0] in ("block", "loop", "if") for instruction in function.body)
        labels = iter(_identifiers(function.label_names or ("",) * blocks))
        sources = function.sources or (None,) * len(function.body)
        self.labels = []
        for instruction, source in zip(function.body, sources, strict=True):
            mnemonic = instruction[0]
            if mnemonic == "end":
                self.labels.pop()
            if mnemonic in ("block", "loop", "if"):
                label = next(labels)
                result = _types("result", (instruction[1],) if instruction[1] else ())
                self.line(2 + len(self.labels), _words(mnemonic, label, result), source)
                self.labels.append(label)
            else:
                depth = len(self.labels) + (1 if mnemonic == "else" else 2)
                self.line(depth, self.instruction(instruction), source)

    def instruction(self, instruction: Instruction) -> str:
        mnemonic, *values = instruction
        kinds = OPERATIONS[mnemonic].immediates
        printed = (
            _IMMEDIATES[kind](self, value) for kind, value in zip(kinds, values, strict=True)
        )
        return _words(mnemonic, *printed)

    def label(self, depth: int) -> str:
        name = self.labels[-1 - depth] if depth < len(self.labels) else ""
        return name or str(depth)


_IMMEDIATES: dict[str, Callable[[_Printer, Any], str]] = {
    "i32": lambda _, value: str(value),
    "i64": lambda _, value: str(value),
    "f32": lambda _, value: format_float(value, 32),
    "f64": lambda _, value: format_float(value, 64),
    "v128": lambda _, value: _vector_constant(value),
    "memory": lambda _, offset: f"offset={offset}" if offset else "",
    "lane": lambda _, lane: str(lane),
    "lanes": lambda _, lanes: " ".join(map(str, lanes)),
    "local": lambda printer, index: printer.locals[index],
    "label": _Printer.label,
    "function": lambda printer, name: printer.functions[name],
    "global": lambda printer, name: printer.globals[name],
}
