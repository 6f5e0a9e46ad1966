"""NumPy as a target: the loops around a statement become operations on whole arrays.

A function of symbolic shape is compiled once for each shape that it meets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mlcweb.codegen.registry import FunctionLookup, Kernel
from mlcweb.tir.function import PrimFunc


def build(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    *,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Kernel]:
    """A kernel for each function. Accesses are checked whatever `config` says."""
    from mlcweb.codegen.numpy.compiling import build_function

    return {name: build_function(name, func, lookup) for name, func in functions.items()}
