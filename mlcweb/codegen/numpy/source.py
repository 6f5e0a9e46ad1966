"""A function as NumPy source: loops are distributed over their statements as far as the order of
memory accesses allows, then each statement replaces its loops by one operation on arrays.

What cannot be done so stays a loop, and in the end the interpreter's code. The method is the
classic one for vector machines (J. R. Allen and K. Kennedy, "Automatic translation of FORTRAN
programs to vector form", 1987) with dependences found by enumeration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Any, NamedTuple

from mlcweb.codegen.interpreter.source import PythonSource
from mlcweb.codegen.numpy import support
from mlcweb.codegen.numpy.arrays import ArrayExpressions
from mlcweb.codegen.numpy.dependence import can_run_after, keeps_order
from mlcweb.codegen.numpy.evaluate import NotConstant
from mlcweb.codegen.numpy.leaves import Leaf, Loop, leaves_of
from mlcweb.codegen.numpy.merging import with_merged_indices
from mlcweb.codegen.numpy.points import TooLarge
from mlcweb.codegen.numpy.space import NeverRuns, space_of
from mlcweb.codegen.numpy.stores import StoreText, finds_its_place, reads, reduction_of
from mlcweb.ir.visitor import find_nodes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import variables_in


class Plan(NamedTuple):
    """Which loops of a store to keep as loops; `any_order` says that the order of the others does
    not matter, so that they may sum up."""

    kept: tuple[Loop, ...]
    any_order: bool


class NumpySource(PythonSource):
    """Writes a function of constant shapes."""

    def __init__(self) -> None:
        super().__init__(support.namespace, allocator="uninitialised")

    def body(self, func: PrimFunc) -> None:
        allocations: list[Buffer] = []
        leaves = leaves_of(func.body, allocations)
        for buffer in allocations:
            self.allocate(buffer)
        self.distribute(leaves, 0)

    def distribute(self, leaves: Sequence[Leaf], depth: int) -> None:
        """Write leaves that share the first `depth` loops, which are written already."""
        for group in _groups(leaves, depth):
            if len(group) == 1:
                self.leaf(group[0], depth)
            else:
                with self.loop_over(group[0].loops[depth]):
                    self.distribute(group, depth + 1)

    def loop_over(self, loop: Loop) -> Any:
        self.expressions.ranges.bind(loop.var, loop.low, loop.low + max(loop.extent, 1) - 1)
        bounds = f"{loop.low}, {loop.low + loop.extent}" if loop.low else str(loop.extent)
        return self.looped(f"for {self.name(loop.var)} in range({bounds}):")

    def leaf(self, leaf: Leaf, depth: int) -> None:
        loops = leaf.loops[depth:]
        if any(loop.extent <= 0 for loop in loops):
            return
        if leaf.block:
            self.line(f"# {leaf.block}")
        if leaf.store is None or leaf.barrier:
            self.scalar_loops(leaf, loops)
            return
        for plan in _plans(leaf, leaf.store, depth):
            for form in filter(None, (with_merged_indices(leaf), leaf)):
                if self.try_arrays(form, loops, plan):
                    return
        self.scalar_loops(leaf, loops)

    def try_arrays(self, leaf: Leaf, loops: Sequence[Loop], plan: Plan) -> bool:
        """Write a leaf with some loops kept; whether that was possible."""
        store, kept = leaf.store, plan.kept
        assert store is not None
        inner = [loop for loop in loops if loop not in kept]
        reduction = reduction_of(store) if plan.any_order else None
        used = {var for part in (store.value, *store.indices) for var in variables_in(part)}
        for loop in kept:
            self.expressions.ranges.bind(loop.var, loop.low, loop.low + loop.extent - 1)
        self.expressions.block = leaf.block
        try:
            space = space_of(leaf, inner, used, reduction is not None)
            expressions = ArrayExpressions(self.expressions, space, self.constants)
            text = StoreText(store, expressions).text(reduction)
        except NeverRuns:
            return True
        except (NotConstant, TooLarge):
            return False
        with ExitStack() as around:
            for loop in kept:
                around.enter_context(self.loop_over(loop))
            for guard in space.guards:
                around.enter_context(self.indented(f"if {self.text(guard)}:"))
            self.line(text)
        return True

    def scalar_loops(self, leaf: Leaf, loops: Sequence[Loop]) -> None:
        """The interpreter's code for a leaf."""
        with ExitStack() as around:
            for loop in loops:
                around.enter_context(self.loop_over(loop))
            if leaf.guards:
                conditions = " and ".join(self.expressions.operand(guard) for guard in leaf.guards)
                around.enter_context(self.indented(f"if {conditions}:"))
            self.expressions.block = leaf.block
            used = set(find_nodes(leaf.statement, E.Var))
            for var, value in leaf.bindings.items():
                if var in used:
                    self.define(var, value)
            self.visit(leaf.statement)
            self.expressions.block = ""


def _plans(leaf: Leaf, store: S.BufferStore, depth: int) -> Iterator[Plan]:
    """Ways to run a store, the best first."""
    loops = leaf.loops[depth:]
    if not loops:
        return
    if reduction_of(store) is not None or not (reads(store.value, store) or finds_its_place(store)):
        for count in range(len(loops)):
            yield Plan(loops[:count], True)
    choices: list[tuple[Loop, ...]] = [(), *((loop,) for loop in loops)]
    choices += [loops[:count] for count in range(2, len(loops))]
    for kept in choices:
        if keeps_order(leaf, depth, kept):
            yield Plan(kept, False)


def _groups(leaves: Sequence[Leaf], depth: int) -> list[list[Leaf]]:
    """The leaves in runs that can run one after the other, each run with loops of its own."""

    def loop(leaf: Leaf) -> int:
        return id(leaf.loops[depth] if len(leaf.loops) > depth else leaf)

    # Leaves of different loops at this depth run one after the other as they stand.
    return [group for _, run in groupby(leaves, loop) for group in _groups_in_loop(run, depth)]


def _groups_in_loop(leaves: Iterable[Leaf], depth: int) -> list[list[Leaf]]:
    groups: list[list[Leaf]] = []
    for leaf in leaves:
        bound = [
            index
            for index, group in enumerate(groups)
            if not all(can_run_after(earlier, leaf, depth) for earlier in group)
        ]
        if bound:
            joined = [member for group in groups[bound[0] :] for member in group]
            groups[bound[0] :] = [[*joined, leaf]]
        else:
            groups.append([leaf])
    return groups
