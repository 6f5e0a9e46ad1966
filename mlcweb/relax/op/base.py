"""Calls of functions below the graph level, and the operators that the graph itself needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from mlcweb.ir.dialect import KEYWORDS, also_named, takes_newer_keywords
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.errors import DTypeError
from mlcweb.relax.expr import (
    Call,
    Expr,
    ExprLike,
    ExternFunc,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    convert_to_expr,
)
from mlcweb.relax.op import infer, legalize
from mlcweb.relax.op.legalize import keep, te, topi
from mlcweb.relax.op.registry import builder, call, operator
from mlcweb.relax.struct_info import (
    PrimStructInfo,
    ShapeLike,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import IntImm, PrimExpr

OutInfo: TypeAlias = "StructInfo | ShapeLike | Sequence[StructInfo | ShapeLike]"
"""What a call writes: a struct info, or several; or a shape, or several, with `dtype`."""

InfoArgs: TypeAlias = StructInfo | Sequence[StructInfo] | None
"""What a call gives, where it says so itself."""


def inline_arguments(builder: BlockBuilder, call: Call) -> Call:
    """A call whose second argument, a tuple, is written in the call itself."""
    arguments = call.args[1]
    if isinstance(arguments, Tuple) or not isinstance(arguments, Expr):
        return call
    bound = builder.lookup_binding(arguments) if isinstance(arguments, Var) else None
    inline = bound if isinstance(bound, Tuple) else argument_tuple(arguments)
    args = call.args[0], inline, *call.args[2:]
    return Call(call.op, args, call.attrs, call.sinfo_args, span=call.span)


@operator(
    "relax.call_tir", "func", "args",
    infer=infer.sinfo_args, legalize=keep, normalize=inline_arguments,
)  # fmt: skip
@takes_newer_keywords
def call_tir(
    gvar: ExprLike,
    args: ExprLike,
    out_sinfo: OutInfo | None = None,
    tir_vars: Expr | Sequence[PrimExpr | int] | None = None,
    *,
    dtype: str | Sequence[str] | None = None,
) -> Call:
    """A call of a function of TensorIR, which writes its results into new tensors.

    Args:
        gvar: the function, by its GlobalVar. A string is the name of an external function, which
            makes this a `call_dps_packed`.
        args: the inputs, as a tuple; one tensor may stand for a tuple of one.
        out_sinfo: what is written: a TensorStructInfo, or a list of several. In the older form a
            shape (or list of shapes), with `dtype`.
        tir_vars: integers that the function takes after its tensors, as a shape.
    """
    op = Op.get("relax.call_tir")
    if isinstance(gvar, (str, ExternFunc)):
        op = Op.get("relax.call_dps_packed")
        gvar = ExternFunc(gvar) if isinstance(gvar, str) else gvar
    elif not isinstance(gvar, (GlobalVar, Expr)):
        raise DTypeError(f"{op.name}: calls a function by its GlobalVar or name, not {gvar!r}")
    last = () if tir_vars is None else (_shape(tir_vars),)
    info = written(op, out_sinfo, dtype)
    return Call(op, (gvar, argument_tuple(args), *last), None, (info,))


@operator("relax.call_dps_packed", "func", "args", infer=infer.sinfo_args, legalize=keep)
@takes_newer_keywords
def call_dps_packed(
    func: Expr | str,
    args: ExprLike,
    out_sinfo: OutInfo | None = None,
    *,
    dtype: str | Sequence[str] | None = None,
) -> Call:
    """A call of an external function that takes its results, newly allocated, as last arguments.

    `out_sinfo` is as in `call_tir`.
    """
    func = ExternFunc(func) if isinstance(func, str) else func
    op = Op.get("relax.call_dps_packed")
    info = written(op, out_sinfo, dtype)
    return Call(op, (func, argument_tuple(args)), None, (info,))


def argument_tuple(args: ExprLike) -> Tuple:
    """Arguments as a tuple that is written in the call; one stands for a tuple of one."""
    expr = convert_to_expr(args)
    if isinstance(expr, Tuple):
        return expr
    info = getattr(expr, "struct_info", None)
    if isinstance(expr, Expr) and isinstance(info, TupleStructInfo):
        return Tuple([TupleGetItem(expr, place) for place in range(len(info.fields))])
    return Tuple((expr,))


def written(op: Op, info: OutInfo | None, dtype: str | Sequence[str] | None) -> StructInfo:
    """What a call writes, as a struct info, from the forms in which it may be given."""
    if isinstance(info, (TensorStructInfo, TupleStructInfo)):
        return info
    items: Any = list(info) if isinstance(info, (list, tuple)) else []
    if items and all(isinstance(item, StructInfo) for item in items):
        return TupleStructInfo(items) if len(items) > 1 else items[0]
    if dtype is None or not isinstance(info, (list, tuple, ShapeExpr)):
        raise DTypeError(
            f'{op.name}: say what the call writes: out_sinfo=R.Tensor((n, m), "float32"), or the '
            "shape (n, m) and dtype="
        )
    if items and isinstance(items[0], (list, tuple, ShapeExpr)):
        types = [dtype] * len(items) if isinstance(dtype, str) else list(dtype)
        pairs = zip(items, types, strict=True)
        return TupleStructInfo([TensorStructInfo(shape, t) for shape, t in pairs])
    return TensorStructInfo(info if isinstance(info, ShapeExpr) else items, str(dtype))


def _shape(values: Expr | Sequence[PrimExpr | int]) -> Expr:
    return values if isinstance(values, Expr) else ShapeExpr(values)


def given_sinfo_args(infos: InfoArgs) -> tuple[StructInfo, ...]:
    """Struct infos as a call has them, from none, one or several."""
    if infos is None:
        return ()
    return (infos,) if isinstance(infos, StructInfo) else tuple(infos)


@builder("relax.call_packed")
@takes_newer_keywords
def call_packed(
    func: Expr | str, *args: ExprLike, sinfo_args: InfoArgs = None, **attrs: object
) -> Call:
    """A call of an external function that returns a value of the struct info `sinfo_args`. It may
    have side effects."""
    func = ExternFunc(func) if isinstance(func, str) else func
    kept = Attrs(attrs) if attrs else None
    return Call(func, [convert_to_expr(arg) for arg in args], kept, given_sinfo_args(sinfo_args))


@operator("relax.call_pure_packed", "func", "args", infer=infer.sinfo_args, legalize=keep)
@takes_newer_keywords
def call_pure_packed(
    func: Expr | str,
    *args: ExprLike,
    sinfo_args: InfoArgs = None,
    **attrs: object,
) -> Call:
    """A call of an external function without side effects."""
    func = ExternFunc(func) if isinstance(func, str) else func
    kept = Attrs(attrs) if attrs else None
    arguments = [convert_to_expr(arg) for arg in (func, *args)]
    return Call(Op.get("relax.call_pure_packed"), arguments, kept, given_sinfo_args(sinfo_args))


@operator("relax.call_py_func", "func_name", "args", infer=infer.sinfo_args, legalize=keep)
@also_named(**KEYWORDS, py_func_name="func_name")
def call_py_func(
    func_name: Expr | str, *args: ExprLike, out_sinfo: OutInfo | None = None,
    sinfo_args: InfoArgs = None,
) -> Call:  # fmt: skip
    """A call of a Python function of the module (see `relax.BasePyModule`), which returns a value
    of the struct info `out_sinfo`, or several in a tuple.

    The arguments may be given as one tuple, and `out_sinfo` by position after it.
    """
    *values, last = args or (None,)
    if out_sinfo is None and sinfo_args is None and _is_info(last):
        args, out_sinfo = tuple(values), cast("OutInfo", last)
    infos = given_sinfo_args(sinfo_args)
    op = Op.get("relax.call_py_func")
    info = infos[0] if out_sinfo is None and len(infos) == 1 else written(op, out_sinfo, None)
    name = StringImm(func_name) if isinstance(func_name, str) else func_name
    return Call(op, (name, argument_tuple(args[0] if len(args) == 1 else args)), None, (info,))


def _is_info(value: object) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, StructInfo) for item in value)
    return isinstance(value, StructInfo)


@operator("relax.call_builtin_with_ctx", "func", "args", infer=infer.sinfo_args, pure=False)
@takes_newer_keywords
def call_builtin_with_ctx(func: Expr | str, args: ExprLike, *, sinfo_args: InfoArgs = None) -> Call:
    """A call of a builtin of TVM's virtual machine, which gets the machine as well."""
    func = ExternFunc(func) if isinstance(func, str) else func
    return Call(
        Op.get("relax.call_builtin_with_ctx"),
        [func, argument_tuple(args)],
        None,
        given_sinfo_args(sinfo_args),
    )


