"""NumPy as a target: the loops around a statement become operations on whole arrays.

A function of symbolic shape is compiled once for each shape that it meets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.codegen import interpreter
from mlcweb.codegen.numpy.source import NumpySource
from mlcweb.codegen.registry import FunctionLookup, Kernel, one_by_one
from mlcweb.lower.specialize import size_symbols, specialize
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

MAX_SPECIALIZATIONS = 64


def build_function(name: str, func: PrimFunc, lookup: FunctionLookup) -> Kernel:
    """A kernel of array operations. Arrays that share memory are left to the interpreter."""

    def run_aliased(*arguments: Any) -> Any:
        return interpreter.build_function(name, func, lookup).run(*arguments)

    symbols = _symbols(func)
    if symbols:
        run, source = _specializing(name, func, symbols, lookup), _note(name, symbols)
    else:
        run, source = _compile(name, func, lookup)
    return Kernel(name, func, run, source, run_aliased=run_aliased)


build = one_by_one(build_function)


def _compile(name: str, func: PrimFunc, lookup: FunctionLookup) -> tuple[Callable[..., Any], str]:
    return interpreter.compile_python(name, func, NumpySource(), lookup, build_function, "numpy")


def _symbols(func: PrimFunc) -> dict[E.Var, tuple[int, int | None]]:
    """Variables that stand for sizes, scalar parameters among them: the argument that tells the
    value, and its axis."""
    scalars = {
        param: (position, None)
        for position, param in enumerate(func.params)
        if param not in func.buffer_map and dtypes.is_integer(param.dtype)
    }
    return {**size_symbols(func), **scalars}


def _specializing(
    name: str,
    func: PrimFunc,
    symbols: dict[E.Var, tuple[int, int | None]],
    lookup: FunctionLookup,
) -> Callable[..., Any]:
    compiled: dict[tuple[int, ...], Callable[..., Any]] = {}

    def run(*arguments: Any) -> Any:
        values = tuple(
            int(arguments[position] if axis is None else arguments[position].shape[axis])
            for position, axis in symbols.values()
        )
        specialized = compiled.get(values)
        if specialized is None:
            if len(compiled) >= MAX_SPECIALIZATIONS:
                compiled.clear()
            special = specialize(func, dict(zip(symbols, values, strict=True)))
            specialized = compiled[values] = _compile(name, special, lookup)[0]
        return specialized(*arguments)

    return run


def _note(name: str, symbols: dict[E.Var, tuple[int, int | None]]) -> str:
    sizes = ", ".join(var.name for var in symbols)
    return f"# {name} is compiled for each value of {sizes} that it meets\n"
