"""A module as one line of a file of workloads.

TVM writes its graph of nodes as JSON, with eight bytes before it that tell its length, in base64.
So do we; only a program that has no such form is written as its script, for us alone to read.
"""

from __future__ import annotations

import base64
import binascii
import json

from mlcweb.ir.module import IRModule
from mlcweb.meta_schedule.database.tvm_graph_reader import module_of
from mlcweb.meta_schedule.database.tvm_graph_writer import Unwritable, graph_of
from mlcweb.script import from_source

_SCRIPT = "# from tvm.script import"


def save(module: IRModule) -> str:
    """A module as text, which TVM reads where it can be."""
    try:
        data = json.dumps(graph_of(module), separators=(",", ":")).encode()
    except Unwritable:
        return module.script()
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
