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
    ast.FunctionDef: "a function definition",
    ast.ClassDef: "a class definition",
    ast.Try: "`try`",
    ast.Raise: "`raise`",
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
}


class StatementParser:
    """Turns the body of one function into a statement."""

    def __init__(self, evaluator: Evaluator, function: FunctionFrame) -> None:
        self.evaluator = evaluator
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

    def _body(self, nodes: Sequence[ast.stmt]) -> S.Stmt | None:
        outer = self._statements, self._wrappers
        self._statements, self._wrappers = [], []
        self.scopes.push()
        try:
            for node in nodes:
                self.statement(node)
            while self._wrappers:
                wrap, before = self._wrappers.pop()
                inside = self._statements or [S.Evaluate(arithmetic.const(0))]
                self._statements = [*before, wrap(S.sequence(*inside))]
            return S.sequence(*self._statements) if self._statements else None
        finally:
            self.scopes.pop()
            self._statements, self._wrappers = outer

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
        else:
            self.scopes.bind(name, value)

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
    _bind_target(self, target, value, node.value)


def _bind_target(self: StatementParser, target: ast.expr, value: Any, node: ast.expr) -> None:
    if isinstance(target, ast.Name):
        with self.locating(node):
            self.bind(target.id, value, node)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise self.error("Only names and buffer elements can be assigned", target)
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(items) != len(target.elts):
        names = len(target.elts)
        raise self.error(f"{names} names on the left, {len(items)} values on the right", node)
    for part, item in zip(target.elts, items, strict=True):
        _bind_target(self, part, item, node)


def _annotated(self: StatementParser, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise self.error("Only a name can have a type", node)
    annotation = self.evaluator.value(_type_of_let(node.annotation))
    pointer = annotation.type_annotation if isinstance(annotation, E.Var) else None
    dtype = "handle" if pointer else scalar_type(annotation)
    if dtype is None:
        raise self.error("Expected a type such as T.int32", node.annotation)
    name, span = node.target.id, self.evaluator.span(node)
    if node.value is None:
        self.declare(name, E.Var("", dtype, pointer), node.target)
        return
    value = arithmetic.cast(dtype, self.evaluator.expression(node.value))
    self.let(name, E.Var(name, dtype, pointer, span=span), value, node.target)


def _type_of_let(annotation: ast.expr) -> ast.expr:
    """The type inside `T.let[…]`, by which newer scripts mark bindings."""
    match annotation:
        case ast.Subscript(value=ast.Attribute(attr="let"), slice=inside):
            return inside
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


def _for(self: StatementParser, node: ast.For) -> None:
    if node.orelse:
        raise self.error("A loop of a script has no `else`", node.orelse[0])
    loops = self.evaluator.value(node.iter)
    if not isinstance(loops, C.Loops):
        raise self.error(
            "A loop runs over range(…), T.grid(…), T.serial(…), T.parallel(…), T.vectorized(…), "
            f"T.unroll(…) or T.thread_binding(…), not over {describe(loops)}",
            node.iter,
        )
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != len(loops.domains):
        raise self.error(
            f"{len(targets)} loop variable(s) for {len(loops.domains)} extent(s)", node.target
        )
    span = self.evaluator.span(node)
    variables = []
    self.scopes.push()
    for target, domain in zip(targets, loops.domains, strict=True):
        if not isinstance(target, ast.Name):
            raise self.error("A loop variable is a name", target)
        var = E.Var(target.id, domain.extent.dtype, span=self.evaluator.span(target))
        if any(known.name == var.name for known in variables):
            raise self.error(f'Two loops have the variable "{var.name}"', target)
        variables.append(var)
        self.loops[var] = domain
        self.scopes.bind(target.id, var, f"the variable of the loop at line {span.line}")
    statement = self.body(node.body, "The loop", node)
    self.scopes.pop()
    for var, domain in zip(reversed(variables), reversed(loops.domains), strict=True):
        thread = None
        if loops.thread is not None:
            thread_var = E.Var("", var.dtype)
            thread = S.IterVar(None, thread_var, S.IterType.THREAD_INDEX, loops.thread)
        statement = S.For(
            var, domain.min, domain.extent, loops.kind, statement, thread, loops.annotations,
            span=span,
        )  # fmt: skip
    self.emit(statement)


def _while(self: StatementParser, node: ast.While) -> None:
    if node.orelse:
        raise self.error("A loop of a script has no `else`", node.orelse[0])
    condition = self.evaluator.expression(node.test)
    body = self.body(node.body, "The loop", node)
    self.emit(S.While(condition, body, span=self.evaluator.span(node)))


def _if(self: StatementParser, node: ast.If) -> None:
    condition = self.evaluator.operand(node.test)
    if not isinstance(condition, E.PrimExpr):
        # Python's own condition chooses while the script is read.
        for statement in node.body if condition else node.orelse:
            self.statement(statement)
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
    ast.For: _for,
    ast.While: _while,
    ast.If: _if,
    ast.Assert: _assert,
    ast.With: _with,
}
