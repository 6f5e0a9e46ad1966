"""Python functions that kernels call.

Python sees the memory of kernels in place, or, in a page, as copies that are copied back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.codegen.interpreter.support import numpy_dtype
from mlcweb.codegen.processor.calls import Pointer, PythonCall, Text
from mlcweb.codegen.registry import FunctionLookup
from mlcweb.codegen.wasm.calls import import_type
from mlcweb.codegen.wasm.module import FunctionType
from mlcweb.codegen.wasm.select_types import stack_type
from mlcweb.runtime.host.ranges import merged, piece_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.dtype import wrap_integer

if TYPE_CHECKING:
    from mlcweb.runtime.host.engine import Host


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that a module imports: its type, and what it does with plain numbers."""

    type: FunctionType
    run: Callable[..., int | float | None]


def host_function(
    call: PythonCall, host: Host, lookup: FunctionLookup, failures: list[BaseException]
) -> HostFunction:
    """What a kernel imports to make a kind of call. Where the engine does not carry a Python
    exception through a kernel, it is left in `failures`."""

    def run(*values: Any) -> int | float:
        try:
            arguments, close = _arguments(call, host, values)
            result = lookup(call.name)(*arguments)
            close()
            return _returned(result, call.result)
        except BaseException as error:
            if not host.carries_exceptions:
                failures.append(error)
            raise

    return HostFunction(import_type(call), run)


def _arguments(
    call: PythonCall, host: Host, values: tuple[Any, ...]
) -> tuple[list[Any], Callable[[], None]]:
    """What a Python function gets, and what to do after it has returned."""
    remaining = iter(values)
    arguments: list[Any] = []
    pointers: list[tuple[int, int, Pointer, int]] = []
    for argument in call.arguments:
        if isinstance(argument, Text):
            arguments.append(argument.value)
        elif isinstance(argument, Pointer):
            address, count = next(remaining) % host.addresses, max(next(remaining), 0)
            nbytes = count * dtypes.size_in_bytes(argument.dtype)
            if address + nbytes > host.nbytes:
                raise IndexOutOfBounds(f'"{call.name}" is called with a pointer to no memory')
            pointers.append((address, nbytes, argument, len(arguments)))
            arguments.append(None)
        else:
            arguments.append(_number(next(remaining), argument.dtype))
    if host.visible:
        for address, nbytes, pointer, position in pointers:
            arguments[position] = _elements(host.view(address, nbytes), pointer.dtype)
        return arguments, lambda: None
    pieces = merged((address, nbytes) for address, nbytes, _, _ in pointers)
    copies = {piece: host.read(*piece) for piece in pieces}
    written = set()
    for address, nbytes, pointer, position in pointers:
        if nbytes == 0:
            arguments[position] = np.empty(0, numpy_dtype(pointer.dtype))
            continue
        piece = piece_of(address, pieces)
        start = address - piece[0]
        arguments[position] = _elements(copies[piece][start : start + nbytes], pointer.dtype)
        if pointer.writes:
            written.add(piece)

    def close() -> None:
        for piece in written:
            host.write(piece[0], copies[piece])

    return arguments, close


def _elements(data: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    return data.view(numpy_dtype(dtype))


def _number(value: Any, dtype: str) -> Any:
    """A number as the interpreter has it: a Python integer, or a NumPy scalar for floats."""
    if dtypes.is_float(dtype):
        return numpy_dtype(dtype).type(value)
    return bool(value) if dtypes.is_bool(dtype) else wrap_integer(int(value), dtype)


def _returned(result: Any, dtype: str) -> int | float:
    """A result as a kernel takes it; what is no number counts as zero."""
    kind = stack_type(dtype)
    if not isinstance(result, (int, float, np.number, np.bool_)):
        result = 0
    if kind in ("f32", "f64"):
        return float(result)
    number = int(bool(result)) if dtypes.is_bool(dtype) else wrap_integer(int(result), dtype)
    return wrap_integer(number, "int32" if kind == "i32" else "int64")
