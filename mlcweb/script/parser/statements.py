"""Reads the statements of a function's body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import replace
from mlcweb.ir.span import Span
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.base import IRBuilder
from mlcweb.script.ir_builder.definitions import DEFINITIONS
from mlcweb.script.ir_builder.frames import FunctionFrame
from mlcweb.script.ir_builder.naming import describe
from mlcweb.script.ir_builder.statements import PythonNames, StatementBuilder
from mlcweb.script.ir_builder.with_frames import FRAMES
from mlcweb.script.parser.accesses import vector_indices
from mlcweb.script.parser.expressions import Evaluator, scalar_type
from mlcweb.script.parser.loops import LOOPS
from mlcweb.script.parser.macros import local_macro
from mlcweb.script.parser.scalars import assign, change, changing_names
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.builtins import BUILTINS, call_builtin

_NOT_IN_SCRIPTS = {
    ast.Delete: "`del`",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.ClassDef: "a class definition",
    ast.Try: "`try`",
    ast.Raise: "`raise`",
}


class StatementParser(StatementBuilder):
    """Turns the body of one function into a statement."""

    def __init__(self, evaluator: Evaluator, function: FunctionFrame) -> None:
        super().__init__(function, evaluator.scopes)
        self.evaluator = evaluator
        evaluator.reader = self
        self.changing: set[str] = set()
        self.scalars: dict[E.BufferLoad, Buffer] = {}
        self._scanned: Evaluator | None = None
        self._call: ast.Call | None = None

    def span(self, node: ast.AST | None) -> Span:
        """Where a node stands; what Python builds, stands where the script calls it."""
        return self.evaluator.span(self._call if node is None else node)

    @contextmanager
    def building(self, call: ast.Call) -> Iterator[None]:
        """What `T` is told inside goes where the script makes this call."""
        outer = self.scopes, self._call
        self.scopes, self._call = PythonNames(), call
        with IRBuilder(self):
            yield
        self.scopes, self._call = outer

    def body(self, nodes: Sequence[ast.stmt], what: str, at: ast.AST) -> S.Stmt:
        """The statements of an indented block, in a scope of its own."""
        with self.indented() as inside:
            self.statements(nodes)
        return self.some(inside, what, at)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Read statements into the indented block that is being read."""
        if self._scanned is not self.evaluator:  # a function, or a macro, from its start
            params = [param.name.removesuffix("_handle") for param in self.function.params]
            self.changing |= changing_names(body, params)
            self._scanned = self.evaluator
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        read = _STATEMENTS.get(type(node))
        if read is None:
            what = _NOT_IN_SCRIPTS.get(type(node), f"Python's {type(node).__name__}")
            raise self.error(f"A script cannot contain {what}", node)
        read(self, node)

    @contextmanager
    def locating(self, node: ast.AST):
        """Errors without a place get that of `node`."""
        try:
            yield
        except DiagnosticError as error:
            raise error.located(self.span(node)) from None

    def carry_out(self, value: Any, node: ast.expr) -> None:
        """Carry out an expression statement."""
        if self.apply(value, node) or value is None or isinstance(value, str) or value is Ellipsis:
            return
        if isinstance(value, (C.Allocation, C.Declaration, C.Match, C.Axis)):
            raise self.error(f"Give it a name: `name = {ast.unparse(node)}`", node)
        raise self.error(f"{describe(value)} is not a statement", node)

    # Names

    def bind(self, name: str, value: Any, node: ast.expr) -> None:
        """Carry out `name = value`."""
        if assign(self, name, value, node):
            return
        if type(value) in DEFINITIONS:
            self.define(name, value, node)
        elif isinstance(value, E.Var) and (not value.name or _makes_variable(node)):
            self.declare(name, value, node)
        elif isinstance(value, (bool, int, float, E.PrimExpr)):
            value = arithmetic.convert(value)
            var = E.Var(name, value.dtype, span=self.span(node))
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
        current = self.scopes.find(name)
        if isinstance(current, E.Var) and current in self.function.params:
            raise self.error(f'"{name}" is a parameter already', node)
        if not (isinstance(current, E.Var) and self.scopes.origin(name) == "a shape variable"):
            var = replace(value, name=name, span=self.span(node))
            self.scopes.bind(name, var, "a variable")

    # Stores

    def store(self, target: ast.Subscript, value_node: ast.expr, node: ast.stmt) -> None:
        buffer = self.evaluator.value(target.value)
        if not isinstance(buffer, Buffer):
            raise self.error(f"Only buffers can be written, not {describe(buffer)}", target)
        indices = vector_indices(buffer, self.evaluator.indices(buffer, target.slice, target))
        value = self.evaluator.expression(value_node)
        dtype = dtypes.vector_at(buffer.dtype, indices[-1].dtype) if indices else buffer.dtype
        value = self.stored(value, dtype, buffer, value_node)
        self.emit(S.BufferStore(buffer, value, indices, span=self.span(node)))

    def stored(self, value: E.PrimExpr, dtype: str, buffer: Buffer, node: ast.expr) -> E.PrimExpr:
        """`value` as the buffer's type, cast where it has another."""
        if value.dtype == dtype:
            return value
        lanes, target_lanes = dtypes.lane_count(value.dtype), dtypes.lane_count(dtype)
        handles = {"handle", "void"} & {value.dtype, dtype}
        if handles or (lanes != target_lanes and lanes != 1):
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
    type_node = _type_of_let(node.annotation)
    value = None
    if node.value is not None:
        value = self.evaluator.operand(node.value)
        if type_node is None or type(value) in DEFINITIONS:
            self.bind_target(node.target, value, node.value)
            return
    annotation = self.evaluator.value(type_node)
    if isinstance(annotation, E.Var) and not annotation.name:  # `T.int32()`, `T.handle("float32")`
        pointer, dtype = annotation.type_annotation, annotation.dtype
    else:
        pointer, dtype = None, scalar_type(annotation)
    if dtype is None:
        raise self.error("Expected a type such as T.int32", node.annotation)
    name, span = node.target.id, self.span(node)
    if value is None:
        self.declare(name, E.Var("", dtype, pointer), node.target)
        return
    value = arithmetic.cast(dtype, value)
    if type_node is node.annotation and assign(self, name, value, node.target):
        return
    self.let(name, E.Var(name, dtype, pointer, span=span), value, node.target)


