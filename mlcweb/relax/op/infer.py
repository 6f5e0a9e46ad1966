"""Parts of which deductions are made: reading arguments, broadcasting, and complaining."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax.deduction import Context, of_sinfo_args
from mlcweb.relax.errors import DTypeError, ShapeError
from mlcweb.relax.expr import Call, DataTypeImm, Expr, RelaxExpr, ShapeExpr, Var
from mlcweb.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.tir.expr import IntImm, PrimExpr


def op_of(call: Call) -> Op:
    """The operator that a call calls."""
    assert isinstance(call.op, Op)
    return call.op


def argument_name(call: Call, index: int) -> str:
    names = op_of(call).arguments
    return names[index] if index < len(names) else f"argument {index}"


def shape_error(call: Call, message: str) -> ShapeError:
    """An error about shapes in a call."""
    return ShapeError(f"{op_of(call).name}: {message}")


def dtype_error(call: Call, message: str) -> DTypeError:
    """An error about element types or kinds of arguments in a call."""
    return DTypeError(f"{op_of(call).name}: {message}")


def tensor(call: Call, index: int, context: Context) -> TensorStructInfo:
    """The struct info of an argument that must be a tensor."""
    if index >= len(call.args):
        raise dtype_error(call, f"the argument {argument_name(call, index)} is missing")
    info = context.struct_info(call.args[index])
    if not isinstance(info, TensorStructInfo):
        raise dtype_error(
            call, f"{argument_name(call, index)} must be a tensor, but {call.args[index]} is {info}"
        )
    return info


def tensors(call: Call, context: Context, count: int | None = None) -> list[TensorStructInfo]:
    """The struct infos of the first `count` (default: all) arguments, which must be tensors."""
    names = op_of(call).arguments
    if len(call.args) != len(names):
        expected = f"{', '.join(names)} ({len(names)})"
        raise dtype_error(call, f"takes the arguments {expected}; {len(call.args)} are given")
    return [tensor(call, index, context) for index in range(len(names) if count is None else count)]


def operands(call: Call, context: Context) -> list[TensorStructInfo]:
    """The struct infos of all arguments: tensors, and numbers beside them, which are tensors
    without dimensions."""
    infos = [context.struct_info(arg) for arg in call.args]
    if len(infos) != len(op_of(call).arguments) or not any(
        isinstance(info, TensorStructInfo) for info in infos
    ):
        return tensors(call, context)
    return [
        TensorStructInfo((), info.dtype)
        if isinstance(info, PrimStructInfo)
        else tensor(call, index, context)
        for index, info in enumerate(infos)
    ]


def numbers(call: Call, context: Context) -> list[str]:
    """The types of two arguments that both are numbers; none of other arguments."""
    infos = [context.struct_info(arg) for arg in call.args]
    dtypes = [info.dtype for info in infos if isinstance(info, PrimStructInfo)]
    return dtypes if len(dtypes) == len(infos) == len(op_of(call).arguments) == 2 else []


def tensors_of_tuple(call: Call, index: int, context: Context) -> list[TensorStructInfo]:
    """The struct infos of an argument that must be a tuple of tensors, at least one."""
    info = context.struct_info(call.args[index])
    name = argument_name(call, index)
    if not isinstance(info, TupleStructInfo):
        raise dtype_error(call, f"{name} must be a tuple of tensors, but it is {info}")
    if not info.fields:
        raise dtype_error(call, f"{name} is an empty tuple; at least one tensor is needed")
    tensors: list[TensorStructInfo] = []
    for number, field in enumerate(info.fields):
        if not isinstance(field, TensorStructInfo):
            raise dtype_error(call, f"{name}[{number}] must be a tensor, but it is {field}")
        tensors.append(field)
    return tensors


def shape(call: Call, index: int, context: Context) -> ShapeStructInfo:
    """The struct info of an argument that must be a shape."""
    info = context.struct_info(call.args[index])
    if not isinstance(info, ShapeStructInfo):
        raise dtype_error(call, f"{argument_name(call, index)} must be a shape, but it is {info}")
    return info


def of_shape(call: Call, index: int, context: Context, dtype: str) -> TensorStructInfo:
    """A tensor of the shape that an argument is."""
    info, value = shape(call, index, context), call.args[index]
    if isinstance(value, ShapeExpr) or (isinstance(value, Var) and info.values is None):
        return TensorStructInfo(value, dtype)
    return TensorStructInfo(info.values, dtype, ndim=info.ndim)


def scalar(call: Call, index: int, context: Context) -> PrimStructInfo:
    """The struct info of an argument that must be a number."""
    info = context.struct_info(call.args[index])
    if not isinstance(info, PrimStructInfo):
        raise dtype_error(call, f"{argument_name(call, index)} must be a number, but it is {info}")
    return info


def attribute(call: Call, name: str) -> Any:
    """The value of an attribute of a call."""
    if call.attrs is None:
        raise dtype_error(call, f"the attribute {name} is missing")
    return call.attrs[name]


def info_of(value: RelaxExpr) -> TensorStructInfo:
    """The struct info of a tensor."""
    info = value.struct_info if isinstance(value, Expr) else None
    assert isinstance(info, TensorStructInfo)
    return info


def shape_of(value: RelaxExpr) -> tuple[PrimExpr, ...]:
    """The extents of a tensor of known shape."""
    values = info_of(value).known_values
    assert values is not None
    return tuple(values)


def dtype_or(call: Call, other: str, name: str = "dtype") -> str:
    """The element type that the attribute `name` gives; `other` where it gives none."""
    dtype = attribute(call, name)
    return other if dtype in ("", "void", None) else dtype


def need_float(call: Call, index: int, info: TensorStructInfo) -> None:
    """Refuses a tensor whose elements are known not to be floats."""
    if info.dtype and not info.dtype.startswith(("float", "bfloat")):
        raise dtype_error(call, f"{argument_name(call, index)} must be float, not {info.dtype}")


def need_integer(call: Call, index: int, info: TensorStructInfo) -> None:
    """Refuses a tensor whose elements are known not to be integers."""
    if info.dtype and not info.dtype.startswith(("int", "uint")):
        raise dtype_error(
            call, f"{argument_name(call, index)} must be of integers, not {info.dtype}"
        )


def need_rank(call: Call, index: int, info: TensorStructInfo, ndim: int, layout: str) -> None:
    """Refuses a tensor known to have another number of dimensions; `layout` names them."""
    if info.ndim not in (-1, ndim):
        raise shape_error(
            call,
            f"{described(call, index, info)} must have {ndim} dimension(s), those of {layout}",
        )


def same(call: Call, context: Context) -> StructInfo:
    """The first argument's shape and element type."""
    return tensor(call, 0, context)


