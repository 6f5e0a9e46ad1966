"""Statements to instructions: turns a lowered, optimised function into a WebAssembly function.

Pointers to the buffers and scalar arguments come as parameters, in the order of the function's own,
followed by a pointer to scratch memory for local buffers. Expressions leave their value on the
stack; variables, and buffers of scope "register", are locals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mlcweb.codegen.processor.checks import FAULT_CHECK, Check
from mlcweb.codegen.processor.selection import UnsupportedError, allocated_bytes, check_of
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.calls import WasmCalls
from mlcweb.codegen.wasm.hoist_constants import hoist_constants
from mlcweb.codegen.wasm.module import Function
from mlcweb.codegen.wasm.operators import SCALAR_RULES, VECTOR_RULES
from mlcweb.codegen.wasm.select_address import Addresses
from mlcweb.codegen.wasm.select_memory import store_vector
from mlcweb.codegen.wasm.select_parallel import launch
from mlcweb.codegen.wasm.select_types import STORES, stack_type
from mlcweb.codegen.wasm.spill_workaround import spill_workaround
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.rewriter import bind_ranges
from mlcweb.lower.outline_parallel import ParallelRegion
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.contents import accesses_in
from mlcweb.tir.function import PrimFunc

SCRATCH_ALIGNMENT = 64

MIN_FUSED_SUMS = 6
"""A loop needs so many sums that run side by side to hide that a fused multiplication and addition
takes longer than an addition alone: where each step of a sum waits for the one before it, only the
addition counts."""


@dataclass(frozen=True, slots=True)
class Options:
    """What code may use.

    `relaxed_madd` fuses multiplications and additions of vectors, which rounds once instead of
    twice. `bounds_check` traps accesses outside of their buffers. `load_splat` loads a number into
    all lanes with one instruction, and `spill_workaround` is for an engine that orders instructions
    badly: wasmtime wants it the other way round in both. `parallel` makes functions of parallel
    loops, which threads of the host call.
    """

    relaxed_madd: bool = False
    bounds_check: bool = False
    load_splat: bool = True
    spill_workaround: bool = False
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected function: its code, the helpers that it calls, and the scratch bytes it needs."""

    function: Function
    helpers: frozenset[str]
    scratch_bytes: int


