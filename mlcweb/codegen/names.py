"""Readable, unique names for variables and buffers in generated Python."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from mlcweb.ir.names import unique_name
from mlcweb.ir.node import Node


class NameTable:
    """Gives every node a name of its own that is a Python identifier, near its name hint."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._names: dict[Node, str] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        base = re.sub(r"\W", "_", hint) or "value"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"_{base}"
        return unique_name(base, self._taken)

    def __getitem__(self, node: Node) -> str:
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = self.fresh(getattr(node, "name", "value"))
        return name

    def __contains__(self, node: Node) -> bool:
        return node in self._names
