"""Calls of functions below the graph level, and the operators that the graph itself needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.errors import DTypeError
from mlcweb.relax.expr import Call, Expr, ExternFunc, ShapeExpr, StringImm, Tuple, convert_to_expr
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.tir.expr import PrimExpr


def infer_sinfo_args(call: Call, context: Any) -> StructInfo:
    """What a call says itself that it gives."""
    infos = call.sinfo_args
    if not infos:
        return ObjectStructInfo()
    return infos[0] if len(infos) == 1 else TupleStructInfo(infos)


_CALL_TIR = register("relax.call_tir", ("func", "args"), infer_sinfo_args)
_CALL_DPS_PACKED = register("relax.call_dps_packed", ("func", "args"), infer_sinfo_args)
_CALL_PURE_PACKED = register("relax.call_pure_packed", ("func", "args"), infer_sinfo_args)


@takes_newer_keywords
def call_tir(
    gvar: Any,
    args: Any,
    out_sinfo: Any = None,
    tir_vars: Any = None,
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
    op = _CALL_TIR
    if isinstance(gvar, (str, ExternFunc)):
        op, gvar = _CALL_DPS_PACKED, ExternFunc(gvar) if isinstance(gvar, str) else gvar
    elif not isinstance(gvar, (GlobalVar, Expr)):
        raise DTypeError(f"{op.name}: calls a function by its GlobalVar or name, not {gvar!r}")
    last = () if tir_vars is None else (_shape(tir_vars),)
    info = written(op, out_sinfo, dtype)
    return Call(op, (gvar, argument_tuple(args), *last), None, (info,))


@takes_newer_keywords
def call_dps_packed(
    func: Any, args: Any, out_sinfo: Any = None, *, dtype: str | Sequence[str] | None = None
) -> Call:
    """A call of an external function that takes its results, newly allocated, as last arguments.

    `out_sinfo` is as in `call_tir`.
    """
    func = ExternFunc(func) if isinstance(func, str) else func
    info = written(_CALL_DPS_PACKED, out_sinfo, dtype)
    return Call(_CALL_DPS_PACKED, (func, argument_tuple(args)), None, (info,))


def argument_tuple(args: Any) -> Any:
    """Arguments as a tuple; one stands for a tuple of one."""
    if isinstance(args, (Tuple, tuple, list)):
        return convert_to_expr(args)
    args = convert_to_expr(args)
    info = getattr(args, "struct_info", None)
    return args if isinstance(info, TupleStructInfo) else Tuple((args,))


def written(op: Op, info: Any, dtype: str | Sequence[str] | None) -> StructInfo:
    """What a call writes, as a struct info, from the forms in which it may be given."""
    if isinstance(info, (TensorStructInfo, TupleStructInfo)):
        return info
    if isinstance(info, (list, tuple)) and info and isinstance(info[0], StructInfo):
        return TupleStructInfo(info)
    if dtype is None or not isinstance(info, (list, tuple, ShapeExpr)):
        raise DTypeError(
            f'{op.name}: say what the call writes: out_sinfo=R.Tensor((n, m), "float32"), or the '
            "shape (n, m) and dtype="
        )
    if info and isinstance(info, (list, tuple)) and isinstance(info[0], (list, tuple, ShapeExpr)):
        types = [dtype] * len(info) if isinstance(dtype, str) else list(dtype)
        pairs = zip(info, types, strict=True)
        return TupleStructInfo([TensorStructInfo(shape, t) for shape, t in pairs])
    return TensorStructInfo(info, str(dtype))


def _shape(values: Any) -> Any:
    return values if isinstance(values, Expr) else ShapeExpr(values)


def given_sinfo_args(given: Any) -> tuple[StructInfo, ...]:
    """Struct infos as a call has them, from none, one or several."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


@takes_newer_keywords
def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> Call:
    """A call of an external function that returns a value of the struct info `sinfo_args`. It may
    have side effects."""
    func = ExternFunc(func) if isinstance(func, str) else func
    kept = Attrs(attrs) if attrs else None
    return Call(func, [convert_to_expr(arg) for arg in args], kept, given_sinfo_args(sinfo_args))


@takes_newer_keywords
def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> Call:
    """A call of an external function without side effects."""
    func = ExternFunc(func) if isinstance(func, str) else func
    kept = Attrs(attrs) if attrs else None
    arguments = [convert_to_expr(arg) for arg in (func, *args)]
    return Call(_CALL_PURE_PACKED, arguments, kept, given_sinfo_args(sinfo_args))


