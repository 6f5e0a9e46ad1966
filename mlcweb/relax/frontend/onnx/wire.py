"""Protocol buffers' wire format, read into plain objects by a schema of a few lines.

A schema names for each message its fields by number: `1: "name: str"`, `2: "dims: [int]"`. Fields
that a schema does not name are skipped, and fields that are not in the data get the default of
their kind, as the format demands; or None, where the schema says `int?`.

Source: "Encoding", Protocol Buffers documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TypeAlias

Message = SimpleNamespace
Schema = Mapping[str, Mapping[int, str]]
Scalar: TypeAlias = int | float | str | bytes
Raw: TypeAlias = int | memoryview
"""What a field holds, not yet converted: an integer, or bytes."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no message of the schema."""


class Decoder:
    """Reads the messages of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._fields = {
            message: {number: _Field(text) for number, text in fields.items()}
            for message, fields in schema.items()
        }

    def decode(self, message: str, data: bytes | memoryview) -> Message:
        """The message that fills `data`. Raises: WireError."""
        fields = self._fields[message]
        result = Message(**{field.name: field.default() for field in fields.values()})
        view = memoryview(data)
        position = 0
        while position < len(view):
            key, position = _varint(view, position)
            field = fields.get(key >> 3)
            raw, position = _raw(view, position, key & 7, message)
            if field is not None:
                self._store(result, field, key & 7, raw)
        return result

    def _store(self, result: Message, field: _Field, wire_type: int, raw: Raw) -> None:
        packed = wire_type == _BYTES and field.repeated and field.kind in _PACKED
        if not packed and wire_type != _WIRE_TYPES.get(field.kind, _BYTES):
            raise WireError(f'the field "{field.name}" has the wire type {wire_type}')
        value: Message | Scalar
        if isinstance(raw, memoryview) and field.kind in self._fields:
            value = self.decode(field.kind, raw)
        elif isinstance(raw, memoryview) and packed:
            getattr(result, field.name).extend(_unpacked(field.kind, raw))
            return
        else:
            value = _CONVERT[field.kind](raw)
        if field.repeated:
            getattr(result, field.name).append(value)
        else:
            setattr(result, field.name, value)


class _Field:
    """One line of a schema."""

    __slots__ = ("kind", "name", "optional", "repeated")

    def __init__(self, text: str) -> None:
        self.name, kind = text.split(": ")
        self.repeated = kind.startswith("[")
        self.optional = kind.endswith("?")
        self.kind = kind.strip("[]?")

    def default(self) -> list[Message | Scalar] | Scalar | None:
        if self.repeated:
            return []
        return None if self.optional else _DEFAULTS.get(self.kind)


_DEFAULTS: dict[str, Scalar] = {"int": 0, "float": 0.0, "double": 0.0, "str": "", "bytes": b""}
_PACKED = {"int": None, "uint": None, "float": "f", "double": "d"}
"""Kinds of which many may stand in one field, and the format of those of a fixed size."""


_WIRE_TYPES = {"int": _VARINT, "uint": _VARINT, "float": _FIXED32, "double": _FIXED64}
"""How kinds are written, one at a time; all others have a length and bytes."""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


_CONVERT: dict[str, Callable[..., Scalar]] = {
    "int": _signed,
    "uint": int,
    "float": lambda raw: struct.unpack("<f", raw)[0],
    "double": lambda raw: struct.unpack("<d", raw)[0],
    "str": lambda raw: bytes(raw).decode("utf-8", "replace"),
    "bytes": bytes,
}


def _unpacked(kind: str, raw: memoryview) -> list[Scalar]:
    form = _PACKED[kind]
    if form is not None:
        return [value for (value,) in struct.iter_unpack("<" + form, raw)]
    values, position = [], 0
    while position < len(raw):
        value, position = _varint(raw, position)
        values.append(_CONVERT[kind](value))
    return values


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(view) or shift > 63:
            raise WireError(f"an integer is cut off or too long at byte {position}")
        byte = view[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7


def _raw(view: memoryview, position: int, wire_type: int, message: str) -> tuple[Raw, int]:
    """What a field holds, not yet converted, and where the next one begins."""
    if wire_type == _VARINT:
        return _varint(view, position)
    if wire_type == _BYTES:
        size, position = _varint(view, position)
    elif wire_type in (_FIXED64, _FIXED32):
        size = 8 if wire_type == _FIXED64 else 4
    else:
        raise WireError(f"byte {position} of a {message} has the unknown wire type {wire_type}")
    if position + size > len(view):
        raise WireError(
            f"a field of a {message} needs {size} bytes at byte {position}, "
            f"and {len(view) - position} are left"
        )
    return view[position : position + size], position + size
