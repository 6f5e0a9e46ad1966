"""Modules to bytes: the binary format of WebAssembly."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction, Operation
from mlcweb.codegen.wasm.module import (
    Export,
    Function,
    FunctionType,
    GlobalType,
    Import,
    Memory,
    Module,
    WasmError,
)

HEADER = b"\0asm\1\0\0\0"
FUNCTION_TYPE = 0x60
NO_RESULT = 0x40
VALUE_TYPE_CODES = {"i32": 0x7F, "i64": 0x7E, "f32": 0x7D, "f64": 0x7C, "v128": 0x7B}
EXPORT_KINDS = {"function": 0, "memory": 2, "global": 3}
MODULE_NAME, FUNCTION_NAMES, LOCAL_NAMES, LABEL_NAMES, GLOBAL_NAMES = 0, 1, 2, 3, 7
"""Subsections of the name section; labels and globals are of the extended-name-section proposal."""


def single_bytes(value: float) -> bytes:
    """The nearest number of 32 bits, in memory; infinity beyond the greatest."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


_SHORT = tuple(bytes((value,)) for value in range(128))
_END = b"\x0b"


def unsigned(value: int) -> bytes:
    """`value` in LEB128: seven bits a byte, the lowest first."""
    if 0 <= value < 128:
        return _SHORT[value]
    if value < 0:
        raise ValueError(f"{value} is negative")
    code = bytearray()
    while value > 127:
        code.append(value & 127 | 128)
        value >>= 7
    code.append(value)
    return bytes(code)


def signed(value: int) -> bytes:
    """`value` in signed LEB128: two's complement, in as few groups of seven bits as hold it."""
    code = bytearray()
    while not -64 <= value < 64:
        code.append(value & 127 | 128)
        value >>= 7
    code.append(value & 127)
    return bytes(code)


def encode(module: Module) -> bytes:
    """The binary form of `module`, which is not checked beyond what encoding needs.

    Raises a WasmError that names the function and the instruction where an instruction is unknown
    or its immediates do not fit it.
    """
    return _Encoder(module).encode()


def _vector(items: Iterable[bytes]) -> bytes:
    items = list(items)
    return unsigned(len(items)) + b"".join(items)


def _sized(content: bytes) -> bytes:
    return unsigned(len(content)) + content


def _section(number: int, content: bytes) -> bytes:
    """A section, or nothing if it is an empty vector."""
    return b"" if content == b"\0" else bytes((number,)) + _sized(content)


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _value_types(types: Iterable[str]) -> bytes:
    return _vector(_SHORT[VALUE_TYPE_CODES[name]] for name in types)


def _limits(memory: Memory) -> bytes:
    bounds = unsigned(memory.minimum)
    if memory.maximum is not None:
        bounds += unsigned(memory.maximum)
    return bytes(((memory.maximum is not None) | memory.shared << 1,)) + bounds


def _global_type(variable: GlobalType) -> bytes:
    return bytes((VALUE_TYPE_CODES[variable.type], variable.mutable))


def _name_map(names: Iterable[str]) -> bytes:
    return _vector(unsigned(index) + _text(name) for index, name in enumerate(names) if name)


def _integer(bits: int) -> Callable[[_Encoder, int], bytes]:
    bound = 1 << (bits - 1)

    def encode_integer(_: _Encoder, value: int) -> bytes:
        if not -bound <= value < bound:
            raise ValueError(f"{value} is no signed integer of {bits} bits")
        return signed(value)

    return encode_integer


def _vector_constant(_: _Encoder, value: bytes) -> bytes:
    if len(value) != 16:
        raise ValueError(f"a v128 has 16 bytes, not {len(value)}")
    return value


def _shuffle_lanes(_: _Encoder, value: tuple[int, ...]) -> bytes:
    if len(value) != 16:
        raise ValueError(f"a shuffle picks 16 bytes, not {len(value)}")
    return bytes(value)


_IMMEDIATES: dict[str, Callable[[_Encoder, Any], bytes]] = {
    "i32": _integer(32),
    "i64": _integer(64),
    "f32": lambda _, value: single_bytes(value),
    "f64": lambda _, value: struct.pack("<d", value),
    "v128": _vector_constant,
    "memory": lambda _, offset: unsigned(offset),
    "lane": lambda _, lane: unsigned(lane),
    "lanes": _shuffle_lanes,
    "local": lambda _, index: unsigned(index),
    "label": lambda _, depth: unsigned(depth),
    "block": lambda _, type: _SHORT[VALUE_TYPE_CODES[type] if type else NO_RESULT],
    "function": lambda encoder, name: unsigned(encoder.functions[name]),
    "global": lambda encoder, name: unsigned(encoder.globals[name]),
}


