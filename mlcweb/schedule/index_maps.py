"""Index maps in trace records, as TVM 0.27 writes them (see `mlcweb/arith/object_graph.py`)."""

from __future__ import annotations

import json
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.arith.object_graph import graph_of, value_of
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.operators import Family, keys

_ARITHMETIC = (E.Var, E.IntImm, E.FloatImm, E.Cast, IndexMap, *keys(Family.ARITHMETIC, arity=2))


def to_record(index_map: IndexMap) -> str:
    """The JSON text of a map. A DiagnosticError where it holds more than integer arithmetic."""
    for node in walk(index_map):
        if not isinstance(node, _ARITHMETIC):
            raise DiagnosticError(f"Records of index maps hold arithmetic, not {node!r}")
    return json.dumps(graph_of(index_map), separators=(",", ":"))


def from_record(text: str) -> IndexMap:
    """The map of a JSON text, of `to_record` or of TVM."""
    value = value_of(json.loads(text))
    if not isinstance(value, IndexMap):
        raise DiagnosticError(f"The record holds a {type(value).__name__}, not an index map")
    return value


def map_of_record(value: Any) -> Any:
    """A map as a record has it: its text, itself, or None."""
    return from_record(value) if isinstance(value, str) else value