def same_float(call: Call, context: Context) -> StructInfo:
    """The first argument's shape and element type, which must be float."""
    info = tensor(call, 0, context)
    need_float(call, 0, info)
    return info


def object_info(call: Call, context: Context) -> StructInfo:
    """That of what is known to the virtual machine only."""
    return ObjectStructInfo()


def nothing(call: Call, context: Context) -> StructInfo:
    """That of a call which is made for its effect."""
    return TupleStructInfo(())


def sinfo_args(call: Call, context: Context) -> StructInfo:
    """What a call says itself that it gives."""
    return of_sinfo_args(call)


def allocated(call: Call, context: Context) -> StructInfo:
    """The tensor that a call makes, by its shape and, after it, its type among the arguments."""
    for shape, dtype in pairwise(call.args):
        if isinstance(dtype, DataTypeImm):
            if isinstance(shape, ShapeExpr):
                return TensorStructInfo(shape, dtype.value)
            info = context.struct_info(shape)
            ndim = info.ndim if isinstance(info, ShapeStructInfo) else -1
            return TensorStructInfo(None, dtype.value, ndim=ndim)
    raise dtype_error(call, "it needs the type of the tensor, such as R.dtype('float32')")


def text(extent: PrimExpr) -> str:
    """An extent for messages."""
    return dims.extent_text(str(extent))


def described(call: Call, index: int, info: TensorStructInfo) -> str:
    """An argument for messages: `x1 of shape (2, 3)`."""
    values = info.known_values
    text = dims.shape_text(values, info.ndim)
    return f"{argument_name(call, index)} {text if values is None else f'of shape {text}'}"


def common_dtype(call: Call, infos: Sequence[TensorStructInfo | str]) -> str:
    """The element type that all arguments have, or "" where one is unknown."""
    dtypes = [info if isinstance(info, str) else info.dtype for info in infos]
    distinct = set(dtypes)
    if "" in distinct:
        return ""
    if len(distinct) > 1:
        listed = ", ".join(
            f"{argument_name(call, index)} {dtype}" for index, dtype in enumerate(dtypes)
        )
        raise dtype_error(call, f"the arguments must have one element type; they have: {listed}")
    return distinct.pop()


def elementwise(call: Call, context: Context) -> StructInfo:
    """One tensor, or several that are broadcast: the result has their element type. Of numbers
    alone it is a number."""
    dtypes = numbers(call, context)
    if dtypes:
        return PrimStructInfo(common_dtype(call, dtypes))
    infos = operands(call, context)
    return infos[0] if len(infos) == 1 else broadcast(call, infos, common_dtype(call, infos))


