"""FuseTIR: one function of TensorIR for each function of fused calls.

What the calls hand to each other becomes memory inside of the new function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import on
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import NameSupply
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.op.base import call_tir
from mlcweb.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.relax.transform.canonicalize import canonicalize
from mlcweb.relax.transform.dead_code import eliminate_dead_code
from mlcweb.relax.transform.registration import called_tir, is_primitive, map_functions, pass_of
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import Buffer, BufferRegion, decl_buffer
from mlcweb.tir.expr import PointerType, PrimExpr
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize, Stmt, sequence

_OWN_ATTRS = ("Primitive", "global_symbol")
"""Attributes of a function of fused calls that are not for the function of TensorIR."""


def FuseTIR() -> Pass:
    """Make one function of TensorIR of each function with the attribute "Primitive" whose body
    calls functions of TensorIR, and call that instead. Functions that nothing calls any more, and
    bindings that only rename, are dropped."""
    return pass_of("FuseTIR", fuse_tir)


def fuse_tir(mod: IRModule) -> IRModule:
    mod = canonicalize(mod)
    fused: dict[GlobalVar, FusedFunction] = {}
    for var, func in mod.functions.items():
        if isinstance(func, E.Function) and func.attrs.get("Primitive"):
            new = fused_function(mod, func)
            if new is not None:
                fused[var] = new
    if fused:
        calls = _CallsOfFused(mod, {var: new.used for var, new in fused.items()})

        def change(var: GlobalVar, func: E.Function) -> E.Function:
            return func if var in fused or is_primitive(func) else calls.visit_expr(func)

        mod = map_functions(mod, change)
        functions = {var: new.func for var, new in fused.items()}
        mod = mod.with_functions({**mod.functions, **functions})
    return eliminate_dead_code(mod)


@dataclass(slots=True)
class FusedFunction:
    """A function of TensorIR, and which of the tensors and extents that are passed it takes."""

    func: PrimFunc
    used: list[bool]


Content: TypeAlias = "Buffer | list[PrimExpr] | tuple[Content, ...]"
"""What a value is in terms of TensorIR: a buffer, the extents of a shape, or a tuple of these."""


@dataclass(slots=True)
class _Parts:
    """The function being put together."""

    params: list[PrimVar] = field(default_factory=list)
    buffer_map: dict[PrimVar, Buffer] = field(default_factory=dict)
    allocated: list[Buffer] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    block_names: NameSupply = field(default_factory=NameSupply)
    values: dict[E.Var, Content] = field(default_factory=dict)
    """What each variable is."""
    read: set[Buffer] = field(default_factory=set)
    """The buffers that calls read."""

    def add_parameter(self, buffer: Buffer) -> None:
        handle = PrimVar(buffer.name, "handle")
        self.params.append(handle)
        self.buffer_map[handle] = buffer

    def keep_parameters(self, keep: Sequence[bool]) -> None:
        """Drop the parameters so far that are not to be kept."""
        self.params = [param for param, kept in zip(self.params, keep, strict=True) if kept]
        self.buffer_map = {param: self.buffer_map[param] for param in self.params}


def fused_function(mod: IRModule, func: E.Function) -> FusedFunction | None:
    """The function of TensorIR that does what a function of calls does; None where its body is
    anything else than such calls."""
    bindings = [binding for block in func.body.blocks for binding in block.bindings]
    calls = {b.var: _callee(mod, b) for b in bindings if isinstance(b.value, E.Call)}
    if not calls or None in calls.values() or not all(map(_is_plain, bindings)):
        return None
    parts = _Parts()
    scalars: list[PrimVar] = []
    for param in func.params:
        parts.values[param] = _parameter(param.struct_info, param.name_hint, parts, scalars)
    inputs = list(parts.buffer_map.values())
    for binding in bindings:
        value = binding.value
        parts.values[binding.var] = (
            _inline(calls[binding.var], value, parts)
            if isinstance(value, E.Call)
            else _value(value, parts)
        )
    results = list(_buffers(_value(func.body.body, parts)))
    if len(set(results)) < len(results) or set(inputs) & set(results):
        return None  # a result that is an argument, or two in one, would need copying
    used = [buffer in parts.read for buffer in inputs]
    parts.keep_parameters(used)
    for buffer in results:
        parts.add_parameter(buffer)
    return FusedFunction(_assembled(parts, results, scalars, func), used)


def _is_plain(binding: E.Binding) -> bool:
    kinds = (E.Call, E.Tuple, E.TupleGetItem, E.Var, E.DataflowVar)
    return isinstance(binding, E.VarBinding) and isinstance(binding.value, kinds)


def _callee(mod: IRModule, binding: E.Binding) -> PrimFunc | None:
    func = called_tir(mod, binding.value)
    return None if func is None or func.root_block is None else func


def _parameter(info: StructInfo, name: str, parts: _Parts, scalars: list[PrimVar]) -> Content:
    if isinstance(info, TensorStructInfo):
        if info.values is None:
            raise DiagnosticError(f"FuseTIR: the shape of the parameter {name} is not known")
        buffer = decl_buffer(info.values, info.dtype, name)
        parts.add_parameter(buffer)
        return buffer
    if isinstance(info, TupleStructInfo):
        fields = enumerate(info.fields)
        return tuple(_parameter(part, f"{name}_{i}", parts, scalars) for i, part in fields)
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        scalars.extend(value for value in info.values if isinstance(value, PrimVar))
        return list(info.values)
    if isinstance(info, PrimStructInfo) and info.value is not None:
        if isinstance(info.value, PrimVar):
            scalars.append(info.value)
        return [info.value]
    raise DiagnosticError(f"FuseTIR: the parameter {name} of a fused function is a {info}")


def _value(value: E.RelaxExpr, parts: _Parts) -> Content:
    """What an argument is in terms of buffers."""
    if isinstance(value, E.Var):
        return parts.values[value]
    if isinstance(value, E.Tuple):
        return tuple(_value(item, parts) for item in value.fields)
    if isinstance(value, E.TupleGetItem):
        whole = _value(value.tuple_value, parts)
        assert isinstance(whole, tuple)
        return whole[value.index]
    if isinstance(value, E.ShapeExpr):
        return list(value.values)
    if isinstance(value, E.PrimValue):
        return [value.value]
    raise DiagnosticError(f"FuseTIR: {value} cannot be an argument inside of a fused function")


def _buffers(value: Content) -> Iterator[Buffer]:
    if isinstance(value, Buffer):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _buffers(item)


def _tensors(info: StructInfo) -> list[TensorStructInfo]:
    parts = info.fields if isinstance(info, TupleStructInfo) else (info,)
    return [part for part in parts if isinstance(part, TensorStructInfo)]


def _scalars(value: Content) -> Iterator[PrimExpr]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, tuple):
        for item in value:
            yield from _scalars(item)


def distinct(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    """The regions without those that are there before: two parameters may become one buffer."""
    result: list[BufferRegion] = []
    for region in regions:
        same_buffer = [other for other in result if other.buffer is region.buffer]
        if not any(structural_equal(other.region, region.region) for other in same_buffer):
            result.append(region)
    return tuple(result)


class _Copy(FreshCopy):
    """A copy of a function's body with some buffers, and symbolic extents, replaced."""

    def __init__(self, names: NameSupply) -> None:
        super().__init__()
        self._variables: dict[PrimVar, Any] = {}
        self.names = names

    def give(self, buffer: Buffer, actual: Buffer) -> None:
        """Let a parameter's buffer be another; its symbolic extents are those of the other."""
        self._buffers[buffer] = actual
        self._variables[buffer.data] = actual.data
        for extent, value in zip(buffer.shape, actual.shape, strict=True):
            if isinstance(extent, PrimVar):
                self.set(extent, value)

    def set(self, var: PrimVar, value: PrimExpr) -> None:
        self._variables.setdefault(var, cast(var.dtype, value))

    @on(Block)
    def block(self, node: Block) -> Block:
        name = self.names.fresh(node.name_hint)
        new = FreshCopy.block(self, node)
        return replace(new, name_hint=name, reads=distinct(new.reads), writes=distinct(new.writes))

    def intermediate(self, buffer: Buffer, info: TensorStructInfo) -> Buffer:
        """Memory for what a call writes, of the shape that the call says."""
        shape = info.values or [dims.simplify(self.rewrite(extent)) for extent in buffer.shape]
        name = f"{buffer.name}_intermediate"
        data = PrimVar(name, "handle", PointerType(buffer.dtype, buffer.scope()))
        new = replace(buffer, data=data, shape=tuple(shape), name=name)
        self.give(buffer, new)
        return new


