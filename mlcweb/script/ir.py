"""The `I` of TVMScript: `from mlcweb.script import ir as I`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.script import constructs
from mlcweb.script.decorators import ir_module
from mlcweb.script.namespace.older import REPLACED


def module_attrs(
    attrs: Mapping[str, Any], allow_overwrite: bool = False
) -> constructs.ModuleAttributes:
    """Attributes of the module."""
    return constructs.ModuleAttributes(attrs)


NAMES: dict[str, Any] = {
    "ir_module": ir_module,
    "IRModule": IRModule,
    "GlobalVar": GlobalVar,
    "module_attrs": module_attrs,
}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"I has no {name}" + (f": {REPLACED[name]}" if name in REPLACED else ""))
