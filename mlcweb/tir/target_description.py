"""The target that a lowered function names in its attributes, as its text describes it."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import Node, attribute, node


@node
class TargetDescription(Node):
    """What `T.target(…)` says: a kind with options as a string, or a dictionary of them. It need
    not be a target that this package builds for."""

    target_config: Any = attribute()
    host: Any = attribute(default=None)
