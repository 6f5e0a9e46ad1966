"""The target that a lowered function names in its attributes, as its text describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.ir.node import Node, attribute, node
from mlcweb.ir.structural import COMPARED_AS


@node
class TargetDescription(Node):
    """What `T.target(…)` says: a kind with options as a string, or a dictionary of them. It need
    not be a target that this package builds for."""

    target_config: Any = attribute()
    host: Any = attribute(default=None)


def as_described(value: Any) -> Any:
    """A target as its description; anything else as it is."""
    describe = getattr(type(value), "description", None)
    return describe(value) if callable(describe) else value


def options_of(target: Any) -> dict[str, Any] | None:
    """The kind, the options and the host of a target or its description: equal ones have equal."""
    if target is None:
        return None
    target = as_described(target)
    if not isinstance(target, TargetDescription):
        target = TargetDescription(target)
    config = target.target_config
    if isinstance(config, str):
        kind, *options = config.split()
        pairs = (option.lstrip("-").partition("=") for option in options)
        config = {"kind": kind, **{key: _value(value) for key, _, value in pairs}}
    options = dict(config) if isinstance(config, Mapping) else {"kind": config}
    own_host = options.pop("host", None)
    host = own_host if target.host is None else target.host
    return {"options": options, "host": options_of(host)}


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdecimal() else text


COMPARED_AS[TargetDescription] = options_of