def _inline(func: PrimFunc | None, call: E.Call, parts: _Parts) -> Content:
    """Add the body of a called function; what the call gives comes back."""
    assert func is not None and func.root_block is not None
    arguments = [_value(argument, parts) for argument in call.args[1:]]
    inputs = list(_buffers(tuple(arguments)))
    parts.read.update(inputs)
    own = list(func.parameter_buffers)
    copy = _Copy(parts.block_names)
    for buffer, actual in zip(own, inputs, strict=False):
        copy.give(buffer, actual)
    scalars = [param for param in func.params if param not in func.buffer_map]
    for param, value in zip(scalars, _scalars(tuple(arguments)), strict=True):
        copy.set(param, value)
    root = func.root_block
    inner = [copy.buffer(buffer) for buffer in root.alloc_buffers]
    outputs = [
        copy.intermediate(buffer, info)
        for buffer, info in zip(own[len(inputs) :], _tensors(call.struct_info), strict=True)
    ]
    parts.allocated.extend([*inner, *outputs])
    parts.body.append(copy.rewrite(root.body))
    return outputs[0] if isinstance(call.struct_info, TensorStructInfo) else tuple(outputs)


def _assembled(
    parts: _Parts, results: Sequence[Buffer], scalars: Sequence[PrimVar], func: E.Function
) -> PrimFunc:
    inside = tuple(buffer for buffer in parts.allocated if buffer not in results)
    root = Block((), (), (), "root", sequence(*parts.body), alloc_buffers=inside)
    attrs = {key: value for key, value in func.attrs.items() if key not in _OWN_ATTRS}
    return PrimFunc(
        (*parts.params, *scalars),
        BlockRealize((), const(True), root),
        None,
        parts.buffer_map,
        attrs={**attrs, "tir.noalias": True},
    )


