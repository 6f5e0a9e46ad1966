"""The pass `tvm.tir.transform.LoopPartition`: a loop becomes up to three; in the middle one the
conditions that it was partitioned by are decided. (`mlcweb.lower.optimize.loop_partition` is the
pass of the pipeline.)

These are conditions that are marked `T.likely`, in loops whose bounds are no constants, or in all
loops where the option "tir.LoopPartition" says so; and all comparisons in loops with a hint. The
parts are partitioned in their turn. A launch of blocks stays one, and asks in which part it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from mlcweb.arith import Analyzer, IntSet, deduce_bound, intersect, pos_inf
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, Replacement, Visitor, find_nodes, on
from mlcweb.lower.loop_exits import leaves_loop
from mlcweb.lower.options import LOOP_PARTITION, configured
from mlcweb.lower.stmt_simplify import assume_extents
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import (
    add,
    const,
    greater_equal,
    is_const_int,
    less,
    less_equal,
    logical_and,
    maximum,
    minimum,
    subtract,
)
from mlcweb.tir.buffer import Range
from mlcweb.tir.fresh_copy import convert_ssa
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory, substitute, uses, uses_any, variables_in

HINTS = ("loop_partition_hint", "pragma_loop_partition_hint")
"""Annotations of loops, and attributes around them, that ask for partitions."""

_MARKS = ("likely", "ignore_loop_partition")
_OPPOSITES: dict[type, type] = {
    E.LT: E.GE,
    E.GT: E.LE,
    E.LE: E.GT,
    E.GE: E.LT,
    E.EQ: E.NE,
    E.NE: E.EQ,
}


@dataclass(frozen=True, slots=True)
class LoopPartitionConfig:
    """`partition_const_loop`: loops of constant bounds are partitioned, too.
    `no_unroll_loop_with_extent_one`: parts of one iteration stay loops.
    `unroll_loop_with_partition_hint_no_interval`: loops with a hint are unrolled where no condition
    is decided in any part of them."""

    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False
    unroll_loop_with_partition_hint_no_interval: bool = False


def loop_partition(func: PrimFunc) -> PrimFunc:
    """Partition loops as TVM's pass does, by the option "tir.LoopPartition"; the marks that say
    where are removed.

    A part may be empty: its bounds are limited to those of the loop where they are not proved to be
    in them. Loops that read their bounds from memory, or that `break` leaves, stay.
    """
    config = configured(LOOP_PARTITION, LoopPartitionConfig)
    partition = _Partition(config, set(_hinted(func.body)))
    assume_extents(partition.analyzer, func)
    body = partition.rewrite(func.body)
    return convert_ssa(func.with_body(_WithoutMarks().rewrite(body)))


def _hinted(body: S.Stmt) -> Iterator[E.Var]:
    """The variables of loops and threads with a hint."""
    for node in find_nodes(body, S.For, S.AttrStmt):
        if isinstance(node, S.For):
            if any(node.annotations.get(hint) for hint in HINTS):
                yield node.loop_var
        elif node.attr_key in HINTS and Analyzer().can_prove(node.value != 0):
            yield node.node.var if isinstance(node.node, S.IterVar) else node.node


class _WithoutMarks(Mutator):
    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(call)
        return new.args[0] if operator_name(call) in _MARKS else new

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        return new.body if new.attr_key in HINTS else new

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        return replace(new, annotations=_without_hints(new)) if _without_hints(new) else new


def _without_hints(loop: S.For) -> Mapping[str, object]:
    return {key: value for key, value in loop.annotations.items() if key not in HINTS}


class _Decided(NamedTuple):
    """A condition that holds, or fails, for the values of a variable in an interval."""

    condition: E.PrimExpr
    holds: bool
    interval: IntSet


class _Middle(NamedTuple):
    """The part of a loop in which conditions all hold, or all fail."""

    interval: IntSet
    conditions: frozenset[E.PrimExpr]
    hold: bool


class _Partition(Mutator):
    """`hinted` are the variables with a hint. `outer` are the values of the variables around a
    statement, `relaxed` of those whose threads have to take one branch."""

    def __init__(self, config: LoopPartitionConfig, hinted: set[E.Var]) -> None:
        self.config = config
        self.hinted = hinted
        self.outer: dict[E.Var, IntSet] = {}
        self.relaxed: dict[E.Var, IntSet] = {}
        self.analyzer = Analyzer()

    @contextmanager
    def entered(self, var: E.Var, domain: Range, tag: str) -> Iterator[None]:
        """In a loop or launch: what its variable may be."""
        around = self.relaxed if tag.startswith("threadIdx") else self.outer
        around[var] = _set_of(domain)
        if not (reads_memory(domain.min) or reads_memory(domain.extent)):
            self.analyzer.bind(var, domain)
        yield
        del around[var]

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if self.may_partition(loop.loop_var, loop.domain, loop.body):
            new = self.partitioned(loop)
            if new is not None:
                return new
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
        with self.entered(loop.loop_var, loop.domain, tag):
            return self.rewrite_children(loop)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        axis = statement.node
        if not S.is_launch(statement):
            return self.rewrite_children(statement)
        domain = Range(const(0, axis.var.dtype), statement.value)
        if axis.thread_tag.startswith("blockIdx"):
            if self.may_partition(axis.var, domain, statement.body):
                new = self.chosen_by_block(statement, axis.var, domain)
                if new is not None:
                    return new
        with self.entered(axis.var, domain, axis.thread_tag):
            return self.rewrite_children(statement)

    def may_partition(self, var: E.Var, domain: Range, body: S.Stmt) -> bool:
        if reads_memory(domain.min) or reads_memory(domain.extent) or leaves_loop(body):
            return False
        if var in self.hinted:
            return True
        constant = isinstance(domain.min, E.IntImm) and isinstance(domain.extent, E.IntImm)
        if constant and not self.config.partition_const_loop:
            return False
        calls = [(operator_name(call), call) for call in find_nodes(body, E.Call)]
        if any(name == "tvm_thread_allreduce" for name, _ in calls):
            return False
        return any(name == "likely" and uses(call, var) for name, call in calls)

    def decided(self, var: E.Var, domain: Range, body: S.Stmt) -> list[_Decided]:
        """The conditions that are decided for some values of a loop's variable."""
        finder = _Finder(var, {**self.outer, var: _set_of(domain)}, self.relaxed, self.hinted)
        finder.visit(body)
        return finder.decided

    def middle(self, var: E.Var, domain: Range, decided: list[_Decided]) -> _Middle | None:
        """The part of a loop in which conditions are decided, if there is one."""
        for hold in (True, False):
            alike = [one for one in decided if one.holds == hold]
            interval, conditions = self.common(_set_of(domain), alike, var in self.hinted)
            if interval is not None:
                return _Middle(interval, frozenset(conditions), hold)
        return None

    def common(
        self, domain: IntSet, decided: Iterable[_Decided], hinted: bool
    ) -> tuple[IntSet | None, list[E.PrimExpr]]:
        """Where all conditions are decided that are anywhere in a loop; with a hint, where as many
        of them are, from the first on, as there is a place for."""
        interval: IntSet | None = None
        conditions: list[E.PrimExpr] = []
        for condition, _, own in decided:
            if self.is_empty(intersect(own, domain, self.analyzer)):
                continue
            both = own if interval is None else intersect(interval, own, self.analyzer)
            if self.is_empty(both):
                if hinted:
                    break
                return None, []
            interval = both
            conditions.append(condition)
        return interval, conditions

    def is_empty(self, interval: IntSet) -> bool:
        low, high = interval
        return low is not None and high is not None and self.analyzer.can_prove(less(high, low))

    def limited(self, value: E.PrimExpr, low: E.PrimExpr, high: E.PrimExpr) -> E.PrimExpr:
        """A value, limited to [low, high] as far as it is not proved to be there; `low` where that
        is empty."""
        value = self.analyzer.simplify(value)
        if not self.analyzer.can_prove(greater_equal(high, value)):
            value = minimum(value, high)
        if not self.analyzer.can_prove(greater_equal(value, low)):
            value = maximum(value, low)
        return self.analyzer.simplify(value)

    def partitioned(self, loop: S.For) -> S.Stmt | None:
        decided = self.decided(loop.loop_var, loop.domain, loop.body)
        middle = self.middle(loop.loop_var, loop.domain, decided)
        if middle is None:
            bounds = any(not one.interval.is_point for one in decided)
            return self.unrolled(loop) if bounds else None
        end = add(loop.min, loop.extent)
        low, high = middle.interval
        begin = loop.min if low is None else self.limited(low, loop.min, end)
        following = end if high is None else self.limited(_after(high), begin, end)
        body = _in_place(middle).rewrite(loop.body)
        inside = [*self.part(loop, begin, following, body, True)]
        before = self.part(loop, loop.min, begin, loop.body, bool(inside))
        after = self.part(loop, following, end, loop.body, bool(inside))
        return S.sequence(*before, *inside, *after)

    def part(
        self, loop: S.For, begin: E.PrimExpr, end: E.PrimExpr, body: S.Stmt, is_smaller: bool
    ) -> Iterator[S.Stmt]:
        """The iterations of a loop from `begin` to before `end`, counted from 0, if there may be
        any. They are partitioned in their turn if they surely are fewer, or have fewer
        conditions."""
        extent = self.analyzer.simplify(subtract(end, begin))
        one = const(1, extent.dtype)
        if self.analyzer.can_prove(less(extent, one)):
            return
        is_smaller &= body is not loop.body or self.analyzer.can_prove(greater_equal(extent, one))
        zero = const(0, loop.loop_var.dtype)
        annotations = _without_hints(loop)
        if self.is_single(extent) and not annotations:
            statement = substitute(body, {loop.loop_var: add(zero, begin)})
        else:
            var = E.Var(loop.loop_var.name, loop.loop_var.dtype)
            if loop.loop_var in self.hinted:
                self.hinted.add(var)
            body = substitute(body, {loop.loop_var: add(var, begin)})
            statement = replace(
                loop, loop_var=var, min=zero, extent=extent, body=body, annotations=annotations
            )
        yield self.rewrite(statement) if is_smaller else statement

    def is_single(self, extent: E.PrimExpr) -> bool:
        """Whether so many iterations are no loop."""
        return is_const_int(extent, 1) and not self.config.no_unroll_loop_with_extent_one

    def unrolled(self, loop: S.For) -> S.Stmt | None:
        """A loop without a part in which a condition is decided, if it is to be unrolled."""
        if not self.config.unroll_loop_with_partition_hint_no_interval:
            return None
        if loop.loop_var not in self.hinted or not self.analyzer.can_prove(loop.extent > 1):
            return None
        with self.entered(loop.loop_var, loop.domain, ""):
            body = self.rewrite(loop.body)
        return replace(loop, kind=S.ForKind.UNROLLED, annotations={}, body=body)

    def chosen_by_block(self, launch: S.AttrStmt, var: E.Var, domain: Range) -> S.Stmt | None:
        """A launch whose threads compute without the conditions where those are decided for their
        block."""
        middle = self.middle(var, domain, self.decided(var, domain, launch.body))
        if middle is None:
            return None
        low, high = middle.interval
        condition = const(True, "bool")
        if low is not None and not self.analyzer.can_prove(less_equal(low, domain.min)):
            condition = logical_and(condition, greater_equal(var, low))
        if high is not None and not self.analyzer.can_prove(
            less_equal(domain.extent, _after(high))
        ):
            condition = logical_and(condition, less(var, _after(high)))
        return _Branch(self.analyzer.simplify(condition), middle).rewrite(launch)