def _opcode(operation: Operation) -> bytes:
    """What precedes the immediates that can vary; the alignment hint of an access is in it."""
    number = operation.number
    prefix = operation.prefix
    code = bytes((number,)) if prefix is None else bytes((prefix,)) + unsigned(number)
    return code + _SHORT[operation.access.bit_length() - 1] if operation.access else code


_ENCODINGS = {
    name: (
        _opcode(operation),
        tuple(_IMMEDIATES[kind] for kind in operation.immediates),
    )
    for name, operation in OPERATIONS.items()
}


class _Encoder:
    """The indices of one module, and its sections."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.types: dict[FunctionType, int] = {}
        self.functions = {name: index for index, name in enumerate(module.function_types())}
        self.globals = {name: index for index, name in enumerate(module.global_types())}

    def type_index(self, type: FunctionType) -> int:
        return self.types.setdefault(type, len(self.types))

    def encode(self) -> bytes:
        code = _vector(_sized(self.body(function)) for function in self.module.functions)
        names = _sized(_text("name") + self.names())
        sections = [*self.sections_before_code(), (10, code)]
        return HEADER + b"".join(_section(*item) for item in sections) + b"\0" + names

    def sections_before_code(self) -> list[tuple[int, bytes]]:
        module = self.module
        imports = _vector(map(self.imported, module.imports))
        functions = _vector(unsigned(self.type_index(f.type)) for f in module.functions)
        types = _vector(
            bytes((FUNCTION_TYPE,)) + _value_types(type.parameters) + _value_types(type.results)
            for type in self.types
        )
        return [
            (1, types),
            (2, imports),
            (3, functions),
            (5, _vector([] if module.memory is None else [_limits(module.memory)])),
            (
                6,
                _vector(
                    _global_type(variable.type) + self.instruction(variable.initial) + _END
                    for variable in module.globals
                ),
            ),
            (7, _vector(map(self.exported, module.exports))),
        ]

    def imported(self, item: Import) -> bytes:
        what = item.what
        if isinstance(what, FunctionType):
            description = b"\0" + unsigned(self.type_index(what))
        elif isinstance(what, Memory):
            description = b"\2" + _limits(what)
        else:
            description = b"\3" + _global_type(what)
        return _text(item.module) + _text(item.field) + description

    def exported(self, item: Export) -> bytes:
        indices = {"function": self.functions, "global": self.globals}.get(item.kind, {"": 0})
        if item.name not in indices:
            raise WasmError(f'Export "{item.field}": there is no {item.kind} "{item.name}"')
        kind = EXPORT_KINDS[item.kind]
        return _text(item.field) + bytes((kind,)) + unsigned(indices[item.name])

    def instruction(self, instruction: Instruction) -> bytes:
        mnemonic, *values = instruction
        opcode, encoders = _ENCODINGS[mnemonic]
        if len(values) != len(encoders):
            raise ValueError(f"it takes {len(encoders)} immediates")
        parts = [to_bytes(self, value) for to_bytes, value in zip(encoders, values, strict=True)]
        return opcode + b"".join(parts)

    def body(self, function: Function) -> bytes:
        """A function's code with its locals."""
        locals_ = _vector(
            unsigned(len(list(group))) + _SHORT[VALUE_TYPE_CODES[type]]
            for type, group in groupby(function.locals)
        )
        parts = [locals_]
        # Kernels repeat few distinct instructions. Floats stay out, where 0.0 equals -0.0.
        codes: dict[Instruction, bytes] = {}
        for instruction in function.body:
            try:
                code = codes.get(instruction)
                if code is None:
                    code = self.instruction(instruction)
                    if instruction[0] not in ("f32.const", "f64.const"):
                        codes[instruction] = code
            except (LookupError, TypeError, ValueError, OverflowError, struct.error) as error:
                raise WasmError(
                    f"Function {function.name}, instruction {len(parts) - 1}: "
                    f"cannot encode {instruction!r}: {error!r}"
                ) from error
            parts.append(code)
        return b"".join(parts) + _END

    def names(self) -> bytes:
        """The name section: what debuggers and traps show instead of indices."""
        module = self.module
        subsections = [
            (MODULE_NAME, _text(module.name) if module.name else b""),
            (FUNCTION_NAMES, _name_map(self.functions)),
            (LOCAL_NAMES, self.names_inside((f.name, f.local_names) for f in module.functions)),
            (LABEL_NAMES, self.names_inside((f.name, f.label_names) for f in module.functions)),
            (GLOBAL_NAMES, _name_map(self.globals)),
        ]
        return b"".join(
            bytes((kind,)) + _sized(content)
            for kind, content in subsections
            if content not in (b"", b"\0")
        )

    def names_inside(self, functions: Iterable[tuple[str, tuple[str, ...]]]) -> bytes:
        return _vector(
            unsigned(self.functions[function]) + _name_map(names)
            for function, names in functions
            if any(names)
        )
