"""What every TensorIR function keeps to, whether it was read or made by a step or a pass:

- a variable has a value, and a buffer is declared, wherever they are used;
- an axis has the range of the loop that it is bound to (a block may compute a part of a buffer
  where nothing reads the rest; of a parameter that nobody else stores to and that was not read
  before only if it says by T.writes that it means to);
- a buffer that views a region has its shape;
- a block with axes uses no variable of the loops around it, but to name threads.

What holds beside of that at each level is in verify.py.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Visitor, on, walk
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, MatchBufferRegion
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import uses, variables_in

_ALLREDUCE = Op.get("tir.tvm_thread_allreduce")


def check_match(match: MatchBufferRegion, place: Span | None) -> None:
    """Raise where a view has elements of another type than its region, or other extents; those of 1
    that lead it may leave out. `place` is that of the view."""
    shape, region = match.buffer.shape, match.source
    if match.buffer.dtype != region.buffer.dtype:
        raise DiagnosticError(
            f'"{match.buffer.name}" has elements of {match.buffer.dtype}, but is matched with '
            f'a region of "{region.buffer.name}", which are {region.buffer.dtype}; give '
            f'T.match_buffer the dtype "{region.buffer.dtype}"',
            place,
        )
    extents = [part.extent for part in region.region]
    leading = len(extents) - len(shape)
    pairs = zip(extents, (*[arithmetic.const(1)] * leading, *shape), strict=False)
    if leading >= 0 and not any(_differ(*pair) for pair in pairs):
        return
    raise DiagnosticError(
        f'"{match.buffer.name}" has the shape {_tuple(shape)}, but is matched with a region of '
        f'"{region.buffer.name}" of the shape {_tuple(extents)}; give it the shape of the '
        "region, without leading extents of 1 if you like",
        place,
    )


class WellFormed(Visitor):
    """Raises a DiagnosticError at the first fault. `partial` has the faults of axes that are
    covered in part, by what their blocks write: faults only if the rest of it is read, and if the
    program does not write down what its block reads and writes, as every printed one does.
    `inferred` are those blocks."""

    def __init__(self, function: PrimFunc, inferred: Container[S.Block] = ()) -> None:
        self.function = function
        self.inferred = inferred
        self.loops: dict[E.Var, S.For] = {}
        self.conditions: list[E.PrimExpr] = []  # of the branches and blocks around
        self.block_of_loop: dict[E.Var, S.Block | None] = {}
        self.block: S.Block | None = None
        self.defined: set[E.Var] = set(function.params)
        self.ended: set[E.Var] = set()
        self.place: Span | None = None
        self.partial: dict[Buffer, DiagnosticError] = {}
        self.parameters = set(function.buffer_map.values())
        self.loaded: set[Buffer] = set()
        for buffer in self.parameters:
            self.define(buffer)

    def check(self) -> None:
        """Look at the whole function."""
        self.visit(self.function.body)

    def define(self, buffer: Buffer) -> None:
        """Declare a buffer and the variables that come with it."""
        self.defined.add(buffer.data)
        for value in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            self.defined |= variables_in(value)

    def is_declared(self, buffer: Buffer) -> bool:
        """A buffer may also be another shape of memory that is declared, as in lowered programs."""
        return buffer.data in self.defined

    @on(E.Var)
    def visit_var(self, var: E.Var) -> None:
        if var in self.ended:
            raise DiagnosticError(
                f'"{var.name}" is used outside of the statement that gives it a value; move the '
                "use into it",
                self.place,
            )
        if var not in self.defined:
            raise DiagnosticError(
                f'"{var.name}" has no value: a variable declared by T.{var.dtype}() takes its '
                "value from the shape or the strides of a parameter's buffer",
                self.place,
            )
        if var in self.block_of_loop and self.block_of_loop[var] is not self.block:
            block = self.block
            name = block.name_hint if block else ""
            raise DiagnosticError(
                f'The block "{name}" has axes, and yet uses the loop variable "{var.name}" from '
                f"outside; bind it to an axis, such as `v{var.name} = T.axis.spatial(…, "
                f"{var.name})`, and use that",
                self.place,
            )

    @on(E.Call)
    def visit_call(self, call: E.Call) -> None:
        """A reduction across threads names the threads by their axes at its end; these are no
        values."""
        values = call.args
        if call.op is _ALLREDUCE and isinstance(first := call.args[0], E.IntImm):
            count = first.value  # of sources, and of results; the condition is between them
            values = call.args[: 2 + 2 * count]
        for value in values:
            self.visit(value)

    @on(S.Evaluate, S.While)
    def visit_placed(self, node: Any) -> None:
        before, self.place = self.place, node.span or self.place
        self.visit_children(node)
        self.place = before

    @on(S.IfThenElse)
    def visit_branch(self, branch: S.IfThenElse) -> None:
        before, self.place = self.place, branch.span or self.place
        self.visit(branch.condition)
        otherwise = arithmetic.logical_not(branch.condition)
        for case, holds in (
            (branch.then_case, branch.condition),
            (branch.else_case, otherwise),
        ):
            if case is not None:
                self.conditions.append(holds)
                self.visit(case)
                self.conditions.pop()
        self.place = before

    @on(E.BufferLoad, S.BufferStore)
    def visit_access(self, access: E.BufferLoad | S.BufferStore) -> None:
        if not self.is_declared(access.buffer):
            raise DiagnosticError(
                f'The buffer "{access.buffer.name}" is used but not declared: it is no parameter, '
                "and nothing around allocates, declares or matches it",
                access.span or self.place,
            )
        self.visit_placed(access)
        if isinstance(access, E.BufferLoad):
            self.loaded.add(access.buffer)

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops[loop.loop_var] = loop
        self.block_of_loop[loop.loop_var] = self.block
        self.inside(loop.loop_var, loop.body)

    @on(S.LetStmt, E.Let)
    def visit_let(self, let: S.LetStmt | E.Let) -> None:
        self.visit(let.value)
        self.inside(let.var, let.body)

    def inside(self, var: E.Var, body: Node) -> None:
        """Look at what a variable has a value in."""
        self.defined.add(var)
        self.ended.discard(var)
        self.visit(body)
        self.ended.add(var)

    @on(S.AllocBuffer, S.DeclBuffer)
    def visit_allocation(self, allocation: S.AllocBuffer | S.DeclBuffer) -> None:
        self.define(allocation.buffer)
        self.visit(allocation.body)

    @on(S.AttrStmt)
    def visit_attribute(self, attribute: S.AttrStmt) -> None:
        if isinstance(attribute.node, S.IterVar):
            self.defined.add(attribute.node.var)
        self.visit_children(attribute)

    @on(S.BlockRealize)
    def visit_block(self, realize: S.BlockRealize) -> None:
        block = realize.block
        before = self.block, self.place
        self.place = block.span or self.place
        for value in (*realize.iter_values, realize.predicate):
            self.visit(value)
        self.conditions.append(realize.predicate)
        for axis, value in realize.iterators:
            self.check_axis(realize, axis, value)
            self.defined.add(axis.var)
        if block.iter_vars:
            self.block = block
        for buffer in block.alloc_buffers:
            self.define(buffer)
        for match in block.match_buffers:
            check_match(match, self.place)
            self.define(match.buffer)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        for region in (*block.reads, *block.writes):
            self.visit(region)
        self.conditions.pop()
        self.block, self.place = before

    def check_axis(self, realize: S.BlockRealize, axis: S.IterVar, value: E.PrimExpr) -> None:
        """Compare an axis with the loop variable that it is bound to, standing alone and with no
        condition of it; the ranges of other bindings are the business of the iterator analysis."""
        block = realize.block
        loop = self.loops.get(value) if isinstance(value, E.Var) else None
        if loop is None or axis.dom is None or not arithmetic.is_const_int(realize.predicate, 1):
            return
        if any(uses(condition, loop.loop_var) for condition in self.conditions):
            return
        loop_range = _constants(loop.min, loop.extent)
        axis_range = _constants(axis.dom.min, axis.dom.extent)
        if loop_range is None or axis_range is None or loop_range == axis_range:
            return
        name = loop.loop_var.name
        fault = DiagnosticError(
            f'The axis "{axis.var.name}" of the block "{block.name_hint}" has '
            f'{_range(*axis_range)}, but the loop "{name}" that it is bound to runs over '
            f"{_range(*loop_range)}; write `for {name} in {_source(*axis_range)}`, or give the "
            "axis the range of the loop",
            axis.span,
        )
        is_inside = axis_range[0] <= loop_range[0] and sum(loop_range) <= sum(axis_range)
        if not is_inside or any(
            self.must_be_whole(region.buffer, block) for region in block.writes
        ):
            raise fault
        if block in self.inferred:
            for region in block.writes:
                self.partial.setdefault(region.buffer, fault)

    def must_be_whole(self, buffer: Buffer, block: S.Block) -> bool:
        """Whether a block alone writes a parameter that nothing has read before, and does not say
        so: others may write the rest of it, and an input may keep it."""
        if block not in self.inferred or buffer not in self.parameters or buffer in self.loaded:
            return False
        return _stores(self.function.body, buffer) == _stores(block, buffer)


def _stores(statement: S.Stmt, buffer: Buffer) -> int:
    return sum(isinstance(n, S.BufferStore) and n.buffer is buffer for n in walk(statement))


def _differ(one: E.PrimExpr, other: E.PrimExpr) -> bool:
    """Whether two extents are numbers, and not the same one."""
    both = isinstance(one, E.IntImm) and isinstance(other, E.IntImm)
    return both and one.value != other.value  # type: ignore[attr-defined]


def _tuple(extents: Sequence[E.PrimExpr]) -> str:
    return f"({', '.join(map(repr, extents))})"


def _range(start: int, extent: int) -> str:
    return f"{extent} values ({start} to {start + extent - 1})"


def _source(start: int, extent: int) -> str:
    return f"range({start}, {start + extent})" if start else f"range({extent})"


def _constants(low: E.PrimExpr, extent: E.PrimExpr) -> tuple[int, int] | None:
    if isinstance(low, E.IntImm) and isinstance(extent, E.IntImm):
        return low.value, extent.value
    return None
