"""Double buffers: a loop that fills one half of a buffer for its next iteration while it uses the
other.

    for i in range(n):
        with T.attr(S.data, "double_buffer_scope", 1):
            S[...] = A[i, ...]
        C[i, ...] = f(S[...])

first fills for iteration 0, and then, in each iteration, for the next one. The option
"tir.InjectDoubleBuffer" says by `split_loop` into how many iterations at once the loop is split, so
that the halves are known; 0 leaves it whole. The last iterations then follow the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import register_option
from mlcweb.ir.visitor import Mutator, children, on, rewrite_nodes, walk
from mlcweb.lower.options import configured
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, floormod, multiply, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

SCOPE = "double_buffer_scope"
WRITE = "double_buffer_write"

DOUBLE_BUFFER = register_option("tir.InjectDoubleBuffer", dict)
"""How loops with double buffers are split."""


@dataclass(frozen=True, slots=True)
class InjectDoubleBufferConfig:
    """Into how many iterations at once a loop is split; 0 leaves it whole."""

    split_loop: int = 1


def is_double_buffer(node: Node) -> bool:
    """Whether a statement fills a double buffer."""
    return isinstance(node, S.AttrStmt) and node.attr_key == SCOPE and isinstance(node.node, E.Var)


def inject_double_buffer(func: PrimFunc) -> PrimFunc:
    """Fill double buffers one iteration before they are used.

    Raises:
        TVMError: what fills a buffer is not in a loop that allocates it, or depends on the rest of
            the loop's body.
    """
    marks = [part for part in S.statements_in(func.body) if is_double_buffer(part)]
    if not marks:
        return func
    new = func.with_body(_Injection().rewrite(func.body))
    left = next((part for part in S.statements_in(new.body) if is_double_buffer(part)), None)
    if left is not None:
        raise TVMError(
            f'"{SCOPE}" marks what fills a buffer in each iteration of a loop, and is outside of '
            "loops; move it into the loop that uses the buffer",
            left.span,
        )
    return new


class _Injection(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        new = self.rewrite_children(loop)
        marks = [part for part in _outside_of_loops(new.body) if is_double_buffer(part)]
        if not marks:
            return new
        allocated = {
            part.buffer.data: part.buffer
            for part in _outside_of_loops(new.body)
            if isinstance(part, S.AllocBuffer)
        }
        halves: dict[Buffer, Buffer] = {}
        for mark in marks:
            buffer = allocated.get(mark.node)  # type: ignore[attr-defined]
            if buffer is None or not buffer.shape:
                raise TVMError(
                    f'"{mark.node.name}" is no array that loop "{loop.loop_var.name}" '  # type: ignore[attr-defined]
                    "allocates, so that it cannot have two halves there; allocate it in the loop",
                    mark.span,
                )
            halves[buffer] = replace(
                buffer, shape=(multiply(buffer.shape[0], const(2)), *buffer.shape[1:])
            )
        _check_independent(new, marks)
        return _Doubling(new, halves).emit()


def _outside_of_loops(statement: S.Stmt) -> list[S.Stmt]:
    statements = [statement]
    for part in children(statement):
        if isinstance(part, S.Stmt) and not isinstance(part, S.For):
            statements += _outside_of_loops(part)
    return statements


def _check_independent(loop: S.For, marks: list[S.Stmt]) -> None:
    """Raise a TVMError where a double buffer cannot be filled before the rest has run."""
    own = {mark.node for mark in marks}  # type: ignore[attr-defined]
    inside = {id(part) for mark in marks for part in walk(mark)}
    read: tuple[set[E.Var], set[E.Var]] = set(), set()
    written: tuple[set[E.Var], set[E.Var]] = set(), set()
    for part in walk(loop.body):
        if isinstance(part, (E.BufferLoad, S.BufferStore)) and part.buffer.data not in own:
            sets = written if isinstance(part, S.BufferStore) else read
            sets[id(part) in inside].add(part.buffer.data)
        elif isinstance(part, S.BufferStore) and id(part) not in inside:
            raise TVMError(
                f'"{part.buffer.name}" is a double buffer, and written outside of what fills it '
                f'(under "{SCOPE}"); write it there, or to another buffer',
                part.span,
            )
    shared = (written[0] & (read[1] | written[1])) | (written[1] & read[0])
    if shared:
        names = ", ".join(sorted(f'"{data.name}"' for data in shared))
        raise TVMError(
            f'What fills a double buffer in loop "{loop.loop_var.name}" runs one iteration early, '
            f"and depends on the rest of the loop through {names}; fill it from what the loop does "
            "not write",
            marks[0].span,
        )


class _Doubling(Mutator):
    """Emits one loop."""

    def __init__(self, loop: S.For, halves: Mapping[Buffer, Buffer]) -> None:
        self.source = loop
        self.halves = halves
        self.fills: list[S.Stmt] = []
        self.end = add(loop.min, loop.extent)
        self.analyzer = Analyzer()

    def emit(self) -> S.Stmt:
        loop, var = self.source, self.source.loop_var
        body = self.rewrite(loop.body)
        one = const(1, var.dtype)
        first = [fresh_statement(substitute(fill, {var: loop.min})) for fill in self.fills]
        count = configured(DOUBLE_BUFFER, InjectDoubleBufferConfig).split_loop
        if count < 0:
            raise TVMError(f'"split_loop" of "{DOUBLE_BUFFER}" is {count}; it is 0 or more')
        whole: S.Stmt = replace(loop, body=body)
        if count:
            factor = const(count, var.dtype)
            before_last = subtract(loop.extent, one)
            if not self.analyzer.can_prove(before_last >= 0):
                before_last = E.Max(before_last, const(0, var.dtype))
            outer = floordiv(before_last, factor)
            counter = E.Var(f"{var.name}_outer", var.dtype, span=var.span)
            starts = [add(loop.min, multiply(at, factor)) for at in (counter, outer)]
            main, rest = (
                [add(start, const(n, var.dtype)) for n in range(count)] for start in starts
            )
            each = (fresh_statement(substitute(body, {var: at})) for at in main)
            zero, together = const(0, var.dtype), S.sequence(*each)
            split = replace(loop, loop_var=counter, min=zero, extent=outer, body=together)
            last = rewrite_nodes(
                body, S.AttrStmt, lambda mark: mark.body if mark.attr_key == WRITE else mark
            )
            tail = (
                S.IfThenElse(at < self.end, fresh_statement(substitute(last, {var: at})))
                for at in rest
            )
            whole = S.sequence(split, *tail)
        fill = S.sequence(*first)
        if not self.analyzer.can_prove(loop.extent > 0):
            fill = S.IfThenElse(loop.extent > 0, fill)
        result = S.sequence(fill, whole)
        for buffer in self.halves.values():
            result = S.AllocBuffer(buffer, result)
        return result

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        if statement.buffer in self.halves:
            return self.rewrite(statement.body)
        return self.rewrite_children(statement)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        if not is_double_buffer(statement):
            return new
        self.fills.append(new.body)
        var = self.source.loop_var
        following = add(var, const(1, var.dtype))
        body = fresh_statement(substitute(new.body, {var: following}))
        return S.IfThenElse(following < self.end, S.AttrStmt(new.node, WRITE, const(1), body))

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        buffer = self.halves.get(node.buffer)
        if buffer is None:
            return new
        var = self.source.loop_var
        half = floormod(subtract(var, self.source.min), const(2, var.dtype))
        first = add(multiply(half, node.buffer.shape[0]), new.indices[0])
        return replace(new, buffer=buffer, indices=(first, *new.indices[1:]))