class FunctionSelector:
    """Selects the instructions of one function. `checks` lists what its code checks, and grows.
    `regions` are its loops that threads share; `indices` knows the variables of a part of another
    function."""

    def __init__(
        self,
        func: PrimFunc,
        name: str,
        options: Options,
        checks: list[Check],
        calls: WasmCalls,
        regions: Mapping[S.For, ParallelRegion] = MappingProxyType({}),
        indices: Indices | None = None,
    ) -> None:
        parameters = [
            (param.name, "i32" if param in func.buffer_map else stack_type(param.dtype))
            for param in func.params
        ]
        names = _unique([name for name, _ in parameters])
        parameters = [(n, kind) for n, (_, kind) in zip(names, parameters, strict=True)]
        self.function = func
        self.options = options
        self.checks = checks
        self.calls = calls
        self.builder = FunctionBuilder(name, [*parameters, ("scratch", "i32")])
        self.emit = self.builder.emit
        self.regions = regions
        self.indices = indices or Indices()
        if indices is None:
            bind_ranges(func, self.indices)
        self.addresses = Addresses(self, self.indices)
        self.locals: dict[E.Var, int] = {}
        self.registers: dict[tuple[Buffer, int], tuple[int, int]] = {}
        self.sums = 0
        self.helpers: set[str] = set()
        self.scratch = self.scratch_bytes = 0
        for position, param in enumerate(func.params):
            buffer = func.buffer_map.get(param)
            self.locals[param if buffer is None else buffer.data] = position

    def select(self) -> Selected:
        """The function as WebAssembly."""
        self.addresses.plan(self.function.body)
        self.statement(self.function.body)
        function = hoist_constants(self.builder.build())
        if self.options.spill_workaround:
            function = spill_workaround(function)
        return Selected(function, frozenset(self.helpers), self.scratch_bytes)

    def statement(self, statement: S.Stmt) -> None:
        """Emit a statement; its instructions are marked with its place in the source."""
        outer = self.builder.source
        self.builder.source = statement.span or outer
        handler = _STATEMENTS.get(type(statement))
        if handler is None:
            raise UnsupportedError(
                f"{type(statement).__name__} has no WebAssembly form", statement.span
            )
        handler(self, statement)
        self.builder.source = outer

    def push(self, *expressions: E.PrimExpr) -> None:
        """Emit expressions, which leave their values on the stack."""
        for expression in expressions:
            table = VECTOR_RULES if dtypes.lanes(expression.dtype) > 1 else SCALAR_RULES
            rule = table.get(type(expression))
            if rule is None:
                kind = f"{type(expression).__name__} of type {expression.dtype}"
                raise UnsupportedError(f"{kind} has no WebAssembly form", expression.span)
            rule(self, expression)

    def define(self, var: E.Var, value: E.PrimExpr) -> int:
        """A local with the value of a variable."""
        self.push(value)
        local = self.builder.local(stack_type(var.dtype), var.name)
        self.emit("local.set", local)
        self.locals[var] = local
        return local

    def forget(self, var: E.Var) -> None:
        """End the scope of a variable."""
        self.builder.release(self.locals.pop(var))

    def register(self, access: E.BufferLoad | S.BufferStore) -> tuple[int, tuple[int, int] | None]:
        """The local that holds elements of a register buffer; and, where a single element of a
        vector is meant, its lane and how many lanes there are."""
        index = access.indices[0]
        base = index.base if isinstance(index, E.Ramp) else index
        assert isinstance(base, E.IntImm)
        for first in range(base.value, -1, -1):
            register = self.registers.get((access.buffer, first))
            if register is not None:
                local, lanes = register
                whole = dtypes.lanes(index.dtype) == lanes
                return local, None if whole else (base.value - first, lanes)
        raise UnsupportedError(f'"{access.buffer.name}" is read before its allocation', access.span)

    def fuses(self, product: E.Mul, other: E.PrimExpr) -> bool:
        """Whether a product and what is added to it become one instruction."""
        if not (self.options.relaxed_madd and dtypes.is_float(product.dtype)):
            return False
        accumulates = isinstance(other, E.BufferLoad) and other.buffer.scope() == REGISTER_SCOPE
        return not accumulates or self.sums >= MIN_FUSED_SUMS

    def fail(self, check: int) -> None:
        """Stop the kernel because a check, given by its number, failed."""
        self.emit("i32.const", check)
        self.emit("global.set", FAULT_CHECK)
        self.emit("unreachable")

    def push_scratch(self) -> None:
        """The address of the scratch memory that is not in use."""
        self.emit("local.get", self.builder.parameter("scratch"))
        self.emit("i32.const", self.scratch)
        self.emit("i32.add")

    def call_helper(self, name: str) -> None:
        """Call a function of the helper library."""
        self.helpers.add(name)
        self.emit("call", name)


def _unique(names: list[str]) -> list[str]:
    """The names, with numbers where they repeat."""
    seen: dict[str, int] = {"scratch": 1}
    result = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        result.append(f"{name}_{count}" if count else name)
    return result


def _store(selector: FunctionSelector, store: S.BufferStore) -> None:
    if store.buffer.scope() == REGISTER_SCOPE:
        selector.push(store.value)
        local, _ = selector.register(store)
        selector.emit("local.set", local)
        return
    index = store.indices[0]
    if dtypes.lanes(index.dtype) > 1:
        store_vector(selector, store)
        return
    place = selector.addresses.place(store)
    selector.addresses.push(place)
    selector.push(store.value)
    selector.emit(STORES[store.buffer.dtype], place.offset)


def _sequence(selector: FunctionSelector, statement: S.SeqStmt) -> None:
    for part in statement.seq:
        selector.statement(part)


def _loop(selector: FunctionSelector, loop: S.For) -> None:
    region = selector.regions.get(loop)
    if region is not None:
        launch(selector, region)
        return
    emit, builder = selector.emit, selector.builder
    var = loop.loop_var
    kind = stack_type(var.dtype)
    constant = isinstance(loop.extent, E.IntImm)
    if constant and loop.extent.value <= 0:  # type: ignore[attr-defined]
        return
    outer_sums, selector.sums = selector.sums, _sums_in(selector, loop)
    with selector.addresses.loop(loop) as steps:
        counter = selector.define(var, loop.min)
        end = None
        if not (constant and isinstance(loop.min, E.IntImm)):
            end = selector.define(E.Var(f"{var.name}_end", var.dtype), loop.min + loop.extent)

        def repeat() -> None:
            with builder.loop(var.name) as again:
                selector.statement(loop.body)
                for local, step in steps:
                    emit("local.get", local)
                    emit("i32.const", step)
                    emit("i32.add")
                    emit("local.set", local)
                emit("local.get", counter)
                emit(f"{kind}.const", 1)
                emit(f"{kind}.add")
                emit("local.tee", counter)
                if end is None:
                    emit(f"{kind}.const", loop.min.value + loop.extent.value)  # type: ignore[attr-defined]
                else:
                    emit("local.get", end)
                emit(f"{kind}.lt_s")
                builder.jump_if(again)

        if constant:
            repeat()
        else:
            emit("local.get", counter)
            emit("local.get", end)
            emit(f"{kind}.lt_s")
            with builder.branch():
                repeat()
        if end is not None:
            builder.release(end)
        selector.forget(var)
    selector.sums = outer_sums


