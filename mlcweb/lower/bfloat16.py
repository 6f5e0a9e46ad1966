"""The passes `BF16ComputeLegalize` and `BF16StorageLegalize`: bfloat16 computed in float32, and
kept as 16 bits in memory, for code generators that do not know the type."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on, walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import reinterpret
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import BufferMutator

BFLOAT16 = "bfloat16"
SUPPORTED_SINCE = 80
"""The first compute capability of CUDA that knows the type."""


def legalize_compute(func: PrimFunc) -> PrimFunc:
    """Compute in float32 what the program computes in bfloat16, and keep memory of constant size
    that the function allocates itself in float32, too. What is stored in other buffers is rounded
    to the nearest even. Functions for targets that know bfloat16 stay."""
    return func if _is_supported(func) else func.with_body(_Compute(func).rewrite(func.body))


def legalize_storage(func: PrimFunc) -> PrimFunc:
    """Make memory of bfloat16 memory of uint16.

    Raises:
        TVMError: a parameter is a buffer of bfloat16: callers pass such arrays.
    """
    if _is_supported(func):
        return func
    if any(_is_bfloat16(buffer.dtype) for buffer in func.parameter_buffers):
        raise TVMError(
            "BF16StorageLegalize changes memory behind handles; a parameter that is a buffer of "
            "bfloat16 is an array of the caller's"
        )
    mutator = _Storage()
    return replace(
        func, params=tuple(map(mutator.retyped, func.params)), body=mutator.rewrite(func.body)
    )


def _is_supported(func: PrimFunc) -> bool:
    target = func.attrs.get("target")
    if getattr(getattr(target, "kind", None), "name", "") != "cuda":
        return False
    arch = str(getattr(target, "attrs", {}).get("arch", "")).removeprefix("sm_")
    return arch[:2].isdigit() and int(arch.rstrip("af")) >= SUPPORTED_SINCE


def _is_bfloat16(dtype: str) -> bool:
    return dtypes.element_of(dtype) == BFLOAT16 if dtype else False


def _other(element: str, dtype: str) -> str:
    """A type of other elements with as many lanes."""
    return dtypes.with_lanes(element, dtypes.lanes(dtype))


def _widened(value: E.PrimExpr) -> E.PrimExpr:
    """The float32 of a bfloat16: its bits are the upper half."""
    bits = _bits_of(value, _other("uint16", value.dtype))
    wide = _other("uint32", value.dtype)
    return reinterpret(_other("float32", value.dtype), E.Cast(wide, bits) << const(16, wide))


def _rounded(value: E.PrimExpr) -> E.PrimExpr:
    """The bfloat16 that is nearest to a float32, the even one of two."""
    wide = _other("uint32", value.dtype)
    bits, half = reinterpret(wide, value), const(16, wide)
    bias = ((bits >> half) & const(1, wide)) + const(0x7FFF, wide)
    narrow = _other("uint16", value.dtype)
    return reinterpret(_other(BFLOAT16, value.dtype), E.Cast(narrow, (bits + bias) >> half))


def _bits_of(value: Any, dtype: str) -> E.PrimExpr:
    """`reinterpret`, of bits that were reinterpreted already at once."""
    if _is_reinterpreted(value) and value.args[0].dtype == dtype:
        return value.args[0]
    return reinterpret(dtype, value)


def _is_reinterpreted(value: Any) -> bool:
    return isinstance(value, E.Call) and operator_name(value) == "reinterpret"


class _Compute(BufferMutator):
    def __init__(self, func: PrimFunc) -> None:
        allocated = {
            buffer
            for part in walk(func.body)
            for buffer in (
                (part.buffer,)
                if isinstance(part, S.AllocBuffer)
                else part.alloc_buffers
                if isinstance(part, S.Block)
                else ()
            )
        }
        # What a call gets the address of, or only a part of the program views, stays as it is.
        viewed = {part.buffer.data for part in walk(func.body) if isinstance(part, S.DeclBuffer)}
        viewed |= {part for part in walk(func.body) if isinstance(part, E.Var)}
        self.wide: dict[Buffer, Buffer] = {
            buffer: _with_elements(buffer, "float32", None)
            for buffer in allocated
            if _is_bfloat16(buffer.dtype)
            and buffer.data not in viewed
            and all(isinstance(extent, E.IntImm) for extent in buffer.shape)
        }
        self.variables: dict[E.Var, E.Var] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.wide.get(buffer, buffer)

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        new = self.access(load)
        return _widened(new) if _is_bfloat16(new.dtype) else new

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        if var in self.variables:
            return self.variables[var]
        return _widened(var) if _is_bfloat16(var.dtype) else var

    @on(E.FloatImm)
    def constant(self, number: E.FloatImm) -> E.PrimExpr:
        return const(number.value, "float32") if number.dtype == BFLOAT16 else number

    @on(E.Cast)
    def cast(self, cast: E.Cast) -> E.PrimExpr:
        value = self.rewrite(cast.value)
        dtype = _other("float32", cast.dtype) if _is_bfloat16(cast.dtype) else cast.dtype
        return value if value.dtype == dtype else E.Cast(dtype, value, span=cast.span)

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        if _is_reinterpreted(call):
            new = self.bits(call)
            return _widened(new) if _is_bfloat16(call.dtype) else new
        new = self.rewrite_children(call)
        dtype = _other("float32", call.dtype)
        return replace(new, dtype=dtype) if _is_bfloat16(call.dtype) else new

    def bits(self, call: E.Call) -> E.PrimExpr:
        """A reinterpretation; a value of memory keeps its type in it."""
        (argument,) = call.args
        if isinstance(argument, E.BufferLoad) and argument.buffer not in self.wide:
            return call
        value = self.rewrite(argument)
        if _is_bfloat16(argument.dtype):
            value = _rounded(value)
        return call if value is argument else _bits_of(value, call.dtype)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        buffer = self.buffer(store.buffer)
        indices = tuple(map(self.rewrite, store.indices))
        if _is_reinterpreted(store.value) and _is_bfloat16(buffer.dtype):
            value = self.bits(store.value)  # type: ignore[arg-type]
        else:
            value = self.rewrite(store.value)
            value = _rounded(value) if _is_bfloat16(buffer.dtype) else value
        return replace(store, buffer=buffer, indices=indices, value=value)

    @on(S.LetStmt)
    def let(self, statement: S.LetStmt) -> S.Stmt:
        value = self.rewrite(statement.value)
        if not _is_bfloat16(statement.var.dtype):
            return replace(statement, value=value, body=self.rewrite(statement.body))
        var = self.variables[statement.var] = E.Var(statement.var.name, value.dtype)
        return replace(statement, var=var, value=value, body=self.rewrite(statement.body))


class _Storage(BufferMutator):
    def __init__(self) -> None:
        self.data: dict[E.Var, E.Var] = {}
        self.new: dict[Buffer, Buffer] = {}

    def retyped(self, var: E.Var) -> E.Var:
        """The handle of memory of uint16 in place of one of bfloat16."""
        kind = var.type_annotation
        if not (isinstance(kind, E.PointerType) and _is_bfloat16(kind.element_type)):
            return var
        if var not in self.data:
            element = _other("uint16", kind.element_type)
            self.data[var] = replace(var, type_annotation=replace(kind, element_type=element))
        return self.data[var]

    def buffer(self, buffer: Buffer) -> Buffer:
        if not _is_bfloat16(buffer.dtype):
            return buffer
        if buffer not in self.new:
            self.new[buffer] = _with_elements(buffer, "uint16", self.retyped(buffer.data))
        return self.new[buffer]

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        return self.retyped(var)

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(call)
        if _is_reinterpreted(call) and new.args[0].dtype == call.dtype:
            return new.args[0]
        return new

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        value = store.value
        if not _is_bfloat16(store.buffer.dtype):
            return self.rewrite_children(store)
        if not _is_reinterpreted(value):
            value = reinterpret(_other("uint16", value.dtype), value)
        else:
            (value,) = value.args  # type: ignore[attr-defined]
        indices = tuple(map(self.rewrite, store.indices))
        return replace(
            store, buffer=self.buffer(store.buffer), indices=indices, value=self.rewrite(value)
        )


def _with_elements(buffer: Buffer, element: str, data: E.Var | None) -> Buffer:
    """The buffer with elements of another type, in `data` or in memory of its own."""
    dtype = _other(element, buffer.dtype)
    if data is None:
        old: Any = buffer.data
        kind = replace(old.type_annotation, element_type=dtype)
        data = replace(old, type_annotation=kind)
    return replace(buffer, dtype=dtype, data=data)