def _infer_assert(call: Call, context: Context) -> StructInfo:
    info = context.struct_info(call.args[0])
    is_bool = isinstance(info, (TensorStructInfo, PrimStructInfo)) and info.dtype in ("bool", "")
    if not is_bool or (isinstance(info, TensorStructInfo) and info.ndim > 0):
        raise infer.dtype_error(call, f"condition must be a bool, but it is {info}")
    return TupleStructInfo(())


@operator("relax.assert_op", "condition", "format", infer=_infer_assert, legalize=keep, pure=False)
def assert_op(
    condition: ExprLike, format_args: ExprLike | None = None, format: str | StringImm = ""
) -> Call:
    """Stop the program with an AssertionError unless `condition` holds, a bool, when it runs.

    `format` and `format_args` make its message, as Python's `format` does.
    """
    if format_args is None:
        format_args = ()
    values = format_args if isinstance(format_args, (list, tuple)) else (format_args,)
    return call(assert_op, condition, format, *values)


@operator("relax.null_value", infer=infer.object_info, legalize=keep)
def null_value() -> Call:
    """An object that is nothing."""
    return call(null_value)


@operator("relax.print", "format", "values", infer=infer.nothing, legalize=keep, pure=False)
def print(*values: ExprLike, format: str | StringImm = "") -> Call:
    """Print values when the program runs, in the form that `format` gives to Python's `format`."""
    return call(print, format, *values)


