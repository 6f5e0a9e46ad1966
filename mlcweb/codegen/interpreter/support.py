"""What generated Python calls: exact integer types, casts, intrinsics, checked indices, views.

Scalars of integer types are Python integers kept in range, scalars of floating types are NumPy
scalars, so that every operation rounds to its own type. Vectors are one-dimensional arrays. The
functions here take either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

import numpy as np

from mlcweb.codegen.errors import IndexOutOfBounds, assertion_failed
from mlcweb.codegen.external import ArrayArgument
from mlcweb.ir.errors import TVMError, nests_too_deep
from mlcweb.ir.span import Span
from mlcweb.tir import dtype as dtypes


def compiled(source: str, filename: str) -> CodeType:
    """Generated Python, compiled; its nesting has a limit."""
    try:
        return compile(source, filename, "exec")
    except (SyntaxError, MemoryError, RecursionError):
        raise nests_too_deep("run by Python") from None


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy type of one element of a type; TVMError where NumPy itself has none."""
    element = dtypes.element_of(dtype)
    with suppress(TypeError):
        array_type = np.dtype(element)
        if array_type.isbuiltin == 1:  # and not one that another package has added
            return array_type
    raise TVMError(f"NumPy has no {element}; use float16 or float32")


def _wrapper(dtype: str) -> Callable[[Any], Any]:
    low = int(dtypes.min_value(dtype))
    mask = (1 << dtypes.bits(dtype)) - 1

    def wrap(value: Any) -> int:
        return ((int(value) - low) & mask) + low

    wrap.__name__ = dtype
    return wrap


INTEGER_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOAT_TYPES = ("float16", "float32", "float64")
wrappers = {name: _wrapper(name) for name in INTEGER_TYPES}


def float_to_int(value: Any, dtype: str) -> Any:
    """Rounded towards zero; values out of range give the nearest end, NaN gives zero (as
    WebAssembly's saturating conversions do; C leaves both open)."""
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    if not isinstance(value, np.ndarray):
        if math.isnan(value):
            return 0
        return high if value >= high else low if value <= low else int(value)
    wide = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.where((wide > low) & (wide < high), wide, 0).astype(numpy_dtype(dtype))
    bounds = np.where(wide >= high, high, low).astype(numpy_dtype(dtype))
    return np.where((wide > low) & (wide < high), inside, bounds)


def cast(value: Any, source: str, dtype: str) -> Any:
    """`value` of type `source` as `dtype`: integers wrap, floats round."""
    if dtypes.is_integer(dtype) and dtypes.is_float(source):
        return float_to_int(value, dtypes.element_of(dtype))
    if isinstance(value, np.ndarray):
        return value.astype(numpy_dtype(dtype))
    if dtypes.is_integer(dtype):
        return wrappers[dtype](value)
    if dtypes.is_bool(dtype):
        return bool(value)
    if dtypes.is_integer(source):
        value = numpy_dtype(source).type(value)
    return numpy_dtype(dtype).type(value)


def popcount(value: Any, dtype: str) -> Any:
    """How many bits of an integer are 1."""
    if not isinstance(value, np.ndarray):
        return (int(value) & (1 << dtypes.bits(dtype)) - 1).bit_count()
    octets = np.ascontiguousarray(value)[..., np.newaxis].view(np.uint8)
    return np.unpackbits(octets, axis=-1).sum(-1).astype(value.dtype)


def reinterpret(value: Any, source: str, dtype: str) -> Any:
    """The bits of `value` read as another type."""
    viewed = np.asarray(value, numpy_dtype(source)).view(numpy_dtype(dtype))
    if viewed.ndim:
        return viewed
    return viewed[()] if dtypes.is_float(dtype) else viewed.item()


