"""Reads the statements of a function's body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs as C
from mlcweb.script.parser.accesses import describe, vector_indices
from mlcweb.script.parser.actions import ACTIONS
from mlcweb.script.parser.definitions import DEFINITIONS
from mlcweb.script.parser.expressions import Evaluator, scalar_type
from mlcweb.script.parser.frames import BlockContents, FunctionFrame, Wrapper
from mlcweb.script.parser.loops import LOOPS
from mlcweb.script.parser.macros import local_macro
from mlcweb.script.parser.naming import name_buffer, place_statement
from mlcweb.script.parser.with_frames import FRAMES
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.builtins import BUILTINS, call_builtin

_NOT_IN_SCRIPTS = {
    ast.Delete: "`del`",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.ClassDef: "a class definition",
    ast.Try: "`try`",
    ast.Raise: "`raise`",
}


class StatementParser:
    """Turns the body of one function into a statement."""

    def __init__(self, evaluator: Evaluator, function: FunctionFrame) -> None:
        self.evaluator = evaluator
        evaluator.reader = self
        self.scopes = evaluator.scopes
        self.function = function
        self.blocks: list[BlockContents] = []
        self.loops: dict[E.Var, Range] = {}
        self.buffers: dict[E.Var, Buffer] = {b.data: b for b in function.buffer_map.values()}
        self.threads: dict[E.Var, str] = {}
        self.inferred: dict[S.BlockRealize, BlockContents] = {}
        self._statements: list[S.Stmt] = []
        self._wrappers: list[tuple[Wrapper, list[S.Stmt]]] = []

    def body(self, nodes: Sequence[ast.stmt], what: str, at: ast.AST) -> S.Stmt:
        """The statements of an indented block, in a scope of its own."""
        statement = self._body(nodes)
        if statement is None:
            raise self.error(f"{what} has no statement; write `T.evaluate(0)` for none", at)
        return statement

    def body_or_nothing(self, nodes: Sequence[ast.stmt], at: ast.AST) -> S.Stmt:
        """The statements of an indented block which may be empty."""
        nothing = S.Evaluate(arithmetic.const(0), span=self.evaluator.span(at))
        return self._body(nodes) or nothing

    def _body(self, nodes: Sequence[ast.stmt]) -> S.Stmt | None:
        outer = self._statements, self._wrappers
        self._statements, self._wrappers = [], []
        self.scopes.push()
        try:
            self.statements(nodes)
            while self._wrappers:
                wrap, before = self._wrappers.pop()
                inside = self._statements or [S.Evaluate(arithmetic.const(0))]
                self._statements = [*before, wrap(S.sequence(*inside))]
            return S.sequence(*self._statements) if self._statements else None
        finally:
            self.scopes.pop()
            self._statements, self._wrappers = outer

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Read statements into the indented block that is being read."""
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        read = _STATEMENTS.get(type(node))
        if read is None:
            what = _NOT_IN_SCRIPTS.get(type(node), f"Python's {type(node).__name__}")
            raise self.error(f"A script cannot contain {what}", node)
        read(self, node)

    def error(self, message: str, node: ast.AST) -> DiagnosticError:
        return self.evaluator.error(message, node)

    def emit(self, statement: S.Stmt) -> None:
        self._statements.append(statement)

    def wrap_rest(self, wrapper: Wrapper) -> None:
        """Put `wrapper` around all that follows in this indented block."""
        self._wrappers.append((wrapper, self._statements))
        self._statements = []

    @contextmanager
    def locating(self, node: ast.AST):
        """Errors without a place get that of `node`."""
        try:
            yield
        except DiagnosticError as error:
            if error.span is not None:
                raise
            raise self.error(error.message, node) from None

    # What a statement that is a call asks for

    def apply(self, value: Any, node: ast.expr) -> None:
        """Carry out an expression statement."""
        action = ACTIONS.get(type(value))
        if action is not None:
            action(self, value, node)
        elif isinstance(value, S.Stmt):
            self.emit(place_statement(value, self.evaluator.span(node)))
        elif isinstance(value, E.PrimExpr):
            self.emit(S.Evaluate(value, span=self.evaluator.span(node)))
        elif isinstance(value, (C.Allocation, C.Declaration, C.Match, C.Axis)):
            raise self.error(f"Give it a name: `name = {ast.unparse(node)}`", node)
        elif not (value is None or isinstance(value, str) or value is Ellipsis):
            raise self.error(f"{describe(value)} is not a statement", node)

    def block(self, what: str, node: ast.AST) -> BlockContents:
        if not self.blocks:
            raise self.error(f"{what} belongs inside `with T.block(…):`", node)
        return self.blocks[-1]

    # Names

    def bind(self, name: str, value: Any, node: ast.expr) -> None:
        """Carry out `name = value`."""
        define = DEFINITIONS.get(type(value))
        if define is not None:
            define(self, name, value, node)
        elif isinstance(value, E.Var) and not value.name:
            self.declare(name, value, node)
        elif isinstance(value, E.PrimExpr):
            var = E.Var(name, value.dtype, span=self.evaluator.span(node))
            self.let(name, var, value, node)
        elif isinstance(value, (tuple, list)) and any(type(item) in DEFINITIONS for item in value):
            parts = [f"{name}_{number}" for number in range(len(value))]
            for part, item in zip(parts, value, strict=True):
                self.bind(part, item, node)
            self.scopes.bind(name, tuple(map(self.scopes.find, parts)))
        else:
            self.scopes.bind(name, value)

    def bind_target(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        """Carry out `target = value`, where the target may be several names."""
        if isinstance(target, ast.Name):
            with self.locating(node):
                self.bind(target.id, value, node)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.error("Only names and buffer elements can be assigned", target)
        items: list[Any] = list(value) if isinstance(value, (tuple, list, C.MetaVar)) else [value]
        for number, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                end = len(items) - (len(target.elts) - number - 1)
                items[number:end] = [items[number:end]]
        if len(items) != len(target.elts):
            names = len(target.elts)
            raise self.error(f"{names} names on the left, {len(items)} values on the right", node)
        for part, item in zip(target.elts, items, strict=True):
            self.bind_target(part.value if isinstance(part, ast.Starred) else part, item, node)

    def declare(self, name: str, value: E.Var, node: ast.expr) -> None:
        """`n = T.int32()`: a variable. One that a shape has declared by a string stays itself."""
        known = self.scopes.find(name)
        if isinstance(known, E.Var) and known in self.function.params:
            raise self.error(f'"{name}" is a parameter already', node)
        if not (isinstance(known, E.Var) and self.scopes.origin(name) == "a shape variable"):
            var = E.Var(name, value.dtype, value.type_annotation, span=self.evaluator.span(node))
            self.scopes.bind(name, var, "a variable")

    def let(self, name: str, var: E.Var, value: E.PrimExpr, node: ast.expr) -> None:
        """Bind `var` for the rest of this indented block."""
        span = self.evaluator.span(node)
        if self.evaluator.renamed and isinstance(self.scopes.find(name), E.Var):
            raise self.error(
                f'"{name}" has a value already. Scalars that change are not supported: use a '
                f'buffer of one element, `{name} = T.alloc_local((1,), "{value.dtype}")`',
                node,
            )
        self.scopes.bind(name, var, f"a name of line {span.line}")
        self.wrap_rest(lambda body: S.LetStmt(var, value, body, span=span))

    def axis(self, name: str, axis: C.Axis, node: ast.expr) -> None:
        contents = self.block("T.axis", node)
        if any(known.var.name == name for known in contents.axes):
            raise self.error(f'The block "{contents.name}" has an axis "{name}" already', node)
        span = self.evaluator.span(node)
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
        where = f'an axis of the block "{contents.name}" at line {span.line}'
        self.scopes.bind(name, var, where)

    def named(self, buffer: Buffer, name: str) -> Buffer:
        """A new buffer with its name, bound in the scope."""
        named = name_buffer(buffer, name)
        self.buffers[named.data] = named
        self.scopes.bind(name, named, f'the buffer "{name}"')
        return named

    # Stores

    def store(self, target: ast.Subscript, value_node: ast.expr, node: ast.stmt) -> None:
        buffer = self.evaluator.value(target.value)
        if not isinstance(buffer, Buffer):
            raise self.error(f"Only buffers can be written, not {describe(buffer)}", target)
        indices = vector_indices(buffer, self.evaluator.indices(buffer, target.slice, target))
        value = self.evaluator.expression(value_node)
        lanes = dtypes.lanes(indices[-1].dtype) if indices else 1
        dtype = dtypes.with_lanes(buffer.dtype, lanes * dtypes.lanes(buffer.dtype))
        value = self.stored(value, dtype, buffer, value_node)
        self.emit(S.BufferStore(buffer, value, indices, span=self.evaluator.span(node)))

    def stored(self, value: E.PrimExpr, dtype: str, buffer: Buffer, node: ast.expr) -> E.PrimExpr:
        """`value` as the buffer's type, cast where it has another."""
        if value.dtype == dtype:
            return value
        lanes, wanted = dtypes.lanes(value.dtype), dtypes.lanes(dtype)
        handles = {"handle", "void"} & {value.dtype, dtype}
        if handles or (lanes != wanted and lanes != 1):
            raise self.error(
                f'The buffer "{buffer.name}" takes values of type {dtype} here, not {value.dtype}',
                node,
            )
        return arithmetic.cast(dtype, value)


def _assign(self: StatementParser, node: ast.Assign) -> None:
    if len(node.targets) > 1:
        raise self.error("Assign one name at a time", node)
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        with self.locating(node):
            self.store(target, node.value, node)
        return
    value = self.evaluator.operand(node.value)
    self.bind_target(target, value, node.value)


def _annotated(self: StatementParser, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise self.error("Only a name can have a type", node)
    given = _type_of_let(node.annotation)
    value = None
    if node.value is not None:
        value = self.evaluator.operand(node.value)
        if given is None or type(value) in DEFINITIONS:
            self.bind_target(node.target, value, node.value)
            return
    annotation = self.evaluator.value(given)
    pointer = annotation.type_annotation if isinstance(annotation, E.Var) else None
    dtype = "handle" if pointer else scalar_type(annotation)
    if dtype is None:
        raise self.error("Expected a type such as T.int32", node.annotation)
    name, span = node.target.id, self.evaluator.span(node)
    if value is None:
        self.declare(name, E.Var("", dtype, pointer), node.target)
        return
    value = arithmetic.cast(dtype, value)
    self.let(name, E.Var(name, dtype, pointer, span=span), value, node.target)


def _type_of_let(annotation: ast.expr) -> ast.expr | None:
    """The type inside `T.let[…]`, by which newer scripts mark bindings; None where it is that of
    the value."""
    match annotation:
        case ast.Subscript(value=ast.Attribute(attr="let"), slice=inside):
            return inside
        case ast.Attribute(attr="let"):
            return None
    return annotation


def _augmented(self: StatementParser, node: ast.AugAssign) -> None:
    value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
    if not isinstance(node.target, ast.Subscript):
        raise self.error(
            f"A name keeps its value; give `{ast.unparse(value)}` a name of its own", node
        )
    with self.locating(node):
        self.store(node.target, value, node)


def _expression(self: StatementParser, node: ast.Expr) -> None:
    with self.locating(node):
        self.apply(self.evaluator.operand(node.value), node.value)


def _pass(self: StatementParser, node: ast.Pass) -> None:
    self.emit(S.Evaluate(arithmetic.const(0), span=self.evaluator.span(node)))


def _return(self: StatementParser, node: ast.Return) -> None:
    if node.value is None:
        raise self.error("A script returns at its end only", node)
    value = call_builtin(BUILTINS["ret"], self.evaluator.expression(node.value))
    self.emit(S.Evaluate(value, span=self.evaluator.span(node)))


def _definition(self: StatementParser, node: ast.FunctionDef) -> None:
    macro = local_macro(self.evaluator, node)
    if macro is None:
        raise self.error(
            "A script cannot contain a function definition; statements that are used several times "
            "are a macro, `@T.macro`",
            node,
        )
    self.scopes.bind(node.name, macro)


def _outer_names(self: StatementParser, node: ast.Global | ast.Nonlocal) -> None:
    """A macro sees the names around it without more."""


def _if(self: StatementParser, node: ast.If) -> None:
    condition = self.evaluator.operand(node.test)
    if not isinstance(condition, E.PrimExpr):
        # Python's own condition chooses while the script is read.
        self.statements(node.body if condition else node.orelse)
        return
    then_case = self.body(node.body, "The branch", node)
    else_case = self.body(node.orelse, "The branch", node) if node.orelse else None
    condition = arithmetic.cast("bool", condition)
    self.emit(S.IfThenElse(condition, then_case, else_case, span=self.evaluator.span(node)))


def _assert(self: StatementParser, node: ast.Assert) -> None:
    condition = self.evaluator.expression(node.test)
    message = C.as_value(self.evaluator.value(node.msg) if node.msg else "")
    span = self.evaluator.span(node)
    self.wrap_rest(lambda body: S.AssertStmt(condition, message, body, span=span))


def _with(self: StatementParser, node: ast.With) -> None:
    _enter(self, list(node.items), node)


def _enter(self: StatementParser, items: list[ast.withitem], node: ast.With) -> None:
    item, rest = items[0], items[1:]
    frame = self.evaluator.value(item.context_expr)
    enter = FRAMES.get(type(frame))
    if enter is None:
        raise self.error(f"`with` does not take {describe(frame)}", item.context_expr)
    if rest:
        inner = ast.copy_location(ast.With(rest, node.body), node)
        node = ast.copy_location(ast.With([item], [inner]), node)
    enter(self, frame, item, node)


_STATEMENTS: dict[type, Callable[[StatementParser, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Pass: _pass,
    ast.Return: _return,
    ast.If: _if,
    ast.Assert: _assert,
    ast.With: _with,
    **LOOPS,
    ast.FunctionDef: _definition,
    ast.Global: _outer_names,
    ast.Nonlocal: _outer_names,
}
