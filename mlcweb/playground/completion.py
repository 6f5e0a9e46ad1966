"""Names that a document has defined, for the editor to offer."""

from __future__ import annotations

from itertools import islice
from typing import Any

from mlcweb.ir.visitor import walk
from mlcweb.playground.protocol.program import LiveNames
from mlcweb.playground.session import session
from mlcweb.tir import Block, PrimFunc
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
    functions = [
        (var.name_hint, function) for each in modules for var, function in each.functions.items()
    ]
    blocks = (
        node.name_hint
        for _, function in functions
        if isinstance(function, PrimFunc)
        for node in walk(function.body)
        if isinstance(node, Block)
    )
    public = ((name, value) for name, value in variables.items() if not name.startswith("_"))
    return LiveNames(
        {name: _class_of(value) for name, value in islice(public, LIMIT)},
        list(islice(dict.fromkeys(name for name, _ in functions), LIMIT)),
        list(islice(dict.fromkeys(blocks), LIMIT)),
    )


def _class_of(value: Any) -> str | None:
    for owner in type(value).__mro__:
        if owner.__name__ in _CLASSES:
            return owner.__name__
    return None
