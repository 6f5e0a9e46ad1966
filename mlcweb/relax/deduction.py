"""Deducing the struct info of expressions from their parts.

What is known of the functions of a module comes from a context; without one, calls of a GlobalVar
give an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mlcweb.analysis import is_pure_function
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import (
    derive_call_ret_struct_info,
    erase,
    is_base_of,
    struct_info_lca,
)
from mlcweb.relax.errors import DTypeError
from mlcweb.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.function import PrimFunc

Lookup = Callable[[GlobalVar], "StructInfo | None"]
"""What is known of a function of the module."""

Bound = Callable[[E.Var], "E.Value | None"]
"""The value that a variable is bound to."""


class Context:
    """Where an expression stands: what is known of the functions that it may call, and of the
    values that its variables are bound to."""

    def __init__(self, lookup: Lookup | None = None, bound: Bound | None = None) -> None:
        self._lookup = lookup
        self._bound = bound

    def value(self, expr: E.RelaxExpr) -> E.RelaxExpr:
        """The expression, or of a variable, if it is known, the value that it is bound to."""
        while isinstance(expr, E.Var) and self._bound and (value := self._bound(expr)) is not None:
            expr = value
        return expr

    def struct_info(self, value: E.RelaxExpr) -> StructInfo:
        """The struct info of an expression or of a function of the module."""
        if isinstance(value, GlobalVar):
            info = self._lookup(value) if self._lookup else None
            return info or value.struct_info or FuncStructInfo.opaque_func(purity=True)
        if not isinstance(value, E.Expr):
            raise DTypeError(f"{value} is not a value: call it, or pass what it gives")
        if value.struct_info is None:
            raise DiagnosticError(
                f"Nothing is known of the variable {value}: give it a struct info"
            )
        return value.struct_info

    def call(self, call: E.Call) -> StructInfo:
        """What a call gives."""
        if isinstance(call.op, Op):
            infer = call.op.get_attr("FInferStructInfo")
            if infer is None:
                raise DiagnosticError(f"It is not known what {call.op.name} gives")
            return self._with_device(call, infer(call, self))
        if isinstance(call.op, E.ExternFunc):
            return of_sinfo_args(call)
        info = self.struct_info(call.op)
        if isinstance(info, ObjectStructInfo):
            return info
        if not isinstance(info, FuncStructInfo):
            raise DTypeError(f"{call.op} is no function but a {info}")
        return derive_call_ret_struct_info(info, call, self)

    def _with_device(self, call: E.Call, info: StructInfo) -> StructInfo:
        """What an operator gives, on the virtual device of its arguments where all that have one
        have the same."""
        if call.sinfo_args:
            return info
        infos = [self.struct_info(arg) for arg in call.args if isinstance(arg, E.Expr)]
        devices = {device for each in infos for device in devices_of(each)}
        if len(devices) != 1 or any(info is each for each in infos):
            return info
        return on_device(info, devices.pop())


def devices_of(info: StructInfo) -> Iterator[object]:
    """The virtual devices of a tensor, or of those in a tuple."""
    if isinstance(info, TensorStructInfo) and info.vdevice is not None:
        yield info.vdevice
    elif isinstance(info, TupleStructInfo):
        for field in info.fields:
            yield from devices_of(field)


def on_device(info: StructInfo, device: object) -> StructInfo:
    """What is known of a value with its tensors on a virtual device, but those that have one."""
    if isinstance(info, TensorStructInfo):
        return info if info.vdevice is not None else replace(info, vdevice=device)
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([on_device(field, device) for field in info.fields])
    return info


def function_struct_info(func: BaseFunc) -> StructInfo | None:
    """What is known of a function of a module; None for functions of TensorIR, but those that
    compute a number from numbers."""
    if isinstance(func, PrimFunc) and func.ret_type and func.returned is not None:
        params = [PrimStructInfo(dtype=param.dtype) for param in func.params]
        return FuncStructInfo(params, PrimStructInfo(dtype=func.ret_type))
    return func.struct_info if isinstance(func, (E.Function, E.ExternFunc)) else None


def prim_func_struct_info(func: PrimFunc) -> FuncStructInfo:
    """What is known of a function of TensorIR as a value: its buffers are tensors, and it is pure
    unless it stores in one of them."""

    def info_of(param: PrimVar) -> StructInfo:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            return TensorStructInfo([cast("int64", n) for n in buffer.shape], buffer.dtype)
        is_number = param.dtype != "handle"
        return PrimStructInfo(dtype=param.dtype) if is_number else ObjectStructInfo()

    ret = PrimStructInfo(dtype=func.ret_type) if func.ret_type else TupleStructInfo([])
    return FuncStructInfo([info_of(param) for param in func.params], ret, is_pure_function(func))


def of_sinfo_args(call: E.Call) -> StructInfo:
    """What a call says itself that it gives."""
    if not call.sinfo_args:
        return ObjectStructInfo()
    return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)


def _tuple(value: E.Tuple) -> StructInfo:
    context = Context()
    return TupleStructInfo([context.struct_info(item) for item in value.fields])


def _field(value: E.TupleGetItem) -> StructInfo:
    info = Context().struct_info(value.tuple_value)
    if isinstance(info, ObjectStructInfo):
        return info
    if not isinstance(info, TupleStructInfo):
        raise DTypeError(f"{value.tuple_value} has no fields: it is a {info}")
    if not 0 <= value.index < len(info.fields):
        raise DTypeError(f"{value.tuple_value} has {len(info.fields)} field(s), no {value.index}")
    return info.fields[value.index]


def seq_struct_info(seq: E.SeqExpr) -> StructInfo:
    """What a sequence gives, without the variables that it defines itself."""
    info = Context().struct_info(seq.body)
    inside: set[E.Var | PrimVar] = set()
    for block in seq.blocks:
        for binding in block.bindings:
            inside.add(binding.var)
            if isinstance(binding, E.MatchCast):
                inside.update(dims.prim_vars(binding.struct_info))
    return erase(info, lambda var: var not in inside, lambda var: var not in inside)


def result_struct_info(params: Sequence[E.Var], body: E.SeqExpr) -> StructInfo:
    """What a function gives, in terms of its parameters alone."""
    info = Context().struct_info(body.body)
    symbols = {var for p in params if p.struct_info for var in dims.prim_vars(p.struct_info)}
    return erase(info, lambda var: var in symbols, lambda var: any(var is p for p in params))


def with_known_result(func: E.Function) -> E.Function:
    """`func` with the result that its body gives, where that says more than what is declared."""
    body = result_struct_info(func.params, func.body)
    more = body != func.ret_struct_info and is_base_of(func.ret_struct_info, body)
    return replace(func, ret_struct_info=body) if more else func


def _branches(value: E.If) -> StructInfo:
    return struct_info_lca(value.true_branch.struct_info, value.false_branch.struct_info)


E.STRUCT_INFO.update({
    E.Call: lambda call: Context().call(call),
    E.Tuple: _tuple,
    E.TupleGetItem: _field,
    E.ShapeExpr: lambda shape: ShapeStructInfo(shape.values),
    E.PrimValue: lambda value: PrimStructInfo(value=value.value),
    E.StringImm: lambda value: ObjectStructInfo(),
    E.DataTypeImm: lambda value: ObjectStructInfo(),
    E.SeqExpr: seq_struct_info,
    E.If: _branches,
    E.Function: lambda func: result_struct_info(func.params, func.body),
})  # fmt: skip
