"""Parts of programs in messages: on one line, without the declarations of their variables."""

from __future__ import annotations

from mlcweb.ir.node import Node


def one_line(node: Node) -> str:
    """The text of a binding or a struct info."""
    lines = [line for line in str(node).splitlines() if line.strip() and not line.startswith("#")]
    return lines[-1]
