"""Tensors from numbers."""

from __future__ import annotations

import math

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import Number
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, PrimValue, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import by, dtype_of, number, shape_of, te, topi
from mlcweb.relax.op.registry import FOLLOW, Legalize, as_shape, call, operator
from mlcweb.relax.struct_info import ShapeLike, StructInfo, TensorStructInfo
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import FloatImm, PrimExpr


def _scalar(call: Call, index: int, context: Context) -> TensorStructInfo:
    info = infer.tensor(call, index, context)
    if info.ndim != 0:
        raise infer.shape_error(call, f"{infer.described(call, index, info)} must be a scalar")
    return info


def _infer_full(call: Call, context: Context) -> StructInfo:
    value = _scalar(call, 1, context)
    return infer.of_shape(call, 0, context, infer.dtype_or(call, value.dtype))


def _infer_like(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if len(call.args) > 1:
        _scalar(call, 1, context)
    return TensorStructInfo(info.shape, infer.dtype_or(call, info.dtype), ndim=info.ndim)


def _full(shape: list[PrimExpr], dtype: str, value: PrimExpr | te.Tensor) -> te.Tensor:
    return topi.full(shape, dtype, value() if isinstance(value, te.Tensor) else value)


def _legalize_filled(name: str, value: int | None) -> Legalize:
    """A tensor of the deduced shape; of the value, or of that of the second argument."""

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        shape, dtype = shape_of(builder, call), dtype_of(builder, call)
        filling = number(call.args[1]) if value is None else arithmetic.const(value, dtype)
        return builder.call_te(_full, shape, dtype, filling, primfunc_name_hint=name)

    return legalize


@operator(
    "relax.full", "shape", "fill_value",
    infer=_infer_full, legalize=_legalize_filled("full", None), precision=FOLLOW,
    differentiable=False,
)  # fmt: skip
def full(shape: ShapeLike, fill_value: Expr | Number, dtype: str | None = None) -> Call:
    """A tensor of one value: a scalar tensor, or a number."""
    value = fill_value if isinstance(fill_value, Expr) else const(fill_value, dtype)
    return call(full, as_shape(shape), value, dtype=str(dtype or "void"))


@operator(
    "relax.full_like", "x", "fill_value",
    infer=_infer_like, legalize=_legalize_filled("full", None), precision=FOLLOW,
    differentiable=False,
)  # fmt: skip
def full_like(x: ExprLike, fill_value: Expr | Number, dtype: str | None = None) -> Call:
    """One value in the shape (and without `dtype` the element type) of `x`."""
    value = fill_value if isinstance(fill_value, Expr) else const(fill_value, dtype)
    return call(full_like, x, value, dtype=str(dtype or "void"))


def _infer_filled(call: Call, context: Context) -> StructInfo:
    return infer.of_shape(call, 0, context, infer.attribute(call, "dtype"))


Scalar = PrimValue | PrimExpr | Number


def _constant_tensor(name: str, value: int):
    @operator(
        f"relax.{name}", "shape", infer=_infer_filled, legalize=_legalize_filled(name, value),
        precision=FOLLOW, differentiable=False,
    )  # fmt: skip
    def build(shape: ShapeLike, dtype: str) -> Call:
        return call(build, as_shape(shape), dtype=str(dtype))

    build.__doc__ = f"A tensor of {name}."
    return build


def _constant_tensor_like(name: str, value: int):
    legalize = _legalize_filled(name.removesuffix("_like"), value)

    @operator(f"relax.{name}", "x", infer=_infer_like, legalize=legalize, differentiable=False)
    def build(x: ExprLike, dtype: str | None = None) -> Call:
        return call(build, x, dtype=str(dtype or "void"))

    build.__doc__ = f"A tensor of {name[:-5]} in the shape (and element type) of another."
    return build


zeros = _constant_tensor("zeros", 0)
ones = _constant_tensor("ones", 1)
zeros_like = _constant_tensor_like("zeros_like", 0)
ones_like = _constant_tensor_like("ones_like", 1)


def _prim_values(call: Call) -> list[PrimExpr]:
    values = []
    for index, argument in enumerate(call.args):
        if not isinstance(argument, PrimValue):
            name = infer.argument_name(call, index)
            raise infer.dtype_error(call, f"{name} must be a number, but it is {argument}")
        values.append(argument.value)
    return values


def arange_size(start: PrimExpr, end: PrimExpr, step: PrimExpr) -> PrimExpr | int:
    """How many elements start, start + step, … lie before end."""
    numbers = [constant_value(value) for value in (start, end, step)]
    if all(number is not None for number in numbers):
        low, high, stride = numbers
        assert low is not None and high is not None and stride is not None
        if all(isinstance(number, int) for number in numbers):
            return max(0, -int((low - high) // stride))
        return max(0, math.ceil((high - low) / stride))
    return dims.simplify((end - start + step - 1) // step)


def _infer_arange(call: Call, context: Context) -> StructInfo:
    start, end, step = _prim_values(call)
    if constant_value(step) == 0:
        raise infer.shape_error(call, "step must not be 0")
    return TensorStructInfo([arange_size(start, end, step)], infer.attribute(call, "dtype"))


def _legalize_arange(builder: BlockBuilder, call: Call) -> Expr:
    """A constant where all numbers are known."""
    (count,), dtype = shape_of(builder, call), dtype_of(builder, call)
    start, _, step = _prim_values(call)
    size, low, stride = (constant_value(value) for value in (count, start, step))
    if size is not None and low is not None and stride is not None:
        return const([low + i * stride for i in range(int(size))], dtype)

    def arange(count: PrimExpr, first: PrimExpr, by: PrimExpr) -> te.Tensor:
        def element(i: PrimExpr) -> PrimExpr:
            low, place, stride = (arithmetic.cast(dtype, value) for value in (first, i, by))
            return low + place * stride

        return te.compute((count,), element, "T_arange")

    return builder.call_te(arange, count, start, step)


@operator(
    "relax.arange", "start", "end", "step",
    infer=_infer_arange, legalize=_legalize_arange, precision=FOLLOW, differentiable=False,
)  # fmt: skip
def arange(
    start: Scalar, end: Scalar | None = None, step: Scalar = 1, dtype: str | None = None
) -> Call:
    """start, start + step, … before end; of int64 where all are whole numbers, else float32."""
    if end is None:
        start, end = 0, start
    values = [value if isinstance(value, PrimValue) else PrimValue(value)
              for value in (start, end, step)]  # fmt: skip
    whole = not any(isinstance(value.value, FloatImm) for value in values)
    return call(arange, *values, dtype=str(dtype or ("int64" if whole else "float32")))


def _infer_eye(call: Call, context: Context) -> StructInfo:
    rows, columns, _ = _prim_values(call)
    return TensorStructInfo([rows, columns], infer.attribute(call, "dtype"))


def _legalize_eye(builder: BlockBuilder, call: Call) -> Expr:
    return _eye_by(builder, call, "eye", *call.args)


def _eye_by(builder: BlockBuilder, call: Call, name: str, *size: object) -> Expr:
    """The lowering of a call to a matrix of so many rows and columns."""
    dtype = dtype_of(builder, call)

    def eye(rows: PrimExpr, columns: PrimExpr, k: PrimExpr) -> te.Tensor:
        one, zero = (arithmetic.const(value, dtype) for value in (1, 0))
        return te.compute(
            (rows, columns),
            lambda i, j: intrinsics.if_then_else(arithmetic.equal(i, j - k), one, zero),
            "eye",
        )

    return builder.call_te(eye, *size, primfunc_name_hint=name)


@operator("relax.eye", "n", "m", "k", infer=_infer_eye, legalize=_legalize_eye, precision=FOLLOW)
def eye(n: ExprLike, m: ExprLike | None = None, k: ExprLike = 0, dtype: str = "float32") -> Call:
    """An n by m matrix (m = n without `m`) of ones on the k-th diagonal, zeros elsewhere."""
    return call(eye, n, n if m is None else m, k, dtype=str(dtype))


def _infer_eye_like(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_rank(call, 0, info, 2, "a matrix")
    return TensorStructInfo(info.shape, infer.dtype_or(call, info.dtype), ndim=2)


def _legalize_eye_like(builder: BlockBuilder, call: Call) -> Expr:
    rows, columns = shape_of(builder, call)
    return _eye_by(builder, call, "eye_like", rows, columns, call.args[1])


@operator("relax.eye_like", "x", "k", infer=_infer_eye_like, legalize=_legalize_eye_like)
def eye_like(x: ExprLike, k: ExprLike = 0, dtype: str | None = None) -> Call:
    """A matrix as large as `x` of ones on the k-th diagonal, zeros elsewhere."""
    return call(eye_like, x, k, dtype=str(dtype or "void"))


def _infer_triangle(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.ndim in (0, 1):
        raise infer.shape_error(call, f"{infer.described(call, 0, info)} is no matrix")
    return info


@operator("relax.tril", infer=_infer_triangle, legalize=by("tril"))
def tril(x: ExprLike, k: ExprLike = 0) -> Call:
    """The last two dimensions with zeros above the k-th diagonal."""
    return call(tril, x, k)


@operator("relax.triu", infer=_infer_triangle, legalize=by("triu"))
def triu(x: ExprLike, k: ExprLike = 0) -> Call:
    """The last two dimensions with zeros below the k-th diagonal."""
    return call(triu, x, k)


def _infer_hamming_window(call: Call, context: Context) -> StructInfo:
    size = constant_value(_prim_values(call)[0])
    if size is None or size < 1:
        raise infer.shape_error(call, f"window_size must be a positive number, not {call.args[0]}")
    return TensorStructInfo([int(size)], infer.attribute(call, "dtype"))


def _legalize_hamming_window(builder: BlockBuilder, call: Call) -> Expr:
    size, periodic, *factors = map(constant_value, _prim_values(call))
    dtype = dtype_of(builder, call)
    return builder.call_te(
        topi.hamming_window, size, bool(periodic), *factors, dtype,
        primfunc_name_hint="hamming_window",
    )  # fmt: skip


@operator(
    "relax.hamming_window", "window_size", "periodic", "alpha", "beta",
    infer=_infer_hamming_window, legalize=_legalize_hamming_window, differentiable=False,
)  # fmt: skip
def hamming_window(
    window_size: ExprLike, periodic: ExprLike, alpha: ExprLike, beta: ExprLike, dtype: str
) -> Call:
    """alpha - beta cos(2 pi i / n) for i below `window_size`; n is that if the window is periodic,
    else one less."""
    return call(hamming_window, window_size, periodic, alpha, beta, dtype=str(dtype))
