"""AttachExternModules: compiled functions from elsewhere, for a model that calls them by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax.transform.registration import pass_of

EXTERNAL_MODULES = "external_mods"
"""The attribute of a module that holds modules of compiled functions."""


@runtime_checkable
class ExternModule(Protocol):
    """What gives a module of compiled functions when it is asked to."""

    def load(self) -> Any: ...


def AttachExternModules(extern_modules: Sequence[ExternModule]) -> Pass:
    """Load modules of compiled functions, and let `relax.build` link those of their functions that
    the model calls by name (`R.call_dps_packed`).

    Raises: TypeError: one of the modules has no method `load`.
    """
    for module in extern_modules:
        if not isinstance(module, ExternModule):
            raise TypeError(
                f"AttachExternModules takes modules that have a method load(), not {module!r}"
            )

    def attach(mod: IRModule) -> IRModule:
        loaded = [module.load() for module in extern_modules]
        attached = mod.attrs.get(EXTERNAL_MODULES, ())
        return mod.with_attr(EXTERNAL_MODULES, [*attached, *loaded]) if loaded else mod

    return pass_of("AttachExternalModules", attach)
