"""The part of a program that its text only refers to: large constants, as JSON beside the text."""

from __future__ import annotations

import ast
import base64
import json
import struct
from collections.abc import Mapping
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax.constant_data import HostArray, contents
from mlcweb.relax.expr import Constant
from mlcweb.script.namespace.older import METADATA_OMITTED
from mlcweb.tir.expr import StringImm
from mlcweb.tir.folding import const

NOTE = "# Metadata omitted. Use show_meta=True in script() method to show it."


def metadata_text(metadata: Mapping[str, list[Any]]) -> str:
    """The assignment to `metadata` that belongs before a program."""
    content = {kind: [_entry(item) for item in items] for kind, items in metadata.items()}
    return f'metadata = tvm.ir.load_json("""{json.dumps(content)}""")'


def _entry(constant: Constant) -> dict[str, Any]:
    shape, dtype, raw = contents(constant.data)
    return {"shape": list(shape), "dtype": dtype, "data": base64.b64encode(raw).decode()}


class _Omitted:
    """The metadata of a text that was printed without it."""

    def __getitem__(self, kind: str) -> Any:
        raise DiagnosticError(METADATA_OMITTED)


def metadata_in(tree: ast.Module) -> Any:
    """What a text assigns to `metadata`: lists of nodes by kind."""
    for item in tree.body:
        match item:
            case ast.Assign(
                targets=[ast.Name(id="metadata")],
                value=ast.Call(args=[ast.Constant(value=str(text))]),
            ):
                content = json.loads(text)
                if "b64ndarrays" in content:
                    return _older_metadata(content)
                if "nodes" in content:
                    return _tvm_metadata(content["nodes"])
                return {kind: [_constant(e) for e in items] for kind, items in content.items()}
    return _Omitted()


def _constant(entry: Mapping[str, Any]) -> Constant:
    raw = base64.b64decode(entry["data"])
    return Constant(HostArray(entry["shape"], entry["dtype"], raw))


def _tvm_metadata(nodes: list[Any]) -> dict[str, list[Any]]:
    """What TVM writes itself: a graph of nodes, which refer to each other by number. The last map
    has the names of kinds and lists of what is left out of the program."""

    def read(number: int) -> Any:
        kind, data = nodes[number]["type"], nodes[number].get("data")
        if kind == "ffi.Map":
            items = map(read, data)
            return dict(zip(items, items, strict=True))
        if kind == "ffi.Array":
            return [read(item) for item in data]
        if kind.endswith(".StringImm"):
            return StringImm(read(data["value"]))
        if kind in ("ir.GenericConst", "relax.expr.Constant"):
            return Constant(_tensor(base64.b64decode(read(data.get("value", data.get("data"))))))
        return data

    return next(read(n) for n, node in enumerate(nodes) if node["type"] == "ffi.Map")


def _older_metadata(content: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What TVM wrote before 0.20: texts as values, and the tensors beside the nodes."""
    nodes = content["nodes"]

    def read(number: int) -> Any:
        kind, data = nodes[number].get("type_key"), nodes[number].get("data", ())
        attrs = nodes[number].get("attrs", {})
        if kind == "Map":
            return dict(zip(nodes[number]["keys"], map(read, data), strict=True))
        if kind == "Array":
            return [read(item) for item in data]
        if kind == "relax.expr.Constant":
            return Constant(_tensor(base64.b64decode(content["b64ndarrays"][int(attrs["data"])])))
        if kind in ("tir.StringImm", "StringImm"):
            return StringImm(attrs["value"])
        if kind in ("IntImm", "FloatImm"):
            number_of = int if kind == "IntImm" else float
            return const(number_of(attrs["value"]), attrs["dtype"])
        return nodes[number].get("repr_str")

    return read(content["root"])


_TYPE_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


def _tensor(raw: bytes) -> HostArray:
    """An array in the format that TVM saves tensors in: a header of 24 bytes, the number of
    dimensions, the type, the shape and the number of bytes before them."""
    ndim, code, bits, _ = struct.unpack_from("<iBBH", raw, 24)
    shape = struct.unpack_from(f"<{ndim}q", raw, 32)
    name = _TYPE_CODES[code]
    return HostArray(list(shape), name if name == "bool" else f"{name}{bits}", raw[40 + 8 * ndim :])
