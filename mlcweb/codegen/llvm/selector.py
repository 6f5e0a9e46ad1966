"""Statements to instructions: turns a lowered, optimised function into one of LLVM.

A function takes pointers to its buffers and scalars, in the order of its parameters, and returns a
status. Local buffers are memory of its own, which LLVM keeps in registers where it can.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from mlcweb.codegen.llvm.builder import FunctionBuilder
from mlcweb.codegen.llvm.expressions import CHECK_FAILED, received
from mlcweb.codegen.llvm.memory import STORED_TOGETHER, store, store_together
from mlcweb.codegen.llvm.operators import RULES
from mlcweb.codegen.llvm.parallel import launch
from mlcweb.codegen.llvm.types import INDEX, argument_type, value_type
from mlcweb.codegen.processor.calls import Calls
from mlcweb.codegen.processor.checks import FAULT_CHECK, FAULT_INDEX, Check
from mlcweb.codegen.processor.selection import (
    UnsupportedError,
    allocated_bytes,
    check_of,
    is_unsigned,
)
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.rewriter import bind_ranges
from mlcweb.lower.outline_parallel import ParallelRegion
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


class Selector:
    """Writes the code of one function. `checks` lists what its code checks, and grows.

    Args:
        exported: whether it is called from outside; others are called by those.
        distinct: whether no two of its buffers overlap where one is written.
        fused: whether a product and a sum of vectors are rounded once.
        regions: the loops that threads share; they become `parts` of their own.
        indices: what knows the variables, of such a part.
    """

    def __init__(
        self,
        func: PrimFunc,
        name: str,
        checks: list[Check],
        calls: Calls[None],
        *,
        exported: bool,
        distinct: bool,
        fused: bool,
        regions: Mapping[S.For, ParallelRegion] = MappingProxyType({}),
        indices: Indices | None = None,
    ) -> None:
        self.function = func
        self.name = name
        self.distinct = distinct
        self.regions = regions
        self.parts: list[str] = []
        self.checks = checks
        self.calls = calls
        self.fused = fused
        self.indices = indices or Indices()
        if indices is None:
            bind_ranges(func, self.indices)
        parameters: list[str] = []
        self.values: dict[E.Var, str] = {}
        self._wide: dict[E.Var, str] = {}
        self._available: dict[Hashable, str] = {}
        self._ages: dict[str, int] = {}
        scalars: list[tuple[E.Var, str]] = []
        for position, param in enumerate(func.params):
            buffer = func.buffer_map.get(param)
            name_here = f"%p{position}"
            if buffer is not None:
                parameters.append(f"ptr {'noalias ' if distinct else ''}{name_here}")
                self.values[buffer.data] = name_here
            elif dtypes.kind(param.dtype) == "handle":
                raise UnsupportedError(f'"{param.name}" is a handle without a buffer')
            elif indices is not None:
                parameters.append(f"{value_type(param.dtype)} {name_here}")
                self.values[param] = name_here
            else:
                parameters.append(f"{argument_type(param.dtype)} {name_here}")
                scalars.append((param, name_here))
        self.builder = FunctionBuilder(name, parameters, "" if exported else "internal ")
        for param, value in scalars:
            self.values[param] = received(self, value, param.dtype)

    def select(self) -> str:
        """The text of the function."""
        self.statement(self.function.body)
        return self.builder.build()

    def statement(self, statement: S.Stmt) -> None:
        handler = _STATEMENTS.get(type(statement))
        if handler is None:
            raise UnsupportedError(f"{type(statement).__name__} has no LLVM form", statement.span)
        handler(self, statement)

    def value(self, expression: E.PrimExpr) -> str:
        """The instructions for an expression; the name of its value, or a constant."""
        rule = RULES.get(type(expression))
        if rule is None:
            kind = f"{type(expression).__name__} of type {expression.dtype}"
            raise UnsupportedError(f"{kind} has no LLVM form", expression.span)
        return rule(self, expression)

    def fuses(self, product: E.Mul) -> bool:
        """Whether a product and what is added to it become one instruction, as there is for vectors
        of float32 and float64; LLVM calls a function for others, which not every machine has."""
        return self.fused and product.dtype.startswith(("float32x", "float64x"))

    def wide(self, index: E.PrimExpr) -> str:
        """An integer in 64 bits."""
        if isinstance(index, E.IntImm):
            return str(index.value)
        if isinstance(index, E.Var) and index in self._wide:
            return self._wide[index]
        value = self.value(index)
        if dtypes.bits(index.dtype) == 64:
            return value
        name = "zext" if is_unsigned(index.dtype) else "sext"
        write = f"{name} {value_type(index.dtype)} {value} to {INDEX}"
        return self.available(write, lambda: self.builder.value(write))

    def available(self, key: Hashable, write: Callable[[], str]) -> str:
        """A value that was computed before on every way here, or else is now."""
        value = self._available.get(key)
        if value is None:
            value = self._available[key] = write()
        return value

    def age(self, value: str) -> int:
        """The number of loops around the one whose counter a value is; other values change last."""
        return self._ages.get(value, len(self._ages))

    @contextmanager
    def region(self) -> Iterator[None]:
        """Code that control may pass by: what it computes is not known behind it."""
        before = self._available
        self._available = dict(before)
        yield
        self._available = before

    def either(
        self, condition: str, kind: str, yes: Callable[[], str], no: Callable[[], str]
    ) -> str:
        """One of two values, of which only that one is computed."""
        builder = self.builder
        first, second, done = builder.label("then"), builder.label("else"), builder.label("done")
        builder.branch(condition, first, second)
        sources: list[tuple[str, str]] = []
        for label, write in ((first, yes), (second, no)):
            builder.start(label)
            with self.region():
                sources.append((write(), builder.block))
            builder.jump(done)
        builder.start(done)
        return builder.phi(kind, *sources)

    def fail_unless(self, condition: str, check: int, index: str = "0") -> None:
        """Stop the kernel if a check, given by its number, fails."""

        def report() -> None:
            self.builder.line(f"store i32 {check}, ptr @{FAULT_CHECK}")
            self.builder.line(f"store i64 {index}, ptr @{FAULT_INDEX}")

        self.builder.stop_unless(condition, str(CHECK_FAILED), report)

    def loop(self, loop: S.For) -> None:
        """A loop that counts in 64 bits, where its bounds cannot overflow."""
        region = self.regions.get(loop)
        if region is not None:
            launch(self, region)
            return
        constant = loop.extent.value if isinstance(loop.extent, E.IntImm) else None
        if constant is not None and constant <= 0:
            return
        builder, var = self.builder, loop.loop_var
        first = self.wide(loop.min)
        end = builder.value(f"add {INDEX} {first}, {self.wide(loop.extent)}")
        again, done = builder.label("loop"), builder.label("done")
        before = builder.block
        if constant is None:
            builder.branch(builder.value(f"icmp slt {INDEX} {first}, {end}"), again, done)
        else:
            builder.jump(again)
        builder.start(again)
        counter, set_sources = builder.late_phi(INDEX)
        self._wide[var] = counter
        self._ages[counter] = len(self._ages)
        self.values[var] = counter
        if dtypes.bits(var.dtype) < 64:
            self.values[var] = builder.value(f"trunc {INDEX} {counter} to {value_type(var.dtype)}")
        with self.region():
            self.statement(loop.body)
        del self._ages[counter]
        following = builder.value(f"add nsw {INDEX} {counter}, 1")
        set_sources((first, before), (following, builder.block))
        builder.branch(builder.value(f"icmp slt {INDEX} {following}, {end}"), again, done)
        builder.start(done)


def _sequence(selector: Selector, statement: S.SeqStmt) -> None:
    done = 0
    while done < len(statement.seq):
        together = store_together(selector, statement.seq[done : done + STORED_TOGETHER])
        if not together:
            selector.statement(statement.seq[done])
        done += together or 1


def _branch(selector: Selector, branch: S.IfThenElse) -> None:
    builder = selector.builder
    yes, done = builder.label("then"), builder.label("done")
    no = done if branch.else_case is None else builder.label("else")
    builder.branch(selector.value(branch.condition), yes, no)
    for label, case in ((yes, branch.then_case), (no, branch.else_case)):
        if case is not None:
            builder.start(label)
            with selector.region():
                selector.statement(case)
            builder.jump(done)
    builder.start(done)


def _while(selector: Selector, loop: S.While) -> None:
    builder = selector.builder
    again, body, done = builder.label("while"), builder.label("body"), builder.label("done")
    builder.jump(again)
    builder.start(again)
    with selector.region():
        builder.branch(selector.value(loop.condition), body, done)
        builder.start(body)
        selector.statement(loop.body)
    builder.jump(again)
    builder.start(done)


def _let(selector: Selector, let: S.LetStmt) -> None:
    selector.values[let.var] = selector.value(let.value)
    selector.statement(let.body)


def _allocation(selector: Selector, allocation: S.AllocBuffer) -> None:
    place = selector.builder.allocate(allocated_bytes(allocation))
    selector.values[allocation.buffer.data] = place
    selector.statement(allocation.body)


def _assertion(selector: Selector, statement: S.AssertStmt) -> None:
    selector.checks.append(check_of(statement))
    number = len(selector.checks)
    selector.fail_unless(selector.value(statement.condition), number)
    selector.statement(statement.body)


def _evaluate(selector: Selector, statement: S.Evaluate) -> None:
    if not isinstance(statement.value, E.IntImm):
        selector.value(statement.value)


_STATEMENTS: dict[type, Callable[[Selector, Any], None]] = {
    S.BufferStore: store,
    S.SeqStmt: _sequence,
    S.For: Selector.loop,
    S.IfThenElse: _branch,
    S.While: _while,
    S.LetStmt: _let,
    S.AllocBuffer: _allocation,
    S.AssertStmt: _assertion,
    S.AttrStmt: lambda selector, statement: selector.statement(statement.body),
    S.Evaluate: _evaluate,
}