def _makes_variable(node: ast.expr) -> bool:
    """Whether an expression is `T.Var("n", "int64")`, or `te.var("n")`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="Var" | "SizeVar" | "var" | "size_var")):
            return True
    return False


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
    if isinstance(node.target, ast.Name) and node.target.id in self.changing:
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        current = self.scopes.find(node.target.id)
        if isinstance(current, E.BufferLoad) and current in self.scalars:
            change(self, current, self.evaluator.expression(value), node)
            return
    if not isinstance(node.target, ast.Subscript):
        raise self.error(
            f"A name keeps its value; give `{ast.unparse(value)}` a name of its own", node
        )
    with self.locating(node):
        self.store(node.target, value, node)


def _expression(self: StatementParser, node: ast.Expr) -> None:
    with self.locating(node):
        self.carry_out(self.evaluator.operand(node.value), node.value)


def _pass(self: StatementParser, node: ast.Pass) -> None:
    self.emit(S.Evaluate(arithmetic.const(0), span=self.span(node)))


def _return(self: StatementParser, node: ast.Return) -> None:
    if node.value is None:
        raise self.error("A script returns at its end only", node)
    value = call_builtin(BUILTINS["ret"], self.evaluator.expression(node.value))
    self.emit(S.Evaluate(value, span=self.span(node)))


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
    if isinstance(
        condition, E.EqualOp
    ):  # of expressions that Python compared outside of the script
        condition = condition.asobject()
    if not isinstance(condition, E.PrimExpr):
        # Python's own condition chooses while the script is read.
        self.statements(node.body if condition else node.orelse)
        return
    then_case = self.body(node.body, "The branch", node)
    else_case = self.body(node.orelse, "The branch", node) if node.orelse else None
    condition = arithmetic.cast("bool", condition)
    self.emit(S.IfThenElse(condition, then_case, else_case, span=self.span(node)))


def _assert(self: StatementParser, node: ast.Assert) -> None:
    condition = self.evaluator.expression(node.test)
    message = self.evaluator.value(node.msg) if node.msg else ""
    kind = "RuntimeError"
    if isinstance(message, (list, tuple)):  # since 2026 ("ValueError", ["expected ", "4"])
        kind, message = str(message[0]), "".join(map(str, message[1]))
    text, span = arithmetic.convert(message), self.span(node)
    self.wrap_rest(lambda body: S.AssertStmt(condition, text, body, kind, span=span))


def _with(self: StatementParser, node: ast.With) -> None:
    _enter(self, list(node.items), node)


def _enter(self: StatementParser, items: list[ast.withitem], node: ast.With) -> None:
    if not items:
        self.statements(node.body)
        return
    at = items[0].context_expr
    frame = self.evaluator.value(at)
    enter = FRAMES.get(type(frame))
    if enter is None:
        raise self.error(f"`with` does not take {describe(frame)}", at)
    with enter(self, frame, _names_after_as(self, items[0].optional_vars), at):
        _enter(self, items[1:], node)


def _names_after_as(self: StatementParser, target: ast.expr | None) -> list[str]:
    if target is None:
        return []
    parts = target.elts if isinstance(target, (ast.List, ast.Tuple)) else [target]
    for part in parts:
        if not isinstance(part, ast.Name):
            raise self.error("What `as` names is a name", part)
    return [part.id for part in parts if isinstance(part, ast.Name)]


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
