"""Nodes of the IR as JSON: a table of nodes, each with its class and its fields. A node that occurs
several times (a variable) stands in it once."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mlcweb.ir.class_names import home
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.relax.attrs import Attrs
from mlcweb.runtime.ndarray import NDArray, empty, from_bytes
from mlcweb.tir.stmt import BlockIdentity


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.position: dict[Node, int] = {}
        self.blocks: dict[BlockIdentity, int] = {}

    def write(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return {"enum": _name(type(value)), "value": value.value}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Node):
            return {"node": self.node(value)}
        if isinstance(value, BlockIdentity):
            return {"block": self.blocks.setdefault(value, len(self.blocks))}
        if isinstance(value, Op):
            return {"op": value.name}
        if isinstance(value, (tuple, list)):
            return [self.write(item) for item in value]
        if isinstance(value, Mapping):
            items = [[self.write(key), self.write(item)] for key, item in value.items()]
            return {"attrs" if isinstance(value, Attrs) else "items": items}
        if isinstance(value, NDArray):
            data = b64encode(value.tobytes()).decode()
            return {"array": data, "dtype": value.dtype, "shape": list(value.shape)}
        raise TVMError(f"A {type(value).__name__} has no form in JSON: save the function around it")

    def node(self, node: Node) -> int:
        if node not in self.position:
            fields = {name: self.write(getattr(node, name)) for name in node.role_of_field}
            self.position[node] = len(self.nodes)
            self.nodes.append({"class": _name(type(node)), "fields": fields})
        return self.position[node]


def _name(cls: type) -> str:
    return f"{home(cls)}.{cls.__qualname__}"


def _classes(base: type) -> dict[str, type]:
    """The classes below one, by name: no others are made of a text."""
    classes: dict[str, type] = {}
    pending = [base]
    for cls in pending:  # which grows
        if "node_class" not in vars(cls):  # a constructor with other parameters than fields
            classes[_name(cls)] = cls
        pending += cls.__subclasses__()
    return classes


def to_table(value: Any) -> dict[str, Any]:
    """A node, or a list or dictionary of nodes, as plain data.

    Raises:
        TVMError: a part of it has no form in JSON, such as the contents of a constant tensor.
    """
    writer = _Writer()
    root = writer.write(value)
    return {"root": root, "nodes": writer.nodes}


def from_table(table: Mapping[str, Any]) -> Any:
    """What `to_table` has made.

    Raises:
        TVMError: the table names a class that is none of the IR.
    """
    nodes: list[Node] = []
    blocks: dict[int, BlockIdentity] = {}
    classes, enums = _classes(Node), _classes(Enum)

    def of(name: str, classes: Mapping[str, type]) -> Any:
        if name not in classes or not name.startswith("mlcweb."):
            raise TVMError(f"This JSON has a {name}, which is no class of the IR")
        return classes[name]

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(read, value))
        if not isinstance(value, dict):
            return value
        if "node" in value:
            return nodes[value["node"]]
        if "block" in value:
            return blocks.setdefault(value["block"], BlockIdentity())
        if "op" in value:
            return Op.get(value["op"])
        if "enum" in value:
            return of(value["enum"], enums)(value["value"])
        if "array" in value:
            dtype, shape = value["dtype"], value["shape"]
            return empty(shape, dtype).copyfrom(from_bytes(b64decode(value["array"]), dtype, shape))
        pairs = {
            read(key): read(item) for key, item in value["attrs" if "attrs" in value else "items"]
        }
        return Attrs(pairs) if "attrs" in value else pairs

    for entry in table["nodes"]:
        fields = {name: read(field) for name, field in entry["fields"].items()}
        nodes.append(of(entry["class"], classes)(**fields))
    return read(table["root"])