class _Finder(Visitor):
    """Finds the conditions in a loop that are decided for some values of its variable."""

    def __init__(
        self,
        var: E.Var,
        known: Mapping[E.Var, IntSet],
        relaxed: Mapping[E.Var, IntSet],
        hinted: Iterable[E.Var],
    ) -> None:
        self.var, self.known, self.relaxed = var, dict(known), dict(relaxed)
        self.around = frozenset({*known, *relaxed})
        self.is_hinted = var in hinted
        self.inside: set[E.Var] = set()
        """Variables that are defined in the loop."""
        self.decided: list[_Decided] = []

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        if variables_in(loop.min, loop.extent).isdisjoint(self.around):
            self.within(loop.loop_var, loop.domain, loop.body)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        axis = statement.node
        if S.is_launch(statement):
            domain = Range(const(0, axis.var.dtype), statement.value)
            self.within(axis.var, domain, statement.body)
        else:
            self.visit_children(statement)

    def within(self, var: E.Var, domain: Range, body: S.Stmt) -> None:
        self.inside.add(var)
        self.known[var] = self.relaxed[var] = _set_of(domain)
        self.visit(body)
        del self.known[var], self.relaxed[var]

    @on(S.LetStmt, E.Let)
    def let(self, let: S.LetStmt | E.Let) -> None:
        self.inside.add(let.var)
        self.visit_children(let)

    @on(S.Block)
    def block(self, block: S.Block) -> None:
        self.inside.update(axis.var for axis in block.iter_vars)
        self.visit_children(block)

    @on(E.Call)
    def call(self, call: E.Call) -> None:
        name = operator_name(call)
        if name == "likely":
            self.decide(call.args[0])
        elif name != "ignore_loop_partition":
            self.visit_children(call)

    @on(*_OPPOSITES)
    def comparison(self, comparison: E.ComparisonExpr) -> None:
        if self.is_hinted:
            self.decide(comparison)
        else:
            self.visit_children(comparison)

    def decide(self, condition: E.PrimExpr) -> None:
        if not uses(condition, self.var):
            return
        self.holds_where(condition, condition, True)
        opposite = _OPPOSITES.get(type(condition))
        if opposite is not None:
            self.holds_where(opposite(condition.a, condition.b), condition, False)  # type: ignore[attr-defined]

    def holds_where(self, proof: E.PrimExpr, condition: E.PrimExpr, holds: bool) -> None:
        interval = self.deduced(proof)
        if interval is None and isinstance(proof, E.EQ) and holds:
            low, high = (self.deduced(side(proof.a, proof.b)) for side in (E.GE, E.LE))
            if low is not None and high is not None:
                interval = intersect(low, high, Analyzer())
        if interval is not None:
            self.decided.append(_Decided(condition, holds, interval))

    def deduced(self, condition: E.PrimExpr) -> IntSet | None:
        """Where a condition holds, if that can be computed before the loop."""
        interval = deduce_bound(self.var, condition, self.known, self.relaxed)
        if interval.min_value is pos_inf():
            return None
        for end in interval:
            if end is not None and (reads_memory(end) or uses_any(end, self.inside)):
                return None
        return IntSet(*interval)


class _Branch(Mutator):
    """Puts a branch into the innermost launch: where a condition holds, the body is without the
    conditions that are decided there."""

    def __init__(self, condition: E.PrimExpr, middle: _Middle) -> None:
        self.condition, self.middle = condition, middle

    @on(S.AttrStmt)
    def launch(self, statement: S.AttrStmt) -> S.AttrStmt:
        if any(one.attr_key == "thread_extent" for one in find_nodes(statement.body, S.AttrStmt)):
            return self.rewrite_children(statement)
        if statement.attr_key != "thread_extent":
            return statement
        inside = _in_place(self.middle).rewrite(statement.body)
        return replace(statement, body=S.IfThenElse(self.condition, inside, statement.body))


def _in_place(middle: _Middle) -> Replacement:
    """Puts what the conditions of a part are in their places."""
    value = const(middle.hold, "bool")
    return Replacement(lambda node: value if node in middle.conditions else None)


def _after(last: E.PrimExpr) -> E.PrimExpr:
    return add(last, const(1, last.dtype))


def _set_of(domain: Range) -> IntSet:
    last = subtract(add(domain.min, domain.extent), const(1, domain.extent.dtype))
    return IntSet(domain.min, last)
