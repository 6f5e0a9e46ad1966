"""The `I` of TVMScript: `from mlcweb.script import ir as I`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.ir.global_info import DummyGlobalInfo, GlobalInfo, VDevice, lookup_vdevice
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.script import constructs
from mlcweb.script.decorators import ir_module, pyfunc
from mlcweb.script.namespace.older import REPLACED


def module_attrs(
    attrs: Mapping[str, Any], allow_overwrite: bool = False
) -> constructs.ModuleAttributes:
    """Attributes of the module."""
    return constructs.ModuleAttributes(attrs)


def module_global_infos(
    global_infos: Mapping[str, Sequence[GlobalInfo]],
) -> constructs.ModuleAttributes:
    """Lists of what holds for the whole module, such as its virtual devices."""
    return constructs.ModuleAttributes({}, global_infos)


vdevice = VDevice
dummy_global_info = DummyGlobalInfo

NAMES: dict[str, Any] = {
    "ir_module": ir_module,
    "pyfunc": pyfunc,
    "IRModule": IRModule,
    "GlobalVar": GlobalVar,
    "module_attrs": module_attrs,
    "module_global_infos": module_global_infos,
    "vdevice": vdevice,
    "dummy_global_info": dummy_global_info,
    "lookup_vdevice": lookup_vdevice,
}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"I has no {name}" + (f": {REPLACED[name]}" if name in REPLACED else ""))
