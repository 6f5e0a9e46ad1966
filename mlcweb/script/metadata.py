"""The part of a program that its text only refers to: large constants, as JSON beside the text."""

from __future__ import annotations

import ast
import base64
import json
from collections.abc import Mapping
from typing import Any

from mlcweb.relax.constant_data import HostArray, contents
from mlcweb.relax.expr import Constant

NOTE = "# Metadata omitted. Use show_meta=True in script() method to show it."


def metadata_text(metadata: Mapping[str, list[Any]]) -> str:
    """The assignment to `metadata` that belongs before a program."""
    content = {kind: [_entry(item) for item in items] for kind, items in metadata.items()}
    return f'metadata = tvm.ir.load_json("""{json.dumps(content)}""")'


def _entry(constant: Constant) -> dict[str, Any]:
    shape, dtype, raw = contents(constant.data)
    return {"shape": list(shape), "dtype": dtype, "data": base64.b64encode(raw).decode()}


def metadata_in(tree: ast.Module) -> dict[str, list[Any]] | None:
    """What a text assigns to `metadata`, if it does."""
    for item in tree.body:
        match item:
            case ast.Assign(
                targets=[ast.Name(id="metadata")],
                value=ast.Call(args=[ast.Constant(value=str(text))]),
            ):
                content = json.loads(text)
                return {kind: [_constant(e) for e in items] for kind, items in content.items()}
    return None


def _constant(entry: Mapping[str, Any]) -> Constant:
    raw = base64.b64decode(entry["data"])
    return Constant(HostArray(entry["shape"], entry["dtype"], raw))
