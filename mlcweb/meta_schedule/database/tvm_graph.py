"""A module as one line of a file of workloads, in the form in which TVM 0.27 saves its objects.

TVM writes a graph of nodes as JSON, with eight bytes before it that tell its length, in base64. So
do we; only a program that has no such form is written as its script, for us alone to read.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from mlcweb.arith.object_graph import Unwritable, graph_of, value_of
from mlcweb.ir.module import IRModule
from mlcweb.script import from_source

TVM_VERSION = "0.27.0.post1"

_SCRIPT = "# from tvm.script import"


def save(module: IRModule) -> str:
    """A module as text, which TVM reads where it can be."""
    try:
        graph = {**graph_of(module), "metadata": {"tvm_version": TVM_VERSION}}
    except Unwritable:
        return module.script()
    data = json.dumps(graph, separators=(",", ":")).encode()
    return base64.b64encode(len(data).to_bytes(8, "little") + data).decode()


def load(text: str) -> IRModule:
    """Read what `save` or TVM made.

    Raises:
        ValueError: it is something else, or holds what is not known here.
    """
    if text.startswith(_SCRIPT):
        module = from_source(text, runs=False)
        if isinstance(module, IRModule):
            return module
        raise ValueError("the script of a workload is no module")
    try:
        data = base64.b64decode(text, validate=True)
        graph = json.loads(data[8:])
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"a module is damaged: {error}") from None
    return module_of(graph)


def module_of(graph: dict[str, Any]) -> IRModule:
    """The module that a graph describes.

    Raises:
        ValueError: it describes something else, or something that is not known here.
    """
    module = value_of(graph)
    if not isinstance(module, IRModule):
        raise ValueError(f"this is a saved {type(module).__name__}, no module")
    return module