def _sums_in(selector: FunctionSelector, loop: S.For) -> int:
    """How many registers a loop updates."""
    return len(
        {
            (access.buffer, selector.indices.interned(access.indices[0]))
            for access in accesses_in(loop.body)
            if isinstance(access, S.BufferStore) and access.buffer.scope() == REGISTER_SCOPE
        }
    )


def _branch(selector: FunctionSelector, branch: S.IfThenElse) -> None:
    selector.push(branch.condition)
    with selector.builder.branch():
        selector.statement(branch.then_case)
        if branch.else_case is not None:
            selector.builder.otherwise()
            selector.statement(branch.else_case)


def _while(selector: FunctionSelector, loop: S.While) -> None:
    builder = selector.builder
    with builder.block() as done, builder.loop() as again:
        selector.push(loop.condition)
        selector.emit("i32.eqz")
        builder.jump_if(done)
        selector.statement(loop.body)
        builder.jump(again)


def _let(selector: FunctionSelector, let: S.LetStmt) -> None:
    selector.define(let.var, let.value)
    selector.statement(let.body)
    selector.forget(let.var)


def _allocation(selector: FunctionSelector, allocation: S.AllocBuffer) -> None:
    buffer = allocation.buffer
    if buffer.scope() == REGISTER_SCOPE:
        keys = _registers(selector, allocation)
        selector.statement(allocation.body)
        for key in keys:
            selector.builder.release(selector.registers.pop(key)[0])
        return
    start, size = selector.scratch, allocated_bytes(allocation)
    local = selector.builder.local("i32", buffer.name)
    selector.push_scratch()
    selector.emit("local.set", local)
    selector.locals[buffer.data] = local
    selector.scratch += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
    selector.scratch_bytes = max(selector.scratch_bytes, selector.scratch)
    selector.statement(allocation.body)
    selector.forget(buffer.data)
    selector.scratch = start


def _registers(selector: FunctionSelector, allocation: S.AllocBuffer) -> list[tuple[Buffer, int]]:
    """Locals for the elements and vectors of a register buffer that are accessed."""
    buffer = allocation.buffer
    places: dict[int, int] = {}
    for access in accesses_in(allocation.body):
        if access.buffer is not buffer:
            continue
        index = access.indices[0]
        base = index.base if isinstance(index, E.Ramp) else index
        if not isinstance(base, E.IntImm):
            raise UnsupportedError(
                f'The register buffer "{buffer.name}" is accessed at a place that is not constant',
                access.span,
            )
        lanes = dtypes.lanes(index.dtype)
        places[base.value] = max(places.get(base.value, 1), lanes)
    keys: list[tuple[Buffer, int]] = []
    covered = -1
    for start, lanes in sorted(places.items()):
        if start <= covered:
            continue
        covered = start + lanes - 1
        kind = stack_type(dtypes.with_lanes(buffer.dtype, lanes))
        selector.registers[buffer, start] = selector.builder.local(kind, buffer.name), lanes
        keys.append((buffer, start))
    return keys


def _assertion(selector: FunctionSelector, statement: S.AssertStmt) -> None:
    selector.checks.append(check_of(statement))
    selector.push(statement.condition)
    selector.emit("i32.eqz")
    with selector.builder.branch():
        selector.fail(len(selector.checks))
    selector.statement(statement.body)


def _evaluate(selector: FunctionSelector, statement: S.Evaluate) -> None:
    value = statement.value
    if isinstance(value, E.IntImm):
        return
    selector.push(value)
    selector.emit("drop")


def _attribute(selector: FunctionSelector, statement: S.AttrStmt) -> None:
    selector.statement(statement.body)


_STATEMENTS: dict[type, Callable[[FunctionSelector, Any], None]] = {
    S.BufferStore: _store,
    S.SeqStmt: _sequence,
    S.For: _loop,
    S.IfThenElse: _branch,
    S.While: _while,
    S.LetStmt: _let,
    S.AllocBuffer: _allocation,
    S.AssertStmt: _assertion,
    S.AttrStmt: _attribute,
    S.Evaluate: _evaluate,
}
