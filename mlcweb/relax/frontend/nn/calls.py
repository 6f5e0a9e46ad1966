"""Calls of functions of the user in a model that is traced: tensor expressions, functions of
TensorIR, and functions of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.emit_te import Formula
from mlcweb.relax.frontend.nn.tensor import Tensor, Wrapped, builder, wrap_nested
from mlcweb.relax.op.inplace import call_tir_inplace
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.function import PrimFunc

Argument: TypeAlias = "Tensor | E.ShapeExpr | PrimExpr | int"
Out: TypeAlias = "Tensor | Sequence[Out]"
"""What a call gives: placeholders, `nn.Tensor.placeholder((n, m), "float32")`."""


def tensor_expr_op(
    tensor_expr_func: Formula,
    name_hint: str,
    args: Sequence[object],
    *,
    attrs: dict[str, object] | None = None,
) -> Wrapped:
    """What a function of tensor expressions gives for tensors and numbers."""
    call = builder().call_te(
        tensor_expr_func,
        *[_unwrapped(arg) for arg in args],
        primfunc_name_hint=name_hint,
        primfunc_attrs=attrs,
    )
    return wrap_nested(call, name_hint)


def _unwrapped(arg: object) -> object:
    if isinstance(arg, Tensor):
        return arg._expr
    return [_unwrapped(each) for each in arg] if isinstance(arg, (list, tuple)) else arg


def _split(
    name: str, args: Argument | Sequence[Argument]
) -> tuple[list[E.Expr], E.ShapeExpr | None]:
    """The tensors among arguments, and the integers after them."""
    tensors: list[E.Expr] = []
    numbers: list[int | PrimExpr] = []
    for arg in args if isinstance(args, (list, tuple)) else [args]:
        if isinstance(arg, Tensor):
            if numbers:
                raise TypeError(f"{name}: tensors come before numbers")
            tensors.append(arg._expr)
        elif isinstance(arg, E.ShapeExpr):
            numbers.extend(arg.values)
        elif isinstance(arg, (int, PrimExpr)):
            numbers.append(arg)
        else:
            raise TypeError(f"{name} takes tensors and integers, not {arg!r}")
    return tensors, E.ShapeExpr(numbers) if numbers else None


def tensor_ir_op(
    func: PrimFunc, name_hint: str, args: Argument | Sequence[Argument], out: Out
) -> Wrapped:
    """What a function of TensorIR writes into new tensors, which `out` describes."""
    tensors, numbers = _split(name_hint, args)
    target = builder().add_func(func, name_hint)
    return wrap_nested(R.call_tir(target, E.Tuple(tensors), _info(out), numbers), name_hint)


def tensor_ir_inplace_op(
    func: PrimFunc,
    name_hint: str,
    args: Argument | Sequence[Argument],
    inplace_indices: int | list[int],
    out: Out,
) -> Wrapped:
    """What a function of TensorIR writes into some of its inputs; -1 is a new tensor."""
    tensors, numbers = _split(name_hint, args)
    target = builder().add_func(func, name_hint)
    places = [inplace_indices] if isinstance(inplace_indices, int) else inplace_indices
    call = call_tir_inplace(target, E.Tuple(tensors), places, _info(out), numbers)
    return wrap_nested(call, name_hint)


def extern(name: str, args: Sequence[Argument], out: Out) -> Wrapped:
    """What a registered function writes into new tensors, which `out` describes."""
    values = cast("list[E.ExprLike]", _unwrapped(list(args)))
    return wrap_nested(R.call_dps_packed(name, values, _info(out)), name)


def _info(out: Out) -> StructInfo:
    if isinstance(out, Tensor):
        return out.struct_info
    infos = list(map(_info, out))
    return TupleStructInfo(infos) if len(infos) != 1 else infos[0]