def elementwise_float(call: Call, context: Context) -> StructInfo:
    """As `elementwise`, for functions that only floats have."""
    if numbers(call, context):
        return elementwise(call, context)
    infos = operands(call, context)
    for index, info in enumerate(infos):
        need_float(call, index, info)
    return infos[0] if len(infos) == 1 else broadcast(call, infos, common_dtype(call, infos))


def predicate(call: Call, context: Context) -> StructInfo:
    """One tensor; the result is bool."""
    info = tensor(call, 0, context)
    return TensorStructInfo(info.shape, "bool", ndim=info.ndim)


def elementwise_integer(call: Call, context: Context) -> StructInfo:
    """As `elementwise`, for functions of bits: integers and bool."""
    infos = operands(call, context)
    for index, info in enumerate(infos):
        if info.dtype != "bool":
            need_integer(call, index, info)
    return infos[0] if len(infos) == 1 else broadcast(call, infos, common_dtype(call, infos))


def elementwise_bool(call: Call, context: Context) -> StructInfo:
    """As `elementwise`, for functions of truth values."""
    infos = operands(call, context)
    for index, info in enumerate(infos):
        if info.dtype not in ("", "bool"):
            raise dtype_error(call, f"{argument_name(call, index)} must be bool, not {info.dtype}")
    return infos[0] if len(infos) == 1 else broadcast(call, infos, "bool")


def comparison(call: Call, context: Context) -> StructInfo:
    """Tensors that are broadcast, or numbers: the result is bool."""
    if numbers(call, context):
        return PrimStructInfo("bool")
    return broadcast(call, operands(call, context), "bool")


def broadcast(
    call: Call, infos: Sequence[TensorStructInfo], dtype: str, *, through_variables: bool = True
) -> TensorStructInfo:
    """The tensor that the broadcast of several gives; `through_variables` looks at what is known of
    variables that stand for shapes, too."""
    if all(info.shape is not None and info.shape is infos[0].shape for info in infos):
        return TensorStructInfo(infos[0].shape, dtype)
    if any(info.ndim == -1 for info in infos):
        return TensorStructInfo(None, dtype)
    ndim = max(info.ndim for info in infos)
    seen = [info.known_values if through_variables else info.values for info in infos]
    shapes = [values for values in seen if values is not None]
    if len(shapes) < len(infos):
        return TensorStructInfo(None, dtype, ndim=ndim)
    shape: Sequence[PrimExpr] | None = shapes[0]
    for index, info in enumerate(infos[1:], start=1):
        assert shape is not None
        both = (
            f"{described(call, 0, infos[0])} and {described(call, index, info)}"
            if len(infos) == 2
            else ", ".join(described(call, i, each) for i, each in enumerate(infos))
        )
        shape = broadcast_shapes(call, shape, shapes[index], both)
        if shape is None:
            return TensorStructInfo(None, dtype, ndim=ndim)
    return TensorStructInfo(shape, dtype)


def broadcast_shapes(
    call: Call, a: Sequence[PrimExpr], b: Sequence[PrimExpr], both: str
) -> list[PrimExpr] | None:
    """The broadcast of two shapes; None where it depends on symbolic extents."""
    short, long = sorted((list(a), list(b)), key=len)
    offset = len(long) - len(short)
    result = long[:offset]
    for axis, (x, y) in enumerate(zip(short, long[offset:], strict=True), start=offset):
        if _is_one(x):
            result.append(y)
        elif _is_one(y) or dims.equal(x, y):
            result.append(x)
        elif isinstance(x, IntImm) and isinstance(y, IntImm):
            first, second = (x, y) if len(a) <= len(b) else (y, x)
            raise shape_error(
                call,
                f"{both} cannot be broadcast: {first.value} against {second.value} "
                f"on axis {axis} of the result",
            )
        else:
            return None
    return result


def _is_one(value: PrimExpr) -> bool:
    return isinstance(value, IntImm) and value.value == 1


def normalized_axis(call: Call, axis: int, ndim: int, name: str = "axis") -> int:
    """An axis counted from the front; negative ones count from the end."""
    if not -ndim <= axis < ndim:
        raise shape_error(call, f"{name} {axis} is not an axis of a tensor of {ndim} dimension(s)")
    return axis % ndim


def normalized_axes(
    call: Call, axes: Sequence[int] | int, ndim: int, name: str = "axis"
) -> list[int]:
    """Axes counted from the front, each at most once."""
    listed = [axes] if isinstance(axes, int) else list(axes)
    places = [normalized_axis(call, int(axis), ndim, name) for axis in listed]
    if len(set(places)) != len(places):
        raise shape_error(call, f"{name} {listed} names an axis twice")
    return places
