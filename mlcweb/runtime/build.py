"""From programs to runnable modules."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from mlcweb.codegen.registry import GENERAL_NAMES, default_target, find_target, target_names
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.runtime.module import Module
from mlcweb.runtime.registry import get_global_func
from mlcweb.runtime.target import Target
from mlcweb.tir.function import PrimFunc

_log = logging.getLogger("mlcweb")


def build(
    mod: IRModule | PrimFunc | Mapping[Any, PrimFunc],
    target: str | Mapping[str, Any] | Target | None = None,
    name: str | None = None,
) -> Module:
    """A runnable module from a module of TensorIR functions, or from a single function.

    Args:
        target: what to build for; by default the target of the surrounding ``with target:``, else
            the best for this machine. "llvm", "c" and "cpu" mean that best one, too.
        name: the name of a single function; by default its "global_symbol", else "main".
    """
    functions = _functions(mod, name)
    entry = find_target(_kind(target))
    kernels = entry.build(functions, get_global_func)
    main = next(iter(functions)) if len(functions) == 1 else "main"
    return Module(kernels, main, entry.name)


def _functions(mod: Any, name: str | None) -> dict[str, PrimFunc]:
    if isinstance(mod, PrimFunc):
        return {name or mod.attrs.get("global_symbol") or "main": mod}
    if not isinstance(mod, (IRModule, Mapping)):
        raise TVMError(f"build takes an IRModule or a PrimFunc, not {type(mod).__name__}")
    functions: dict[str, PrimFunc] = {}
    functions_by_name: Any = getattr(mod, "functions", mod)
    for var, func in IRModule(functions_by_name).functions.items():
        if not isinstance(func, PrimFunc):
            raise TVMError(
                f'"{var.name_hint}" is a {type(func).__name__}; build takes TensorIR functions '
                "(relax.build compiles whole models)"
            )
        functions[var.name_hint] = func
    if not functions:
        raise TVMError("The module has no functions to build")
    if name is not None and len(functions) == 1:
        return {name: next(iter(functions.values()))}
    return functions


def _kind(target: Any) -> str:
    chosen = target if target is not None else Target.current()
    if chosen is None:
        return default_target().name
    chosen = Target(chosen)
    if chosen.is_source_only:
        raise TVMError(
            f'Nothing here builds for "{chosen.kind}"; targets are {", ".join(target_names())}'
        )
    if chosen.kind.name in GENERAL_NAMES:
        _say_once(chosen.kind.name, find_target(chosen.kind.name).name)
    return chosen.kind.name


@cache
def _say_once(asked: str, meant: str) -> None:
    _log.info(
        'target "%s" means "%s" here, the fastest code generator of this machine', asked, meant
    )
