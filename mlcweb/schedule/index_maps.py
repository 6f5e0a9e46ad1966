"""Index maps in trace records, as TVM 0.27 writes them: a JSON text that lists a graph's nodes.

    {"root_index": 8, "nodes": [{"type": "None"}, {"type": "ir.PrimType", "data": {…}}, …]}

A node is a value (`int`, `ffi.String`), an array of node numbers, or an object whose fields are
node numbers (`span`, `ty`, …) or plain numbers. Object types are named `ir.Var`, `prim.FloorDiv`,
`tirx.IndexMap`; only what follows the dot is looked at when reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.operators import Family, keys

_BINARY: dict[str, type[E.PrimExpr]] = {
    cls.__name__: cls for cls in keys(Family.ARITHMETIC, arity=2)
}


def to_record(index_map: IndexMap) -> str:
    """The JSON text of a map. A DiagnosticError where it holds more than integer arithmetic."""
    writer = _Writer()
    root = writer.index_map(index_map)
    return json.dumps({"root_index": root, "nodes": writer.nodes}, separators=(",", ":"))


def from_record(text: str) -> IndexMap:
    """The map of a JSON text, of `to_record` or of TVM."""
    graph = json.loads(text)
    reader = _Reader(graph["nodes"])
    value = reader.value(graph["root_index"])
    if not isinstance(value, IndexMap):
        raise DiagnosticError(f"The record holds a {type(value).__name__}, not an index map")
    return value


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type": "None"}]
        self.places: dict[Any, int] = {}

    def index_map(self, index_map: IndexMap) -> int:
        initial = self._array([self._expression(var) for var in index_map.initial_indices])
        final = self._array([self._expression(index) for index in index_map.final_indices])
        inverse = index_map.inverse_index_map
        return self._object(
            "tirx.IndexMap",
            initial_indices=initial,
            final_indices=final,
            inverse_index_map=0 if inverse is None else self.index_map(inverse),
        )

    def _expression(self, value: E.PrimExpr) -> int:
        if value in self.places:
            return self.places[value]
        at = self._new_expression(value)
        self.places[value] = at
        return at

    def _new_expression(self, value: E.PrimExpr) -> int:
        ty = self._shared("ir.PrimType", value.dtype, {"span": 0, "dtype": value.dtype})
        if isinstance(value, E.Var):
            name = self._shared("ffi.String", value.name, value.name)
            return self._object("ir.Var", span=0, ty=ty, name=name)
        if isinstance(value, E.IntImm):
            number = self._shared("int", value.value, value.value)
            return self._object("ir.IntImm", span=0, ty=ty, value=number)
        if isinstance(value, E.FloatImm):
            return self._object("ir.FloatImm", span=0, ty=ty, value=value.value)
        if isinstance(value, E.Cast):
            return self._object("prim.Cast", span=0, ty=ty, value=self._expression(value.value))
        name = type(value).__name__
        if name not in _BINARY:
            raise DiagnosticError(f"Records of index maps hold arithmetic, not {value!r}")
        a, b = self._expression(value.a), self._expression(value.b)  # type: ignore[attr-defined]
        return self._object(f"prim.{name}", span=0, ty=ty, a=a, b=b)

    def _shared(self, kind: str, key: Any, data: Any) -> int:
        if (kind, key) not in self.places:
            self.nodes.append({"type": kind, "data": data})
            self.places[kind, key] = len(self.nodes) - 1
        return self.places[kind, key]

    def _array(self, items: list[int]) -> int:
        self.nodes.append({"type": "ffi.Array", "data": items})
        return len(self.nodes) - 1

    def _object(self, kind: str, **fields: Any) -> int:
        self.nodes.append({"type": kind, "data": fields})
        return len(self.nodes) - 1


class _Reader:
    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self.nodes = nodes
        self.known: dict[int, Any] = {}

    def value(self, at: int) -> Any:
        if at not in self.known:
            node = self.nodes[at]
            kind = node["type"].split(".")[-1]
            if kind not in _READERS:
                raise DiagnosticError(f"Index maps with {node['type']} cannot be read")
            self.known[at] = _READERS[kind](self, node.get("data"))
        return self.known[at]

    def dtype(self, data: dict[str, Any]) -> str:
        return self.nodes[data["ty"]]["data"]["dtype"]


def _binary_reader(cls: Any) -> Callable[[_Reader, Any], Any]:
    return lambda reader, data: cls(reader.value(data["a"]), reader.value(data["b"]))


_READERS: dict[str, Callable[[_Reader, Any], Any]] = {
    "None": lambda reader, data: None,
    "int": lambda reader, data: data,
    "float": lambda reader, data: data,
    "String": lambda reader, data: data,
    "Array": lambda reader, data: tuple(reader.value(item) for item in data),
    "Var": lambda reader, data: E.Var(reader.value(data["name"]), reader.dtype(data)),
    "IntImm": lambda reader, data: const(reader.value(data["value"]), reader.dtype(data)),
    "FloatImm": lambda reader, data: E.FloatImm(reader.dtype(data), data["value"]),
    "Cast": lambda reader, data: E.Cast(reader.dtype(data), reader.value(data["value"])),
    "IndexMap": lambda reader, data: IndexMap(
        reader.value(data["initial_indices"]),
        reader.value(data["final_indices"]),
        reader.value(data["inverse_index_map"]),
    ),
    **{name: _binary_reader(cls) for name, cls in _BINARY.items()},
}


def map_of_record(value: Any) -> Any:
    """A map as a record has it: its text, itself, or None."""
    return from_record(value) if isinstance(value, str) else value
