"""Writes ``public/api.json``: what the editor offers and explains, from the package itself.

The table has ``modules`` (by the names under which programs import them) and ``classes`` (by
name). Each maps its members' names to ``[kind, signature, text, leads]``: the kind is one of
module, class, function, value; the text is the first paragraph of the docstring; what a name leads
to is a module's name, or the class that a call returns or a value has.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mlcweb
from mlcweb import compat

OUTPUT = Path(__file__).parents[1] / "public" / "api.json"

MODULES = (
    "tvm", "tvm.arith", "tvm.ir", "tvm.meta_schedule", "tvm.nd", "tvm.relax", "tvm.relax.dpl",
    "tvm.relax.frontend.onnx", "tvm.relax.op", "tvm.relax.op.nn", "tvm.relax.transform",
    "tvm.runtime", "tvm.s_tir", "tvm.script", "tvm.script.ir", "tvm.script.relax",
    "tvm.script.tir", "tvm.target", "tvm.te", "tvm.tir", "tvm.tir.transform", "tvm.topi",
    "tvm.topi.nn", "tvm.transform",
)  # fmt: skip

CLASSES = (
    "tvm.IRModule", "tvm.ir.GlobalVar", "tvm.meta_schedule.TuneConfig", "tvm.nd.NDArray",
    "tvm.relax.BlockBuilder", "tvm.relax.PyExprMutator", "tvm.relax.VirtualMachine",
    "tvm.runtime.Module", "tvm.te.Tensor", "tvm.tir.Buffer", "tvm.tir.PrimFunc",
    "tvm.tir.Schedule", "tvm.tir.schedule.Trace", "tvm.transform.PassContext",
)  # fmt: skip

LONGEST = 420
"""Characters of text kept of a docstring."""

Member = tuple[str, str, str, str]


def main() -> None:
    """Build the table and write it, if it is another than the one there."""
    compat.install(force=True)
    classes = {path.rpartition(".")[2]: _find(path) for path in CLASSES}
    known = {value: name for name, value in classes.items()}
    table = {
        "modules": {path: _module_members(_find(path), known) for path in MODULES},
        "classes": {name: _class_members(value, known) for name, value in classes.items()},
    }
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False)
    if not OUTPUT.is_file() or OUTPUT.read_text(encoding="utf-8") != text:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(text, encoding="utf-8")


def _find(path: str) -> Any:
    """A module or an attribute by its dotted name."""
    try:
        __import__(path)
        return sys.modules[path]
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(_find(owner), name)


def _module_members(module: Any, known: dict[Any, str]) -> dict[str, Member]:
    members: dict[str, Member] = {}
    own = _name(module)
    # Some names are looked up late, so that a module's own list lacks them.
    late = [path.rpartition(".")[2] for path in (*MODULES, *CLASSES) if _owner(path) == own]
    for name in sorted({*dir(module), *late}):
        value = getattr(module, name, None)
        if name.startswith("_") or value is None or not _public(module, name, value):
            continue
        members[name] = _member(value, known)
    return members


def _name(module: Any) -> str:
    """The name under which the table has a module, which may be known under several."""
    own = module.__name__.replace("mlcweb", "tvm", 1)
    return own if own in MODULES else next((p for p in MODULES if _find(p) is module), own)


def _owner(path: str) -> str:
    return path.rpartition(".")[0]


def _public(module: Any, name: str, value: Any) -> bool:
    """Not what a module imports for its own use."""
    if isinstance(value, ModuleType):
        shown = {path.rpartition(".")[2] for path in MODULES}
        return name in shown and value.__name__.partition(".")[0] in ("mlcweb", "tvm")
    # What TVM has and we have not is answered, too, by something that refuses to be looked into.
    names = getattr(module, "NAMES", None)
    offered = getattr(module, "__all__", None) or (names if isinstance(names, Mapping) else ())
    if name in offered:
        return True
    origin = getattr(value, "__module__", None)
    return (
        isinstance(origin, str) and origin.partition(".")[0] == "mlcweb" and name != "annotations"
    )


def _class_members(owner: type, known: dict[Any, str]) -> dict[str, Member]:
    members: dict[str, Member] = {}
    for name in dir(owner):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(owner, name)
        if isinstance(value, property):
            members[name] = ("value", "", _text(value.fget), _returned(value.fget, known))
        elif isinstance(value, staticmethod | classmethod) or callable(value):
            members[name] = _member(getattr(owner, name), known)
        else:
            members[name] = ("value", "", "", "")
    return members


def _member(value: Any, known: dict[Any, str]) -> Member:
    if isinstance(value, ModuleType):
        return ("module", "", _text(value), _name(value))
    if isinstance(value, type):
        return ("class", _signature(value), _text(value), known.get(value, ""))
    if callable(value):
        return ("function", _signature(value), _text(value), _returned(value, known))
    return ("value", "", "", "")


def _signature(value: Any) -> str:
    """Parameters with defaults and short types; empty where Python knows none."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "span"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = star + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_short(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}" if len(repr(parameter.default)) < 40 else " = …"
        parts.append(text)
    if parts and parts[-1] == "*":
        parts.pop()
    return f"({', '.join(parts)})"


def _short(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text.strip("'\""))


def _returned(value: Any, known: dict[Any, str]) -> str:
    annotation = getattr(value, "__annotations__", {}).get("return", "")
    name = _short(annotation).removesuffix(" | None") if annotation else ""
    return name if name in known.values() else ""


def _text(value: Any) -> str:
    doc = inspect.getdoc(value) or ""
    if isinstance(value, type) and doc == (inspect.getdoc(object) or ""):
        return ""
    first = " ".join(doc.split("\n\n")[0].split())
    return first if len(first) <= LONGEST else first[: LONGEST - 1].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    assert mlcweb.__version__
    main()
