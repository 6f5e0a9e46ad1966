"""Calls out of kernels: `T.call_extern("name", …)`, `T.call_packed("name", …)`.

A name stands for a Python function, which gets a one-dimensional NumPy array for every pointer (the
elements that it reaches) and numbers for scalars; or for a PrimFunc, the micro-kernel: its buffer
parameters are laid over what the pointers reach, so that sizes and strides have to be constants or
follow from its scalar parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.codegen.registry import FunctionLookup, Kernel
from mlcweb.ir.errors import TVMError
from mlcweb.ir.op import Op
from mlcweb.lower.parameters import RESULT, with_kernel_parameters
from mlcweb.lower.specialize import specialize
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, compact_strides, constant_shape
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute, variables_in


class ExternalCallError(TVMError):
    """A call that does not fit the function that it calls."""


class ArrayArgument(NamedTuple):
    """A whole buffer that is passed to a Python function, which gets an array of the runtime."""

    elements: Any


def called_name(call: E.Call) -> str | None:
    """The name of the function that a call calls; None for what is no call out of the kernel."""
    if not isinstance(call.op, Op):
        return call.op.name_hint
    if call.op.name in ("tir.call_extern", "tir.call_pure_extern", "tir.tvm_call_packed"):
        name = call.args[0] if call.args else None
        if not isinstance(name, E.StringImm):
            raise ExternalCallError("A call begins with the name of what it calls", call.span)
        return name.value
    return None


def call_arguments(call: E.Call) -> Sequence[E.PrimExpr]:
    """What a call out of the kernel passes on."""
    return call.args[1:] if isinstance(call.op, Op) else call.args


def micro_kernel(func: PrimFunc) -> PrimFunc:
    """The function with its buffers at the very places that callers' pointers name.

    Raises:
        ExternalCallError: a size or stride is a symbol that no scalar parameter gives.
    """
    func = with_kernel_parameters(func)
    scalars = {param for param in func.params if param not in func.buffer_map}
    for buffer in func.parameter_buffers:
        for extent in (*buffer.shape, *buffer.strides):
            unknown = variables_in(extent) - scalars
            if unknown:
                raise ExternalCallError(
                    f'As a micro-kernel, "{name_of(func)}" has to take '
                    f'"{next(iter(unknown)).name}", a size of "{buffer.name}", as a parameter of '
                    "its own: pointers have no shape"
                )
    return without_offsets(func)


def without_offsets(func: PrimFunc) -> PrimFunc:
    """The function for callers whose pointers name the first elements of its buffers."""
    starts = {
        buffer.elem_offset: 0
        for buffer in func.parameter_buffers
        if isinstance(buffer.elem_offset, E.Var) and buffer.elem_offset not in func.params
    }
    return specialize(func, starts) if starts else func


def for_arrays(func: PrimFunc) -> PrimFunc:
    """The function, of constant shapes, for callers with arrays, which are compact."""
    layout = {
        symbol: stride
        for buffer in func.parameter_buffers
        if buffer.strides and (shape := constant_shape(buffer)) is not None
        for symbol, stride in zip(buffer.strides, compact_strides(shape), strict=True)
        if isinstance(symbol, E.Var) and symbol not in func.params
    }
    return without_offsets(specialize(func, layout) if layout else func)


def name_of(func: PrimFunc) -> str:
    """The name under which a function is known."""
    return str(func.attrs.get("global_symbol") or "main")


def check_count(func: PrimFunc, name: str, given: int) -> None:
    """An ExternalCallError where a call passes too few or too many arguments."""
    if given != len(func.params):
        names = ", ".join(param.name for param in func.params)
        raise ExternalCallError(
            f'"{name}" takes {len(func.params)} argument(s) ({names}), but the call passes {given}'
        )


def callables(
    lookup: FunctionLookup, build: Callable[[str, PrimFunc, FunctionLookup], Kernel]
) -> Callable[[str], Callable[..., Any]]:
    """A lookup that gives a Python function for PrimFuncs, too: kernels that `build` makes."""
    cached: dict[PrimFunc, Callable[..., Any]] = {}

    def find(name: str) -> Callable[..., Any]:
        callee = lookup(name)
        if not isinstance(callee, PrimFunc):
            return callee
        if callee not in cached:
            func = micro_kernel(callee)
            cached[callee] = _on_pointers(name, func, build(name, func, lookup))
        return cached[callee]

    return find


def _on_pointers(name: str, func: PrimFunc, kernel: Kernel) -> Callable[..., Any]:
    """A kernel as a function of flat arrays and numbers."""
    import numpy as np

    result = func.attrs.get(RESULT)
    scalars = [i for i, param in enumerate(func.params) if param not in func.buffer_map]
    layouts: dict[tuple[int, ...], list[tuple[int, Buffer, Any, Any]]] = {}

    def run(*arguments: Any) -> Any:
        if result is not None:
            arguments = (*arguments, np.zeros(1, result))
        check_count(func, name, len(arguments))
        numbers = tuple(arguments[position] for position in scalars)
        layout = layouts.get(numbers)
        if layout is None:
            values = {func.params[i]: v for i, v in zip(scalars, numbers, strict=True)}
            layout = layouts[numbers] = _layout(func, values)
        values = list(arguments)
        for position, buffer, shape, strides in layout:
            values[position] = _laid_over(arguments[position], name, buffer, shape, strides)
        (kernel.run_aliased or kernel.run)(*values)
        return None if result is None else arguments[-1].item()

    return run


def _layout(func: PrimFunc, values: dict[E.Var, Any]) -> list[tuple[int, Buffer, Any, Any]]:
    """Shape and strides of each buffer parameter, in elements, for values of the scalars."""
    analyzer = Analyzer()
    constants = {
        var: const(int(value), var.dtype)
        for var, value in values.items()
        if dtypes.is_integer(var.dtype)
    }

    def numbers(extents: Sequence[E.PrimExpr]) -> tuple[int, ...]:
        simple = [analyzer.simplify(substitute(extent, constants)) for extent in extents]
        return tuple(extent.value for extent in simple if isinstance(extent, E.IntImm))

    return [
        (position, buffer, numbers(buffer.shape), numbers(buffer.strides) or None)
        for position, param in enumerate(func.params)
        if (buffer := func.buffer_map.get(param)) is not None
    ]


def _laid_over(flat: Any, name: str, buffer: Buffer, shape: Any, strides: Any) -> Any:
    """An array of the buffer's shape and strides over a flat one."""
    import numpy as np

    if not isinstance(flat, np.ndarray):
        raise ExternalCallError(
            f'"{name}" takes a pointer for "{buffer.name}", but the call passes {flat!r}'
        )
    check_pointer(name, buffer, flat.dtype.name)
    steps = None if strides is None else [stride * flat.itemsize for stride in strides]
    try:
        return np.ndarray(shape, flat.dtype, flat.data, 0, steps)
    except (TypeError, ValueError):
        raise ExternalCallError(
            f'"{name}" reaches beyond what the pointer for "{buffer.name}" reaches: '
            f"{flat.size} element(s) for a shape of {shape} with strides {strides or 'compact'}"
        ) from None


def check_pointer(name: str, buffer: Buffer, dtype: str) -> None:
    """An ExternalCallError where a pointer does not point to elements of the buffer's type."""
    if dtype != buffer.dtype:
        raise ExternalCallError(
            f'"{name}" takes a pointer to {buffer.dtype} for "{buffer.name}", '
            f"but the call passes one to {dtype}"
        )
