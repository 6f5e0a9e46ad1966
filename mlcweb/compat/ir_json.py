"""`tvm.ir.save_json`, `load_json`, `make_node`, `DictAttrs`: nodes as text, and by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from mlcweb import __version__
from mlcweb.compat.node_json import from_table, to_table
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.node import Node
from mlcweb.meta_schedule.database.tvm_graph import module_of
from mlcweb.relax.attrs import Attrs
from mlcweb.runtime.ndarray import NDArray
from mlcweb.script import from_source

DictAttrs = Attrs
"""Attributes by name."""

FORMAT = "mlcweb-script"
NODES = "mlcweb-nodes"

_HOMES = {"ir": ("mlcweb.ir", "mlcweb.compat.containers"), "relax": ("mlcweb.relax",)}


def save_json(node: Node | IRModule | Sequence[Any] | Mapping[Any, Any] | NDArray | str) -> str:
    """A node as JSON, or an array, or a list or dictionary of these, numbers and texts: of a module
    or a function its text, with all constants.

    Raises:
        TVMError: it is nothing of the kind, or has a part that has no form in JSON.
    """
    if not isinstance(node, (Node, IRModule, list, tuple, Mapping, NDArray, str)):
        raise TVMError(
            f"Nodes of the IR are saved as JSON, not a {type(node).__name__}: print it by script()"
        )
    if not isinstance(node, (IRModule, BaseFunc)):
        content = {"format": NODES, **to_table(node)}
    else:
        content = {"format": FORMAT, "script": node.script(show_meta=True)}
    return json.dumps({**content, "metadata": {"tvm_version": __version__}})


def load_json(json_str: str) -> Any:
    """What `save_json` has saved; of what TVM has, modules of TensorIR as records hold them. It is
    read as data: Python that stands in a script is not run.

    Raises:
        TVMError: the text is of something else, or damaged.
    """
    try:
        return _read(json.loads(json_str))
    except TVMError:
        raise
    except Exception as error:  # whatever somebody may have written there
        raise TVMError(
            f"This JSON was not made here, or is damaged ({type(error).__name__}: {error}). If TVM "
            "made it and it is no module of TensorIR, print the program there by "
            "script(show_meta=True), and read that with tvm.script.from_source"
        ) from error


def _read(content: Any) -> Any:
    form = content.get("format") if isinstance(content, dict) else None
    if form == FORMAT:
        return from_source(content["script"], runs=False)
    return from_table(content) if form == NODES else module_of(content)


def make_node(type_key: str, **kwargs: Any) -> Any:
    """A node by the name of its class and its fields: `make_node("tirx.IntImm", dtype="int32",
    value=1)`.

    Raises:
        TVMError: there is no such class.
    """
    module, _, name = type_key.rpartition(".")
    if name == "DictAttrs":
        return DictAttrs(kwargs)
    for home in (*_HOMES.get(module.partition(".")[0], ()), "mlcweb.tir", "mlcweb.relax"):
        constructor = getattr(import_module(home), name, None)
        if isinstance(constructor, type):
            return constructor(**kwargs)
    raise TVMError(f'There is no node "{type_key}" here: call the class of tvm.tir or tvm.relax')
