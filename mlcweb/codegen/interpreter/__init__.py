"""The reference: programs run element by element in plain Python, every access checked.

A function is turned into Python source once and compiled. It accepts TensorIR with blocks as well
as lowered programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from mlcweb.codegen.external import callables
from mlcweb.codegen.interpreter.source import PythonSource
from mlcweb.codegen.names import NameTable
from mlcweb.codegen.registry import FunctionLookup, Kernel
from mlcweb.lower import without_threads
from mlcweb.tir.function import PrimFunc


def build(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    *,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Kernel]:
    """A kernel for each function. Accesses are checked whatever `config` says."""
    return {name: build_function(name, func, lookup) for name, func in functions.items()}


def build_function(name: str, func: PrimFunc, lookup: FunctionLookup) -> Kernel:
    """A kernel that interprets one function; `lookup` finds what it calls."""
    from mlcweb.codegen.interpreter import support

    writer = PythonSource(support.namespace)
    identifier = NameTable().fresh(name)
    source = writer.function(without_threads(func), identifier)
    names = {
        **support.namespace,
        "at": support.index_checker(writer.expressions.sites),
        "lookup": callables(lookup, build_function),
    }
    exec(support.compiled(source, f"<interpreter: {name}>"), names)
    return Kernel(name, func, _quietly(names[identifier]), source)


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Arithmetic as the machine does it: no warnings for overflow, NaN or division by zero."""
    import numpy as np

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run
