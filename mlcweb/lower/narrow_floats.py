"""Floats of 16 and 8 bits computed in float32, and kept as integers in memory, for those who do not
know their type: the passes `BF16ComputeLegalize`, `FP8ComputeLegalize` and those of storage of TVM,
which round what is stored, and `emulate_narrow_floats`, which rounds each operation, for the
targets that run on a processor.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, on
from mlcweb.lower.convert_blocks_to_loops import instructions_in_loops
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.narrow_formats import BFLOAT16, NarrowFormat, carried
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import reinterpret
from mlcweb.tir.operators import OPERATORS, key_of, operator_name
from mlcweb.tir.substitute import BufferMutator

SUPPORTED_SINCE = {"bfloat16": 80, "float8_e4m3fn": 89, "float8_e5m2": 89}
"""The first compute capability of CUDA that knows each type."""


def legalize_compute(func: PrimFunc, *formats: NarrowFormat) -> PrimFunc:
    """Compute in float32 what the program computes in some float types, and keep memory of constant
    size that the function allocates itself in float32, too. What is stored in other buffers is
    rounded to the nearest even. Functions for targets that know a type keep it."""
    for format in formats:
        if not _is_supported(func, format):
            func = func.with_body(_Compute(func, format).rewrite(func.body))
    return func


def legalize_storage(func: PrimFunc, *formats: NarrowFormat) -> PrimFunc:
    """Make memory of some float types memory of integers.

    Raises:
        TVMError: a parameter is a buffer of such a type: callers pass such arrays.
    """
    for format in formats:
        if _is_supported(func, format):
            continue
        if any(_is_of(format, buffer.dtype) for buffer in func.parameter_buffers):
            raise TVMError(
                "Legalizing storage changes memory behind handles; a parameter that is a buffer of "
                f"{format.name} is an array of the caller's"
            )
        func = _as_integers(func, format)
    return func


def emulate_narrow_floats(*formats: NarrowFormat) -> LoweringPass:
    """The pass to functions that compute the same without some float types: each operation in
    float32, rounded to the nearest even number of the type as IEEE 754 rounds (products, sums,
    quotients and roots of float32 have enough digits to be rounded twice), memory, that of
    parameters too, in integers, and registers in float32."""
    removes = tuple(f"arithmetic of {format.name}" for format in formats)
    run = partial(_emulated, formats=formats)
    return LoweringPass(run, "EmulateNarrowFloats", needed=True, removes=removes)


def has_narrow_floats(func: PrimFunc) -> bool:
    """Whether a function has floats of less than 32 bits."""
    types = filter(None, _types_in(func))  # calls for their effects have none
    return any(dtypes.is_float(dtype) and dtypes.bits(dtype) < 32 for dtype in types)


def _types_in(func: PrimFunc) -> set[str]:
    """The types of what a function is given, keeps, and computes with."""
    declared = map(S.declared_buffers, S.statements_in(func.body))
    buffers = chain(func.buffer_map.values(), *declared)
    values = find_nodes(func.body, *_SOURCES)
    return {node.dtype for node in (*buffers, *func.params, *values)}


def _emulated(func: PrimFunc, formats: tuple[NarrowFormat, ...]) -> PrimFunc:
    types = _types_in(func)
    for format in formats:
        if any(_is_of(format, dtype) for dtype in types):
            func = _without(format, func)
    return func


def _without(format: NarrowFormat, func: PrimFunc) -> PrimFunc:
    func = instructions_in_loops(func)  # which know operands by their addresses and types
    rounding = _Rounding(func, format)
    body = rounding.rewrite(func.body)
    params = []
    for param in func.params:
        if not _is_of(format, param.dtype):
            params.append(param)
            continue
        argument = E.Var(param.name, "float32")
        params.append(argument)
        body = S.LetStmt(rounding.variables[param], format.rounded(argument), body)
    return _as_integers(replace(func, params=tuple(params), body=body), format)


def _as_integers(func: PrimFunc, format: NarrowFormat) -> PrimFunc:
    storage = _Storage(format)
    params = tuple(map(storage.retyped, func.params))
    buffer_map = {
        param: storage.buffer(func.buffer_map[old])
        for old, param in zip(func.params, params, strict=True)
        if old in func.buffer_map
    }
    return replace(func, params=params, buffer_map=buffer_map, body=storage.rewrite(func.body))


def _is_supported(func: PrimFunc, format: NarrowFormat) -> bool:
    capability = getattr(func.attrs.get("target"), "compute_capability", 0)
    return capability >= SUPPORTED_SINCE[format.name]


def _is_of(format: NarrowFormat, dtype: str) -> bool:
    return dtypes.element_of(dtype) == format.name if dtype else False


def _bits_of(value: Any, dtype: str) -> E.PrimExpr:
    """`reinterpret`, of bits that were reinterpreted already at once."""
    if _is_reinterpreted(value) and value.args[0].dtype == dtype:
        return value.args[0]
    return reinterpret(dtype, value)


def _is_reinterpreted(value: Any) -> bool:
    return isinstance(value, E.Call) and operator_name(value) == "reinterpret"


class _Compute(BufferMutator):
    def __init__(self, func: PrimFunc, format: NarrowFormat) -> None:
        self.format = format
        allocated = {*chain(*map(S.allocated_buffers, S.statements_in(func.body)))}
        # What a call gets the address of, or only a part of the program views, stays as it is.
        viewed = {part.buffer.data for part in find_nodes(func.body, S.DeclBuffer)}
        viewed |= set(find_nodes(func.body, E.Var))
        self.wide: dict[Buffer, Buffer] = {
            buffer: _with_elements(buffer, "float32", None)
            for buffer in allocated
            if self.is_narrow(buffer.dtype)
            and buffer.data not in viewed
            and all(isinstance(extent, E.IntImm) for extent in buffer.shape)
        }
        self.variables: dict[E.Var, E.Var] = {}

    def is_narrow(self, dtype: str) -> bool:
        return _is_of(self.format, dtype)

    def widened(self, value: E.PrimExpr) -> E.PrimExpr:
        """The float32 of a narrow value."""
        return self.format.widened(_bits_of(value, dtypes.like(self.format.bits, value.dtype)))

    def narrowed(self, value: E.PrimExpr) -> E.PrimExpr:
        """What is stored of a float32."""
        if self.format is BFLOAT16:  # A NaN may run over, as TVM's passes have it.
            bits = carried(reinterpret(dtypes.like("uint32", value.dtype), value), 16)
            half = E.Cast(dtypes.like("uint16", value.dtype), bits >> const(16, bits.dtype))
            return reinterpret(dtypes.like("bfloat16", value.dtype), half)
        narrow = self.format.narrowed(self.format.rounded(value))
        return reinterpret(dtypes.like(self.format.name, value.dtype), narrow)

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.wide.get(buffer, buffer)

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        new = self.access(load)
        return self.widened(new) if self.is_narrow(new.dtype) else new

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        if var in self.variables:
            return self.variables[var]
        return self.widened(var) if self.is_narrow(var.dtype) else var

    @on(E.FloatImm)
    def constant(self, number: E.FloatImm) -> E.PrimExpr:
        return const(number.value, "float32") if number.dtype == self.format.name else number

    @on(E.Cast)
    def cast(self, cast: E.Cast) -> E.PrimExpr:
        value = self.rewrite(cast.value)
        dtype = dtypes.like("float32", cast.dtype) if self.is_narrow(cast.dtype) else cast.dtype
        return value if value.dtype == dtype else E.Cast(dtype, value, span=cast.span)

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        if _is_reinterpreted(call):
            new = self.bits(call)
            return self.widened(new) if self.is_narrow(call.dtype) else new
        if operator_name(call) == "address_of":
            (place,) = call.args
            return replace(call, args=(self.access(place),))
        new = self.rewrite_children(call)
        dtype = dtypes.like("float32", call.dtype)
        return replace(new, dtype=dtype) if self.is_narrow(call.dtype) else new

    def bits(self, call: E.Call) -> E.PrimExpr:
        """A reinterpretation; a value of memory keeps its type in it."""
        (argument,) = call.args
        if isinstance(argument, E.BufferLoad) and argument.buffer not in self.wide:
            return call
        value = self.rewrite(argument)
        if self.is_narrow(argument.dtype):
            value = self.narrowed(value)
        return call if value is argument else _bits_of(value, call.dtype)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        buffer = self.buffer(store.buffer)
        indices = tuple(map(self.rewrite, store.indices))
        if _is_reinterpreted(store.value) and self.is_narrow(buffer.dtype):
            value = self.bits(store.value)  # type: ignore[arg-type]
        else:
            value = self.rewrite(store.value)
            value = self.narrowed(value) if self.is_narrow(buffer.dtype) else value
        return replace(store, buffer=buffer, indices=indices, value=value)

    @on(S.LetStmt, E.Let)
    def let(self, statement: S.LetStmt | E.Let) -> S.Stmt | E.Let:
        value = self.rewrite(statement.value)
        if not self.is_narrow(statement.var.dtype):
            return replace(statement, value=value, body=self.rewrite(statement.body))
        var = self.variables[statement.var] = E.Var(statement.var.name, value.dtype)
        return replace(statement, var=var, value=value, body=self.rewrite(statement.body))


_SOURCES = (E.Cast, E.FloatImm, E.Call, E.BufferLoad)
"""Where numbers come from, with parameters and buffers."""
_EXACT = (
    *(key for key, operator in OPERATORS.items() if operator.is_exact),
    E.BufferLoad, E.Var, E.FloatImm, E.Let, E.Broadcast, E.Shuffle,
)  # fmt: skip
"""What only passes numbers on."""


class _Rounding(_Compute):
    """Rounds what each operation gives, so that memory can stay as it is, and registers hold the
    numbers in float32."""

    def __init__(self, func: PrimFunc, format: NarrowFormat) -> None:
        super().__init__(func, format)
        self.wide = {old: new for old, new in self.wide.items() if old.scope() == REGISTER_SCOPE}
        for param in func.params:
            if self.is_narrow(param.dtype):
                self.variables[param] = E.Var(param.name, "float32")

    def narrowed(self, value: E.PrimExpr) -> E.PrimExpr:
        return reinterpret(dtypes.like(self.format.name, value.dtype), self.format.narrowed(value))

    @on(E.FloatImm)
    def constant(self, number: E.FloatImm) -> E.PrimExpr:
        if number.dtype != self.format.name:
            return number
        return const(dtypes.round_float(number.value, self.format.name), "float32")

    def rewrite(self, node: Any) -> Any:
        new = super().rewrite(node)
        if not (isinstance(node, E.PrimExpr) and self.is_narrow(node.dtype)):
            return new
        if key_of(node) in _EXACT:
            return new
        is_sum = isinstance(node, (E.Add, E.Sub))
        return self.format.rounded_sum(new) if is_sum else self.format.rounded(new)


class _Storage(BufferMutator):
    def __init__(self, format: NarrowFormat) -> None:
        self.format = format
        self.data: dict[E.Var, E.Var] = {}

    def retyped(self, var: E.Var) -> E.Var:
        """The handle of memory of integers in place of one of narrow floats."""
        kind = var.type_annotation
        if not (isinstance(kind, E.PointerType) and _is_of(self.format, kind.element_type)):
            return var
        if var not in self.data:
            element = dtypes.like(self.format.bits, kind.element_type)
            self.data[var] = replace(var, type_annotation=replace(kind, element_type=element))
        return self.data[var]

    def changed(self, buffer: Buffer) -> Buffer:
        if not _is_of(self.format, buffer.dtype):
            return buffer
        return _with_elements(buffer, self.format.bits, self.retyped(buffer.data))

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
        if not _is_of(self.format, store.buffer.dtype):
            return self.rewrite_children(store)
        if not _is_reinterpreted(value):
            value = reinterpret(dtypes.like(self.format.bits, value.dtype), value)
        else:
            (value,) = value.args  # type: ignore[attr-defined]
        indices = tuple(map(self.rewrite, store.indices))
        return replace(
            store, buffer=self.buffer(store.buffer), indices=indices, value=self.rewrite(value)
        )


def _with_elements(buffer: Buffer, element: str, data: E.Var | None) -> Buffer:
    """The buffer with elements of another type, in `data` or in memory of its own."""
    dtype = dtypes.like(element, buffer.dtype)
    if data is None:
        old: Any = buffer.data
        kind = replace(old.type_annotation, element_type=dtype)
        data = replace(old, type_annotation=kind)
    return replace(buffer, dtype=dtype, data=data)