class _CallsOfFused(PyExprMutator):
    """Calls the new functions of TensorIR where the functions that they stand for were called."""

    def __init__(self, mod: IRModule, used: dict[GlobalVar, list[bool]]) -> None:
        super().__init__(mod)
        self.functions = mod.functions
        self.used = used

    def visit_call_(self, call: E.Call) -> E.Expr:
        call = self.visit_expr_post_order(call)
        if not (isinstance(call.op, GlobalVar) and call.op in self.used):
            return call
        tensors: list[E.RelaxExpr] = []
        scalars: list[PrimExpr] = []
        func = self.functions[call.op]
        assert isinstance(func, E.Function)
        for argument, param in zip(call.args, func.params, strict=True):
            for value in self.parts(argument, param.struct_info):
                if isinstance(value, PrimExpr):
                    scalars.append(value)
                else:
                    tensors.append(value)
        info = self.builder_.context.call(call)
        needed = [value for value, used in zip(tensors, self.used[call.op], strict=True) if used]
        return call_tir(call.op, E.Tuple(needed), info, scalars or None)

    def parts(self, value: E.RelaxExpr, info: StructInfo) -> Iterator[E.RelaxExpr | PrimExpr]:
        """The tensors in an argument for a parameter of a struct info, and the extents for its
        symbolic ones."""
        bound = self.bound_value(value)
        if isinstance(bound, E.Tuple):
            value = bound
        if isinstance(info, TupleStructInfo):
            for index, part in enumerate(info.fields):
                if isinstance(value, E.Tuple):
                    yield from self.parts(value.fields[index], part)
                elif isinstance(value, E.Expr):
                    yield from self.parts(self.builder_.emit(E.TupleGetItem(value, index)), part)
            return
        actual = value.struct_info if isinstance(value, E.Expr) else None
        if isinstance(info, ShapeStructInfo) and isinstance(actual, ShapeStructInfo):
            for expected, extent in zip(info.values or (), actual.values or (), strict=True):
                if isinstance(expected, PrimVar):
                    yield extent
        elif isinstance(info, PrimStructInfo) and isinstance(actual, PrimStructInfo):
            if isinstance(info.value, PrimVar) and actual.value is not None:
                yield actual.value
        else:
            yield value