def _infer_shape_of(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return ShapeStructInfo(info.values, info.ndim)


@operator("relax.shape_of", infer=_infer_shape_of, legalize=keep)
def shape_of(expr: ExprLike) -> Call:
    """The shape of a tensor."""
    return call(shape_of, expr)


def get_shape_of(expr: ExprLike) -> Expr:
    """The shape of a tensor: its extents where they are known, else `shape_of`."""
    result = shape_of(expr)
    info = result.struct_info
    values = info.values if isinstance(info, ShapeStructInfo) else None
    return result if values is None else ShapeExpr(values)


def _infer_shape_to_tensor(call: Call, context: Context) -> StructInfo:
    info = infer.shape(call, 0, context)
    return TensorStructInfo(None if info.ndim == -1 else [info.ndim], "int64", ndim=1)


def _extents(values: Sequence[PrimExpr]) -> te.Tensor:
    """A vector of the extents of a shape."""

    def element(i: PrimExpr) -> PrimExpr:
        value = arithmetic.const(0, "int64")
        for place, extent in reversed(list(enumerate(values))):
            here = arithmetic.equal(i, arithmetic.const(place, "int64"))
            value = intrinsics.if_then_else(here, arithmetic.cast("int64", extent), value)
        return value

    return te.compute((arithmetic.const(len(values), "int64"),), element, "shape_to_tensor")


def _legalize_shape_to_tensor(builder: BlockBuilder, call: Call) -> Expr:
    info = builder.context.struct_info(call.args[0])
    if not isinstance(info, ShapeStructInfo) or info.values is None:
        return call
    values = list(info.values)
    return builder.call_te(_extents, values, primfunc_name_hint="shape_to_tensor")


@operator(
    "relax.shape_to_tensor", "input",
    infer=_infer_shape_to_tensor, legalize=_legalize_shape_to_tensor,
)  # fmt: skip
def shape_to_tensor(expr: ExprLike) -> Call:
    """A shape as a vector of int64."""
    return call(shape_to_tensor, expr)


def _infer_tensor_to_shape(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_rank(call, 0, info, 1, "a vector of int64")
    if info.dtype not in ("", "int64"):
        raise infer.dtype_error(call, f"input must be int64, not {info.dtype}")
    length = None if info.values is None else getattr(info.values[0], "value", None)
    return ShapeStructInfo(None, -1 if length is None else length)


@operator("relax.tensor_to_shape", "input", infer=_infer_tensor_to_shape, legalize=keep)
def tensor_to_shape(expr: ExprLike) -> Call:
    """A vector of int64 as a shape."""
    return call(tensor_to_shape, expr)


def _infer_count(call: Call, context: Context) -> StructInfo:
    infer.tensor(call, 0, context)
    return TensorStructInfo((), "int64")


def _legalize_size(builder: BlockBuilder, call: Call) -> Expr:
    def size(values: Sequence[PrimExpr]) -> te.Tensor:
        return topi.full((), "int64", dims.product(values))

    return builder.call_te(size, legalize.shape_of(builder, call.args[0]))


@operator("relax.size", infer=_infer_count, legalize=_legalize_size)
def size(expr: ExprLike) -> Call:
    """The number of elements of a tensor, as a tensor."""
    return call(size, expr)


def _infer_size(call: Call, context: Context) -> StructInfo:
    info, axis = infer.tensor(call, 0, context), infer.scalar(call, 1, context).value
    if info.values is None or not isinstance(axis, IntImm):
        return PrimStructInfo("int64")
    return PrimStructInfo(value=info.values[infer.normalized_axis(call, axis.value, info.ndim)])


@builder("relax.tensor_shape_i")
@operator("relax.inspect.tensor_shape_i", infer=_infer_size, legalize=keep)
def tensor_shape_i(tensor: ExprLike, axis: int | PrimExpr) -> Call:
    """One extent of a tensor."""
    return call(tensor_shape_i, tensor, axis)