def truncdiv(a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (a - np.fmod(a, b)) // b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncmod(a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.fmod(a, b)
    return -(abs(a) % abs(b)) if a < 0 else a % abs(b)


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two scalars, the first of equal ones (zeros); NaN if either is."""
    return a if a <= b or a != a else b


def maximum(a: Any, b: Any) -> Any:
    """The greater of two scalars, the first of equal ones (zeros); NaN if either is."""
    return a if a >= b or a != a else b


def array_minimum(a: Any, b: Any) -> Any:
    """`minimum` of arrays. Which zero `np.minimum` gives differs from machine to machine."""
    if np.result_type(a, b).kind != "f":
        return np.minimum(a, b)
    return np.where((b < a) | (b != b), b, a)


def array_maximum(a: Any, b: Any) -> Any:
    """`maximum` of arrays."""
    if np.result_type(a, b).kind != "f":
        return np.maximum(a, b)
    return np.where((b > a) | (b != b), b, a)


def _erf(x: Any) -> Any:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=x.dtype)[()]


intrinsics: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint,
    "round": np.rint, "erf": _erf, "fabs": np.abs, "abs": abs,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "hypot": np.hypot,
    "copysign": np.copysign, "nextafter": np.nextafter,
    "ldexp": lambda x, exponent: np.ldexp(x, np.asarray(exponent).astype(np.int32)),
    "isnan": np.isnan, "isinf": np.isinf,
}  # fmt: skip
"""Elementwise intrinsics by name; results have the type of the (first) argument."""


def ramp(base: Any, stride: Any, lanes: int, dtype: str) -> np.ndarray[Any, Any]:
    return base + stride * np.arange(lanes, dtype=numpy_dtype(dtype))


def broadcast(value: Any, lanes: int, dtype: str) -> np.ndarray[Any, Any]:
    return np.full(lanes, value, numpy_dtype(dtype))


def allocate(shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    """Memory whose content stands out if a program reads it before writing: NaN, or 0x5A bytes."""
    array = np.empty(shape, numpy_dtype(dtype))
    if array.dtype.kind == "f":
        array.fill(np.nan)
    else:
        array.view(np.uint8 if array.ndim else array.dtype)[...] = 0x5A if array.ndim else 0
    return array


def view(
    storage: np.ndarray[Any, Any],
    shape: Sequence[int],
    dtype: str,
    strides: Sequence[int] | None,
    offset: int,
) -> np.ndarray[Any, Any]:
    """A buffer laid over memory that another one owns; strides and offset count its elements."""
    element = numpy_dtype(dtype)
    steps = None if strides is None else [stride * element.itemsize for stride in strides]
    memory = storage.reshape(-1).data
    try:
        return np.ndarray(shape, element, memory, offset * element.itemsize, steps)
    except TypeError as error:
        raise IndexOutOfBounds(
            f"A view of shape {tuple(shape)} and type {dtype}, {offset} elements after the start, "
            f"does not fit into the {memory.nbytes} bytes that it looks at"
        ) from error


def pointer(storage: np.ndarray[Any, Any], offset: int, extent: int) -> np.ndarray[Any, Any]:
    """What a call of an external function gets for a pointer: the elements that it reaches."""
    return storage.reshape(-1)[offset : offset + extent]


def array_argument(
    storage: np.ndarray[Any, Any], shape: tuple[int, ...], offset: int
) -> ArrayArgument:
    """The elements of a buffer, in its shape."""
    return ArrayArgument(pointer(storage, offset, math.prod(shape)).reshape(shape))


def shuffle(vectors: tuple[Any, ...], positions: int | list[int]) -> Any:
    """The elements of vectors, or scalars, one after another, at some positions."""
    return np.concatenate([np.atleast_1d(vector) for vector in vectors])[positions]


def window(source: np.ndarray[Any, Any], *region: int | slice) -> np.ndarray[Any, Any]:
    """A region of an array as a view; the region has to lie inside."""
    for part, extent in zip(region, source.shape, strict=True):
        low, high = (part.start, part.stop) if isinstance(part, slice) else (part, part + 1)
        if low < 0 or high > extent:
            raise IndexOutOfBounds(
                f"The matched region reaches [{low}, {high}) of a dimension of extent {extent}"
            )
    return source[region]


def strides_in_elements(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def element_offset(array: np.ndarray[Any, Any], storage: np.ndarray[Any, Any]) -> int:
    """How many elements after the start of `storage` the view `array` starts."""
    distance = array.__array_interface__["data"][0] - storage.__array_interface__["data"][0]
    return distance // array.itemsize


def index_checker(sites: Sequence[tuple[str, str, str, Span | None]]) -> Callable[..., Any]:
    """`at(site, array, *indices)`: the indices where they are in bounds, else an error that names
    the access. A site is (what happens, buffer, block, source text)."""

    def at(site: int, array: np.ndarray[Any, Any], *indices: Any) -> tuple[Any, ...]:
        for index, extent in zip(indices, array.shape, strict=True):
            outside = (index < 0) | (index >= extent)
            # Most indices are plain numbers, for which NumPy takes many times as long.
            if outside.any() if isinstance(outside, np.ndarray) else outside:
                action, buffer, block, span = sites[site]
                where = f' in block "{block}"' if block else ""
                raise IndexOutOfBounds(
                    f"{action} {buffer}[{_first_where(outside, indices)}]{where} is out of bounds: "
                    f'"{buffer}" has shape {tuple(array.shape)}',
                    span,
                )
        return indices

    return at


def _first_where(condition: Any, indices: Sequence[Any]) -> str:
    """The first indices for which a condition holds."""
    grids = np.broadcast_arrays(condition, *indices)
    first = np.flatnonzero(grids[0])[0]
    return ", ".join(str(grid.flat[first]) for grid in grids[1:])


def check_axis(
    value: int, low: int, extent: int, axis: str, block: str, span: Span | None = None
) -> int:
    """A block iterator's value, which has to lie in its domain."""
    if low <= value < low + extent:
        return value
    raise IndexOutOfBounds(
        f'Axis "{axis}" of block "{block}" is {value}, outside its domain [{low}, {low + extent})',
        span,
    )


def check_assertion(condition: Any, message: Any, kind: str = "RuntimeError") -> None:
    if not condition:
        raise assertion_failed(kind, message)


def external_call(name: str, lookup: Callable[[str], Callable[..., Any]], *args: Any) -> Any:
    """Call a registered function; its result counts only where the program uses it."""
    result = lookup(name)(*args)
    return 0 if result is None else result


namespace: dict[str, Any] = {
    **wrappers,
    **{name: np.dtype(name).type for name in FLOAT_TYPES},
    "np": np,
    **{
        function.__name__: function
        for function in (
            allocate, array_argument, array_maximum, array_minimum, broadcast, cast,
            check_assertion, check_axis, element_offset, external_call, maximum, minimum, pointer,
            popcount, ramp, reinterpret, strides_in_elements, shuffle, truncdiv, truncmod, view,
            window,
        )
    },
    **{f"intrinsic_{name}": function for name, function in intrinsics.items()},
}  # fmt: skip
"""The names that generated code may use."""
