"""Struct info: what is known, before a program runs, about the value of a graph expression.

A value is a tensor, a shape, a scalar, a tuple of values, a function, or just some object.
Extents are expressions of type int64, so that shapes may be symbolic:
`TensorStructInfo((n, 4), "float32")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mlcweb.ir import printing
from mlcweb.ir.array import Array, ArrayOf
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node, attribute, definition, node
from mlcweb.ir.span import Span
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.relax.errors import ShapeError
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import const, convert
from mlcweb.tir.expr import IntImm, PrimExpr, Var

if TYPE_CHECKING:
    from mlcweb.relax.expr import Expr


Extent: TypeAlias = PrimExpr | int | str
"""What stands for an extent; a string names a new variable."""

ShapeLike: TypeAlias = "Sequence[Extent] | Expr"
"""What stands for a shape."""


def extent(value: Extent) -> PrimExpr:
    """An extent as an expression of type int64; a string is a new variable of that name."""
    if isinstance(value, str):
        return Var(value, "int64")
    if isinstance(value, PrimExpr) and value.dtype == "int64":
        return value
    expression = convert(value)
    if isinstance(expression, IntImm):
        return const(expression.value, "int64")
    raise DiagnosticError(
        f"{expression} is of type {expression.dtype}; the value in ShapeStructInfo can only have "
        'dtype of int64: make it a tir.Var of that type, or cast it, `.astype("int64")`'
    )


def extents(values: Iterable[Extent]) -> Array[PrimExpr]:
    return Array([extent(value) for value in values])


@node
class StructInfo(Node):
    """Base of struct infos. Two are equal (`==`) where they are structurally equal."""

    if TYPE_CHECKING:  # analysis/struct_info.py implements this

        def is_base_of(self, /, derived: StructInfo) -> bool: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructInfo) and structural_equal(self, other)

    def __hash__(self) -> int:
        return structural_hash(self)

    def __repr__(self) -> str:
        return printing.text(self)


@node
class ObjectStructInfo(StructInfo):
    """Any value."""


@node
class PrimStructInfo(StructInfo):
    """A scalar: `PrimStructInfo("int64")`, or of a known value `PrimStructInfo(value=n)`."""

    dtype: str = attribute()
    value: PrimExpr | None = None

    def __init__(
        self,
        dtype: str | PrimExpr | int | float | None = None,
        value: PrimExpr | int | float | None = None,
        span: Span | None = None,
    ) -> None:
        if dtype is not None and not isinstance(dtype, str):
            dtype, value = None, dtype
        if isinstance(value, int) and not isinstance(value, bool):
            value = const(value, dtype or "int64")
        self.value = None if value is None else convert(value)
        if dtype is None and self.value is None:
            raise DiagnosticError("A PrimStructInfo needs a dtype or a value")
        self.dtype = dtype or self.value.dtype  # type: ignore[union-attr]
        self.span = span

    def matches_code(self, *codes: int) -> bool:
        """Whether the kind of the type is one of these numbers of `DataTypeCode`."""
        return dtypes.DataType(self.dtype).matches_code(*codes)

    def matches_element_type(self, code: int, bits: int) -> bool:
        """Whether one lane is of this kind and of this many bits."""
        return dtypes.DataType(self.dtype).matches_element_type(code, bits)

    def is_scalar(self) -> bool:
        """Whether the type has one lane."""
        return dtypes.DataType(self.dtype).is_scalar()


@node
class ShapeStructInfo(StructInfo):
    """A shape: its extents where they are known, else how many (-1: unknown)."""

    values: Array[PrimExpr] | None = None
    ndim: int = attribute(default=-1)

    def __init__(
        self, values: Sequence[Extent] | None = None, ndim: int = -1, span: Span | None = None
    ) -> None:
        self.values = None if values is None else extents(values)
        if self.values is not None and ndim not in (-1, len(self.values)):
            raise ShapeError(f"A shape of {len(self.values)} extent(s) does not have {ndim}")
        self.ndim = ndim if self.values is None else len(self.values)
        self.span = span


@node
class TensorStructInfo(StructInfo):
    """A tensor. `shape` is a ShapeExpr, a variable that stands for a shape, or None where unknown;
    `ndim` is -1 where unknown, and `dtype` is "" where unknown."""

    shape: Expr | None = None
    dtype: str = attribute(default="float32")
    vdevice: object = attribute(default=None)
    ndim: int = attribute(default=-1)

    def __init__(
        self,
        shape: ShapeLike | None = None,
        dtype: str | None = "float32",
        vdevice: object = None,
        ndim: int = -1,
        span: Span | None = None,
    ) -> None:
        from mlcweb.relax.expr import Expr, ShapeExpr

        if shape is not None and not isinstance(shape, Expr):
            shape = ShapeExpr(shape if isinstance(shape, Sequence) else tuple(shape))
        self.dtype = "" if dtype in (None, "void") else dtypes.full_name(dtype)
        if self.dtype:
            dtypes.parse(self.dtype)
        if not isinstance(ndim, int) or ndim < -1:
            raise DiagnosticError(f"ndim is how many dimensions there are, or -1, not {ndim!r}")
        rank = _count_of(shape)
        if rank >= 0 and ndim not in (-1, rank):
            raise ShapeError(f"A tensor of shape {shape} does not have {ndim} dimension(s)")
        self.shape = shape
        self.vdevice = vdevice
        self.ndim = rank if rank >= 0 else ndim
        self.span = span

    @property
    def values(self) -> tuple[PrimExpr, ...] | None:
        """The extents, where the shape itself says them."""
        from mlcweb.relax.expr import ShapeExpr

        return self.shape.values if isinstance(self.shape, ShapeExpr) else None

    @property
    def known_values(self) -> tuple[PrimExpr, ...] | None:
        """The extents, also where they are those of a variable that stands for the shape."""
        info = getattr(self.shape, "struct_info", None)
        return info.values if isinstance(info, ShapeStructInfo) else None


def _count_of(shape: Expr | None) -> int:
    info = getattr(shape, "struct_info", None)
    return info.ndim if isinstance(info, ShapeStructInfo) else -1


@node
class TupleStructInfo(StructInfo):
    """A tuple of values."""

    fields: ArrayOf[StructInfo]

    def __init__(self, fields: Sequence[StructInfo], span: Span | None = None) -> None:
        self.fields = Array(fields)
        self.span = span


@node
class FuncStructInfo(StructInfo):
    """A function. Of an opaque one nothing is known about the parameters: `params` is None."""

    params: Array[StructInfo] | None = definition()
    ret: StructInfo
    purity: bool = attribute(default=True)
    derive_func: Callable[..., StructInfo] | None = attribute(default=None)

    def __init__(
        self,
        params: Sequence[StructInfo] | None,
        ret: StructInfo,
        purity: bool = True,
        derive_func: Callable[..., StructInfo] | None = None,
        span: Span | None = None,
    ) -> None:
        self.params = None if params is None else Array(params)
        self.ret = ret
        self.purity = purity
        self.derive_func = derive_func
        self.span = span

    @property
    def arg_types(self) -> Array[StructInfo] | None:
        """`params`, as `tvm.ir.FuncType` names them."""
        return self.params

    @property
    def ret_type(self) -> StructInfo:
        """`ret`, as `tvm.ir.FuncType` names it."""
        return self.ret

    @staticmethod
    def opaque_func(
        *,
        ret: StructInfo | None = None,
        derive_func: Callable[..., StructInfo] | None = None,
        purity: bool = False,
        span: Span | None = None,
    ) -> FuncStructInfo:
        """A function of unknown parameters. `derive_func(call, context)` tells what a call gives;
        without it a call gives a `ret`."""
        return FuncStructInfo(None, ret or ObjectStructInfo(), purity, derive_func, span=span)
