"""Collects the statements of one function: those that a script is read as, or that Python calls
of `tvm.script.ir_builder` make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.span import Span
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.actions import ACTIONS
from mlcweb.script.ir_builder.definitions import DEFINITIONS
from mlcweb.script.ir_builder.frames import BlockContents, FunctionFrame, Wrapper
from mlcweb.script.ir_builder.naming import describe, name_buffer, place_statement
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.substitute import substitute


class PythonNames:
    """Names where Python itself runs the calls, and keeps what they give."""

    def push(self) -> None: ...
    def pop(self) -> None: ...
    def bind(self, name: str, value: Any, origin: str = "") -> None: ...
    def find(self, name: str, default: Any = None) -> Any: ...
    def find_here(self, name: str) -> Any: ...
    def origin(self, name: str) -> str:
        return ""


@dataclass(slots=True)
class Indented:
    """An indented block: its statement once it has been left, None if it has none."""

    statement: S.Stmt | None = None


@dataclass(slots=True)
class Branches:
    """An `if` of which Python builds the branches."""

    then_case: S.Stmt | None = None
    else_case: S.Stmt | None = None


class StatementBuilder:
    """Makes one statement of what is emitted.

    The tables `ACTIONS`, `DEFINITIONS` and `FRAMES` say what a call, `name = …` and `with` do to
    it, by the type of the value.
    """

    def __init__(self, function: FunctionFrame, scopes: Any) -> None:
        self.function = function
        self.scopes: Any = scopes  # `Scopes` of the parser, or `PythonNames`
        self.blocks: list[BlockContents] = []
        self.loops: dict[E.Var, Range] = {}
        self.buffers: dict[E.Var, Buffer] = {b.data: b for b in function.buffer_map.values()}
        self.allocated_by: dict[Buffer, Any] = {}
        """What in the script allocates a buffer: in a loop that is read once for each value, the
        same allocates several."""
        self.threads: dict[E.Var, str] = {}
        self.inferred: dict[S.BlockRealize, BlockContents] = {}
        self.branches: list[Branches] = []
        self._statements: list[S.Stmt] = []
        self._wrappers: list[tuple[Wrapper, list[S.Stmt]]] = []

    def span(self, node: Any) -> Span | None:
        """Where `node` stands in a source."""
        return None

    def error(self, message: str, node: Any) -> DiagnosticError:
        return DiagnosticError(message, self.span(node))

    def emit(self, statement: S.Stmt) -> None:
        self._statements.append(statement)

    def replace_last(self, statement: S.Stmt) -> None:
        """Emit a statement in place of the last one."""
        self._statements[-1] = statement

    def wrap_rest(self, wrapper: Wrapper) -> None:
        """Put `wrapper` around all that follows in this indented block."""
        self._wrappers.append((wrapper, self._statements))
        self._statements = []

    @contextmanager
    def indented(self) -> Iterator[Indented]:
        """Collect what is emitted inside, in a scope of its own."""
        inside = Indented()
        outer = self._statements, self._wrappers
        self._statements, self._wrappers = [], []
        self.scopes.push()
        try:
            yield inside
            while self._wrappers:
                wrap, before = self._wrappers.pop()
                rest = self._statements or [S.Evaluate(arithmetic.const(0))]
                self._statements = [*before, wrap(S.sequence(*rest))]
            if self._statements:
                inside.statement = S.sequence(*self._statements)
        finally:
            self.scopes.pop()
            self._statements, self._wrappers = outer

    def some(self, inside: Indented, what: str, node: Any) -> S.Stmt:
        """The statement of an indented block, which must have one."""
        if inside.statement is None:
            raise self.error(f"{what} has no statement; write `T.evaluate(0)` for none", node)
        return inside.statement

    def block(self, what: str, node: Any) -> BlockContents:
        """The block that a call belongs to."""
        if not self.blocks:
            raise self.error(f"{what} belongs inside `with T.block(…):`", node)
        return self.blocks[-1]

    def apply(self, value: Any, node: Any) -> bool:
        """Carry out a call that is a statement; whether it is one."""
        action = ACTIONS.get(type(value))
        if action is not None:
            action(self, value, node)
        elif isinstance(value, S.Stmt):
            self.emit(place_statement(value, self.span(node)))
        elif isinstance(value, E.PrimExpr):
            self.emit(S.Evaluate(value, span=self.span(node)))
        return action is not None or isinstance(value, (S.Stmt, E.PrimExpr))

    def define(self, name: str, value: Any, node: Any) -> Any:
        """Carry out `name = value` for what `DEFINITIONS` has; what the name then means."""
        return DEFINITIONS[type(value)](self, name, value, node)

    def let(self, name: str, var: E.Var, value: E.PrimExpr, node: Any) -> E.Var:
        """Bind `var` for the rest of this indented block."""
        span = self.span(node)
        self.scopes.bind(name, var, f"a name of line {span.line}" if span else "")
        self.wrap_rest(lambda body: S.LetStmt(var, value, body, span=span))
        if self.blocks:
            names = self.blocks[-1].names
            names[var] = substitute(value, names)
        return var

    def axis(self, name: str, axis: C.Axis, node: Any) -> E.Var:
        contents = self.block("T.axis", node)
        if node is not None and any(iter_var.var.name == name for iter_var in contents.axes):
            raise self.error(f'The block "{contents.name}" has an axis "{name}" already', node)
        span = self.span(node)
        domain = axis.domain
        if domain is None:
            domain = self.loops.get(axis.value) if isinstance(axis.value, E.Var) else None
            if domain is None:
                raise self.error(
                    f"T.axis.remap takes loop variables, not {describe(axis.value)}; write "
                    f"`{name} = T.axis.spatial(extent, value)`",
                    node,
                )
        var = E.Var(name, domain.extent.dtype, span=span)
        value = axis.value
        if value.dtype != var.dtype and isinstance(value, E.IntImm):
            value = arithmetic.cast(var.dtype, value)
        contents.axes.append(S.IterVar(domain, var, axis.iter_type, span=span))
        contents.values.append(value)
        at = f" at line {span.line}" if span else ""
        self.scopes.bind(name, var, f'an axis of the block "{contents.name}"{at}')
        return var

    def named(self, buffer: Buffer, name: str) -> Buffer:
        """A new buffer with its name, bound in the scope."""
        named = name_buffer(buffer, name)
        self.buffers[named.data] = named
        self.scopes.bind(name, named, f'the buffer "{name}"')
        return named