_WITH_CTX = register("relax.call_builtin_with_ctx", ("func", "args"), infer_sinfo_args, pure=False)


@takes_newer_keywords
def call_builtin_with_ctx(func: Any, args: Any, *, sinfo_args: Any = None) -> Call:
    """A call of a builtin of TVM's virtual machine, which gets the machine as well."""
    func = ExternFunc(func) if isinstance(func, str) else func
    return Call(_WITH_CTX, [func, argument_tuple(args)], None, given_sinfo_args(sinfo_args))


_NULL_VALUE = register("relax.null_value", (), lambda call, context: ObjectStructInfo())
_PRINT = register(
    "relax.print", ("format", "values"), lambda call, context: TupleStructInfo(()), pure=False
)


def _infer_assert(call: Call, context: Any) -> StructInfo:
    info = context.struct_info(call.args[0])
    scalar = isinstance(info, TensorStructInfo) and info.ndim in (0, -1)
    if not (scalar or isinstance(info, PrimStructInfo)) or info.dtype not in ("bool", "", None):
        raise infer.dtype_error(call, f"condition must be a bool, but it is {info}")
    return TupleStructInfo(())


_ASSERT = register("relax.assert_op", ("condition", "format"), _infer_assert, pure=False)


def assert_op(condition: Any, format_args: Any = None, format: str | StringImm = "") -> Call:
    """Stop the program with an AssertionError unless `condition` holds, a bool, when it runs.

    `format` and `format_args` make its message, as Python's `format` does.
    """
    if format_args is None:
        format_args = ()
    values = format_args if isinstance(format_args, (list, tuple)) else (format_args,)
    return Call(_ASSERT, [convert_to_expr(value) for value in (condition, format, *values)])


def null_value() -> Call:
    """An object that is nothing."""
    return Call(_NULL_VALUE, ())


def print(*values: Any, format: str | StringImm = "") -> Call:
    """Print values when the program runs, in the form that `format` gives to Python's `format`."""
    return Call(_PRINT, [convert_to_expr(value) for value in (format, *values)])


def _infer_shape_of(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return ShapeStructInfo(info.values, info.ndim)


_SHAPE_OF = register("relax.shape_of", ("expr",), _infer_shape_of)


def shape_of(expr: Any) -> Call:
    """The shape of a tensor."""
    return Call(_SHAPE_OF, (expr,))


def _infer_shape_to_tensor(call: Call, context: Any) -> StructInfo:
    info = infer.shape(call, 0, context)
    return TensorStructInfo(None if info.ndim == -1 else [info.ndim], "int64", ndim=1)


_SHAPE_TO_TENSOR = register("relax.shape_to_tensor", ("input",), _infer_shape_to_tensor)


def shape_to_tensor(expr: Any) -> Call:
    """A shape as a vector of int64."""
    return call(_SHAPE_TO_TENSOR, expr)


def _infer_tensor_to_shape(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_rank(call, 0, info, 1, "a vector of int64")
    if info.dtype not in ("", "int64"):
        raise infer.dtype_error(call, f"input must be int64, not {info.dtype}")
    length = None if info.values is None else getattr(info.values[0], "value", None)
    return ShapeStructInfo(None, -1 if length is None else length)


_TENSOR_TO_SHAPE = register("relax.tensor_to_shape", ("input",), _infer_tensor_to_shape)


def tensor_to_shape(expr: Any) -> Call:
    """A vector of int64 as a shape."""
    return call(_TENSOR_TO_SHAPE, expr)


def _infer_count(call: Call, context: Any) -> StructInfo:
    infer.tensor(call, 0, context)
    return TensorStructInfo((), "int64")


_SIZE = register("relax.size", ("expr",), _infer_count)


def size(expr: Any) -> Call:
    """The number of elements of a tensor, as a tensor."""
    return call(_SIZE, expr)


def _infer_size(call: Call, context: Any) -> StructInfo:
    info, axis = infer.tensor(call, 0, context), call.args[1].value
    if info.values is None or not hasattr(axis, "value"):
        return PrimStructInfo("int64")
    return PrimStructInfo(value=info.values[infer.normalized_axis(call, axis.value, info.ndim)])


_TENSOR_SIZE = register("relax.inspect.tensor_shape_i", ("tensor", "axis"), _infer_size)


def tensor_shape_i(tensor: Any, axis: int | PrimExpr) -> Call:
    """One extent of a tensor."""
    return Call(_TENSOR_SIZE, (tensor, convert_to_expr(axis)))
