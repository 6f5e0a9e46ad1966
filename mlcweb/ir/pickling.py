"""Pickling of nodes that nest deeper than Python's stack.

`pickle` follows references by recursion, which a long expression exhausts. So a node is pickled as
a flat list of itself and all that it holds, with references by number. What is known by its
identity (variables, buffers) is pickled as any other object, so that it stays one where several
nodes, or a schedule, refer to it. Classes are pickled by where they are, whatever they print as.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from mlcweb.ir.array import Array
from mlcweb.ir.class_names import home

CACHED = frozenset(("accesses_below", "calls_below", "variables_used"))
"""The fields of nodes that `tir.contents` fills."""

Entry = tuple[str, dict[str, Any]]
"""The name of the class and the fields of a node."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A node by its number in the list."""

    number: int


def flattened(root: Any, is_part: Callable[[Any], bool]) -> list[Entry]:
    """The list for a node; `is_part` says of a value whether it is a node to be listed, too."""
    nodes, numbers = [root], {id(root): Reference(0)}
    names: dict[type, str] = {}

    def numbered(value: Any) -> Any:
        if not is_part(value):
            return value
        if id(value) not in numbers:
            numbers[id(value)] = Reference(len(nodes))
            nodes.append(value)
        return numbers[id(value)]

    return [
        (
            names.setdefault(type(node), class_name(type(node))),
            {name: _mapped(numbered, value) for name, value in _fields(node).items()},
        )
        for node in nodes  # which grows meanwhile
    ]


def restored(entries: list[Entry]) -> Any:
    """The node of a list."""
    classes = {name: resolve_name(name) for name in {name for name, _ in entries}}
    nodes = [object.__new__(classes[name]) for name, _ in entries]

    def resolved(value: Any) -> Any:
        return nodes[value.number] if isinstance(value, Reference) else value

    for node, (_, fields) in zip(nodes, entries, strict=True):
        for name, value in fields.items():
            object.__setattr__(node, name, _mapped(resolved, value))
    return nodes[0]


def as_an_object(node: Any) -> tuple[Callable[..., Any], tuple[str], Any]:
    """What `pickle` asks of an object: a node without its fields, and these."""
    return blank, (class_name(type(node)),), object.__reduce_ex__(node, 2)[2]


def blank(name: str) -> Any:
    """A node without fields."""
    return object.__new__(resolve_name(name))


def class_name(cls: type) -> str:
    """The name by which a class is found again."""
    return f"{home(cls)}:{cls.__qualname__}"


def _fields(node: Any) -> dict[str, Any]:
    """All that a node has in its slots, without what is found again."""
    state: Any = object.__reduce_ex__(node, 2)[2]
    values = {} if state is None else state[1]
    return {name: value for name, value in values.items() if name not in CACHED}


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A value, or what is in a tuple, list or dict, through a function."""
    if type(value) in (Array, tuple, list):
        return type(value)(_mapped(function, item) for item in value)
    if type(value) is dict:
        pairs = value.items()
        return {_mapped(function, key): _mapped(function, item) for key, item in pairs}
    return function(value)
