"""Names that a document has defined, for the editor to offer."""

from __future__ import annotations

from itertools import islice
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.ir.visitor import walk
from mlcweb.playground.protocol.program import LiveNames
from mlcweb.playground.session import session
from mlcweb.tir import Block, For, PrimFunc
from mlcweb.user_code import namespace

LIMIT = 200
"""Names of a kind that are offered."""

_CLASSES = {
    "IRModule", "GlobalVar", "NDArray", "BlockBuilder", "VirtualMachine", "Module", "Tensor",
    "PrimFunc", "Schedule", "Trace",
}  # fmt: skip
"""Classes whose members the editor knows."""


def live(document_name: str) -> LiveNames:
    """What a document has: variables, and the names in its modules and schedules."""
    variables = session.open(document_name).variables
    modules = [*namespace.modules(variables).values()]
    modules += [schedule.mod for schedule in namespace.schedules(variables).values()]
    names: dict[str, dict[str, None]] = {"functions": {}, "blocks": {}, "loops": {}, "buffers": {}}
    for module in modules:
        _collect(module, names)
    public = ((name, value) for name, value in variables.items() if not name.startswith("_"))
    return LiveNames(
        {name: _class_of(value) for name, value in islice(public, LIMIT)},
        **{kind: list(islice(entries, LIMIT)) for kind, entries in names.items()},
    )


def _class_of(value: Any) -> str | None:
    for owner in type(value).__mro__:
        if owner.__name__ in _CLASSES:
            return owner.__name__
    return None


def _collect(module: IRModule, names: dict[str, dict[str, None]]) -> None:
    for variable, function in module.functions.items():
        names["functions"][variable.name_hint] = None
        if not isinstance(function, PrimFunc):
            continue
        for buffer in function.buffer_map.values():
            names["buffers"][buffer.name] = None
        for node in walk(function.body):
            if isinstance(node, For):
                names["loops"][node.loop_var.name] = None
            elif isinstance(node, Block):
                names["blocks"][node.name_hint] = None
                for buffer in node.alloc_buffers:
                    names["buffers"][buffer.name] = None
