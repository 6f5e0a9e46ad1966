"""The types of TVMScript as values: `T.float32`, `T.handle`, `T.Buffer`.

Python evaluates annotations when it defines a function, so everything here is harmless to call
and to subscript.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, decl_buffer


class ScalarType:
    """A data type. Called with a number it makes a constant, with an expression a cast, and with
    nothing a variable, which the assignment names; `is_size_var` makes it a `tir.SizeVar`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, value: Any = None, **options: Any) -> E.PrimExpr:
        if value is None:
            return E.Var("", self.dtype, is_size=options.get("is_size_var", False))
        if isinstance(value, str):
            value = float(value)
        if isinstance(value, (bool, int, float)):
            return arithmetic.const(value, self.dtype)
        return arithmetic.cast(self.dtype, value)

    def __str__(self) -> str:
        return self.dtype

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


class HandleType(ScalarType):
    """The type of pointers. `T.handle("float32", "local")` says what the pointer points to."""

    def __init__(self) -> None:
        super().__init__("handle")

    def __call__(self, value: Any = None, scope: str = "global", **options: Any) -> E.Var:
        if value is None:
            return E.Var("", "handle")
        return E.Var("", "handle", E.PointerType(str(value), scope))


class BufferType:
    """`T.Buffer((n, m), "float32")`; the older `T.Buffer[(n, m), "float32"]` means the same."""

    def __call__(self, *args: Any, **options: Any) -> Buffer:
        return make_buffer(*args, **options)

    def __getitem__(self, arguments: Any) -> Buffer:
        if isinstance(arguments, tuple) and len(arguments) == 2 and _names_a_type(arguments[1]):
            return self(*arguments)
        return self(arguments)

    def __or__(self, other: Any) -> Any:
        """The type `T.Buffer | None` of a Python function's parameter."""
        return Union[self, other]  # noqa: UP007

    def __repr__(self) -> str:
        return "T.Buffer"


def make_buffer(
    shape: Sequence[Any] | Any,
    dtype: Any = "float32",
    data: E.Var | Buffer | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
    type: str = "default",  # what buffer_type was called until 2022
    layout: Any = None,
) -> Buffer:
    """A buffer without a name, which the assignment gives: what all calls of `T` that describe a
    buffer take. Strings in `shape` and `strides` are variables of their own. A view of a buffer
    that says what it does is that buffer: scripts until 2022 gave an allocation its shape so.

    Raises:
        DiagnosticError: a `layout` is given; those of tirx are for GPUs.
    """
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    type_name = dtypes.full_name(dtype)
    dtypes.parse(type_name)
    buffer = decl_buffer(
        [_dimension(extent) for extent in dims],
        type_name,
        "",
        data.data if isinstance(data, Buffer) else data,
        None if strides is None else [_dimension(stride) for stride in strides],
        elem_offset,
        scope,
        align,
        offset_factor,
        axis_separators,
        layout=layout,
    )
    return data if isinstance(data, Buffer) and _same_layout(data, buffer) else buffer


def _same_layout(a: Buffer, b: Buffer) -> bool:
    return (
        arithmetic.is_const_int(a.elem_offset, 0) and arithmetic.is_const_int(b.elem_offset, 0)
        and a.dtype == b.dtype and list(map(str, a.shape)) == list(map(str, b.shape))
        and not a.strides and not b.strides and a.axis_separators == b.axis_separators
    )  # fmt: skip


def _dimension(value: Any) -> E.PrimExpr:
    if isinstance(value, str):
        if value and not value.isidentifier():  # TVM prints variables without a name so
            raise DiagnosticError(f"A string in a buffer's shape names a variable, not {value!r}")
        return E.Var(value, "int32")
    if isinstance(value, float):
        raise DiagnosticError(f"A buffer's shape needs integers, not {value}")
    return arithmetic.convert(value)


def _names_a_type(value: Any) -> bool:
    return isinstance(value, (str, ScalarType))


SCALAR_TYPE_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64",
)  # fmt: skip

SHORT_NAMES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
}
"""What newer scripts may call the types."""

VECTOR_LANES = (2, 4, 8, 16, 32, 64)

scalar_types: dict[str, ScalarType] = {
    name: ScalarType(name)
    for element in (*SCALAR_TYPE_NAMES, *dtypes.NARROW_FLOATS)
    for name in (element, *(f"{element}x{lanes}" for lanes in VECTOR_LANES))
}
