"""What holds of a function, with blocks or lowered, beside what well_formed.py asks of all.

It finds faults of steps and passes, so that an error names the one that made it:

    with tvm.transform.PassContext(instruments=[VerifyEachPass()]):
        tvm.build(sch.mod)
"""

from __future__ import annotations

import itertools
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from mlcweb.analysis.properties import check_removed
from mlcweb.analysis.well_formed import WellFormed
from mlcweb.arith import Analyzer
from mlcweb.ir.errors import DiagnosticError, InternalError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassInfo
from mlcweb.ir.visitor import on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute, variables_in

MAX_CORNERS = 64
NOTHING: frozenset[str] = frozenset()


class VerificationError(InternalError):
    """A step or a pass made a program that breaks a rule of its level."""


class _Verifier(WellFormed):
    """Extents are not negative, operands have the types that their operation asks for, and bindings
    stay inside the domains of their axes."""

    def __init__(self, function: PrimFunc) -> None:
        super().__init__(function)
        self.domains: dict[E.Var, Range] = {}
        self.bound: dict[E.Var, E.PrimExpr] = {}  # axes to what they stand for

    def fault(self, message: str, node: Any) -> DiagnosticError:
        return DiagnosticError(message, node.span or self.place)

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        if isinstance(loop.extent, E.IntImm) and loop.extent.value < 0:
            name = loop.loop_var.name
            raise self.fault(f'The loop "{name}" has {loop.extent.value} iterations', loop)
        self.domains[loop.loop_var] = loop.domain
        super().visit_for(loop)

    @on(S.BufferStore)
    def visit_store(self, store: S.BufferStore) -> None:
        dtype = store.buffer.dtype
        if store.indices:
            dtype = dtypes.vector_at(dtype, store.indices[-1].dtype)
        if store.value.dtype != dtype:
            raise self.fault(
                f'A value of type {store.value.dtype} is stored in "{store.buffer.name}" '
                f"as {dtype}",
                store,
            )
        self.visit_access(store)

    @on(*E.BinaryExpr.__subclasses__(), *E.ComparisonExpr.__subclasses__())
    def visit_operation(self, operation: Any) -> None:
        if operation.a.dtype != operation.b.dtype:
            raise self.fault(
                f"The operands of {operation!r} are of types {operation.a.dtype} and "
                f"{operation.b.dtype}",
                operation,
            )
        self.visit_children(operation)

    @on(S.BlockRealize)
    def visit_block(self, realize: S.BlockRealize) -> None:
        for region in (*realize.block.reads, *realize.block.writes):
            if not self.is_declared(region.buffer):
                raise self.fault(
                    f'The block "{realize.block.name_hint}" declares an access of '
                    f'"{region.buffer.name}", which is not declared itself',
                    realize.block,
                )
        super().visit_block(realize)

    def check_axis(self, realize: S.BlockRealize, axis: S.IterVar, value: E.PrimExpr) -> None:
        """Raise where a binding leaves its domain in an iteration that runs: the first or the last
        of each loop are looked at, where intervals cannot tell."""
        domain = axis.dom
        if domain is None:
            return
        self.domains[axis.var], self.bound[axis.var] = domain, value
        if not isinstance(domain.min, E.IntImm) or not isinstance(domain.extent, E.IntImm):
            return
        inside = range(domain.min.value, domain.min.value + domain.extent.value)
        ranges = {var: self.domains[var] for var in variables_in(value) if var in self.domains}
        low, high = Analyzer(ranges).const_int_bound(value)
        if inside.start <= low and high < inside.stop:
            return
        number, *conditions = (self.in_loops(part) for part in (value, *self.conditions))
        used = {v for part in (number, *conditions) for v in variables_in(part)}
        domains = {var: self.domains[var] for var in used if var in self.domains}
        ends = [_ends(loop) for loop in domains.values()]
        if len(domains) < len(used) or None in ends or 2 ** len(ends) > MAX_CORNERS:
            return
        if any(map(reads_memory, (number, *conditions))):
            return
        analyzer = Analyzer()
        for corner in itertools.product(*ends):  # type: ignore[arg-type]
            at = dict(zip(domains, corner, strict=True))
            here = _value_at(number, at, analyzer)
            if here is None or here in inside:
                continue
            if all(_value_at(condition, at, analyzer) for condition in conditions):
                name = realize.block.name_hint
                raise self.fault(
                    f'The axis "{axis.var.name}" of the block "{name}" has the domain '
                    f"[{inside.start}, {inside.stop}), but {value!r} is {here}",
                    axis if axis.span else realize.block,
                )

    def in_loops(self, value: E.PrimExpr) -> E.PrimExpr:
        """A value in terms of the loops around, instead of axes of outer blocks."""
        while axes := {v: self.bound[v] for v in variables_in(value) if v in self.bound}:
            value = substitute(value, axes)
        return value


def _ends(domain: Range) -> tuple[E.IntImm, ...] | None:
    if not isinstance(domain.min, E.IntImm) or not isinstance(domain.extent, E.IntImm):
        return None
    if domain.extent.value < 1:
        return ()
    last = domain.min.value + domain.extent.value - 1
    return tuple(E.IntImm(domain.min.dtype, end) for end in {domain.min.value, last})


def _value_at(value: E.PrimExpr, at: dict[E.Var, E.IntImm], analyzer: Analyzer) -> int | None:
    """The number that a value is in one iteration; None where that is not known."""
    result = analyzer.simplify(substitute(value, dict(at)))
    return result.value if isinstance(result, E.IntImm) else None


def verify_well_formed(function: PrimFunc) -> None:
    """Raise a DiagnosticError at the first fault of a program, with blocks or lowered."""
    _Verifier(function).check()


class VerifyEachPass:
    """An instrument that verifies what every pass and every step of a schedule has made, and that
    what a pass of lowering has removed stays away.

    Raises a VerificationError, which names the pass or step.
    """

    def __init__(self) -> None:
        self._verified: WeakSet[PrimFunc] = WeakSet()
        self._removed: WeakKeyDictionary[PrimFunc, frozenset[str]] = WeakKeyDictionary()
        self._running: list[tuple[PassInfo, frozenset[str]]] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """What all functions have no more of stays away from those that the pass makes."""
        removed = [self._removed.get(function, NOTHING) for function in _functions(mod).values()]
        self._running.append((info, frozenset.intersection(*removed) if removed else NOTHING))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        removed = NOTHING
        while self._running:  # those above it have raised an error
            running, removed = self._running.pop()
            if running is info:
                break
        self._verify(mod, info.name, removed.union(info.removes))

    def run_after_step(self, mod: IRModule, info: PassInfo) -> None:
        self._verify(mod, info.name, NOTHING)

    def _verify(self, mod: IRModule, title: str, removed: frozenset[str]) -> None:
        for name, function in _functions(mod).items():
            try:
                if function not in self._verified:
                    verify_well_formed(function)
                if removed != self._removed.get(function):
                    check_removed(function, removed)
            except DiagnosticError as error:
                raise VerificationError(
                    f'After {title}, "{name}" is not well formed: {error}'
                ) from None
            self._verified.add(function)
            self._removed[function] = removed


def _functions(mod: IRModule) -> dict[str, PrimFunc]:
    return {
        var.name_hint: function
        for var, function in mod.functions.items()
        if isinstance(function, PrimFunc)
    }
