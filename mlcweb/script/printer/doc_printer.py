"""Docs as Python text, with carets below the parts that were printed for given paths."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlcweb.ir.access_path import AccessPath
from mlcweb.script.printer import doc as docs
from mlcweb.script.printer.doc import Doc, ExprDoc, OperationKind, StmtDoc

Span = tuple[int, int]

TOKENS = {
    OperationKind.USub: "-", OperationKind.Invert: "~", OperationKind.Not: "not ",
    OperationKind.Add: "+", OperationKind.Sub: "-", OperationKind.Mult: "*",
    OperationKind.Div: "/", OperationKind.FloorDiv: "//", OperationKind.Mod: "%",
    OperationKind.Pow: "**", OperationKind.LShift: "<<", OperationKind.RShift: ">>",
    OperationKind.BitAnd: "&", OperationKind.BitOr: "|", OperationKind.BitXor: "^",
    OperationKind.Lt: "<", OperationKind.LtE: "<=", OperationKind.Eq: "==",
    OperationKind.NotEq: "!=", OperationKind.Gt: ">", OperationKind.GtE: ">=",
    OperationKind.And: "and", OperationKind.Or: "or",
}  # fmt: skip

_LEVELS: tuple[str, ...] = (
    "Lambda", "IfThenElse", "Or", "And", "Not", "Lt LtE Eq NotEq Gt GtE", "BitOr", "BitXor",
    "BitAnd", "LShift RShift", "Add Sub", "Mult Div FloorDiv Mod", "USub Invert", "Pow", "Primary",
)  # fmt: skip
_PRECEDENCE = {name: level for level, names in enumerate(_LEVELS) for name in names.split()}
PRIMARY = _PRECEDENCE["Primary"]


def precedence(doc: ExprDoc) -> int:
    """How tightly the outermost part of an expression binds, from 0 (lambda)."""
    if isinstance(doc, docs.OperationDoc):
        return _PRECEDENCE[doc.kind.name]
    return _PRECEDENCE["Lambda"] if isinstance(doc, docs.LambdaDoc) else PRIMARY


def to_python_script(
    doc: Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[AccessPath] | None = None,
) -> str:
    """The Python text of a doc.

    Of the parts with source paths that are prefixes of a path of `path_to_underline`, the longest
    are underlined, and only `num_context_lines` lines around what is underlined are written if that
    is given.

    Raises:
        ValueError: the comment of a simple statement has several lines.
    """
    printer = DocPrinter(indent_spaces)
    printer.doc(doc)
    text = "".join(printer.parts)
    spans = [span for path in path_to_underline or () for span in printer.best_spans(path)]
    return decorate(text, spans, print_line_numbers, num_context_lines)


class DocPrinter:
    """Text being written, and what part of it was written for which path."""

    def __init__(self, indent_spaces: int = 4) -> None:
        self.parts: list[str] = []
        self.spans: list[tuple[AccessPath, Span]] = []
        self._length = 0
        self._step = " " * indent_spaces
        self._indent = "\n"

    def best_spans(self, path: AccessPath) -> list[Span]:
        """Where the longest known prefixes of a path are printed."""
        printed = [
            (len(printed), span) for printed, span in self.spans if printed.is_prefix_of(path)
        ]
        longest = max((length for length, _ in printed), default=0)
        return [span for length, span in printed if length == longest]

    def doc(self, doc: Doc) -> None:
        start = self._length
        _WRITERS[type(doc)](self, doc)
        self.spans += ((path, (start, self._length)) for path in doc.source_paths)

    def write(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text)

    def _line(self) -> None:
        self.write(self._indent)

    def _joined(self, things: Iterable[Doc], separator: str = ", ") -> None:
        for index, thing in enumerate(things):
            if index:
                self.write(separator)
            self.doc(thing)

    def _operand(self, doc: ExprDoc, at_least: int) -> None:
        if precedence(doc) >= at_least:
            self.doc(doc)
        else:
            self.write("(")
            self.doc(doc)
            self.write(")")

    # Expressions

    def literal(self, doc: docs.LiteralDoc) -> None:
        value = doc.value
        if isinstance(value, str):
            self.write(json.dumps(value, ensure_ascii=False))
        elif isinstance(value, float) and not math.isfinite(value):
            self.write(f'float("{value}")')
        else:
            self.write(repr(value))

    def identifier(self, doc: docs.IdDoc) -> None:
        self.write(doc.name)

    def attribute(self, doc: docs.AttrAccessDoc) -> None:
        self._operand(doc.value, PRIMARY)
        self.write(f".{doc.name}")

    def index(self, doc: docs.IndexDoc) -> None:
        self._operand(doc.value, PRIMARY)
        self.write("[")
        self._joined(doc.indices)
        self.write("]" if doc.indices else "()]")

    def call(self, doc: docs.CallDoc) -> None:
        self._operand(doc.callee, PRIMARY)
        self.write("(")
        self._joined(doc.args)
        separator = ", " if doc.args else ""
        for key, value in zip(doc.kwargs_keys, doc.kwargs_values, strict=True):
            self.write(f"{separator}{key}=")
            self.doc(value)
            separator = ", "
        self.write(")")

    def operation(self, doc: docs.OperationDoc) -> None:
        kind, level = doc.kind, precedence(doc)
        if kind is OperationKind.IfThenElse:
            condition, then, otherwise = doc.operands
            self._operand(then, level)
            self.write(" if ")
            self._operand(condition, level + 1)
            self.write(" else ")
            self._operand(otherwise, level + 1)
        elif kind < OperationKind._UnaryEnd:
            self.write(TOKENS[kind])
            self._operand(doc.operands[0], level)
        else:
            left, right = doc.operands
            power = kind is OperationKind.Pow
            # The right operand of a power binds to its left: a ** -b, a ** b ** c.
            self._operand(left, level + power)
            self.write(f" {TOKENS[kind]} ")
            self._operand(right, level - 1 if power else level + 1)

    def function(self, doc: docs.LambdaDoc) -> None:
        self.write("lambda ")
        self._joined(doc.args)
        self.write(": ")
        self.doc(doc.body)

    def tuple(self, doc: docs.TupleDoc) -> None:
        self.write("(")
        self._joined(doc.elements)
        self.write(",)" if len(doc.elements) == 1 else ")")

    def list(self, doc: docs.ListDoc) -> None:
        self.write("[")
        self._joined(doc.elements)
        self.write("]")

    def dict(self, doc: docs.DictDoc) -> None:
        self.write("{")
        for index, (key, value) in enumerate(zip(doc.keys, doc.values, strict=True)):
            self.write(", " if index else "")
            self._joined((key, value), ": ")
        self.write("}")

    def slice(self, doc: docs.SliceDoc) -> None:
        if doc.start is not None:
            self.doc(doc.start)
        self.write(":")
        if doc.stop is not None:
            self.doc(doc.stop)
        if doc.step is not None:
            self.write(":")
            self.doc(doc.step)

    # Statements

    def _targets(self, doc: ExprDoc) -> None:
        """What is assigned to: several names without parentheses."""
        if isinstance(doc, docs.TupleDoc) and doc.elements:
            self._joined(doc.elements)
            self.write("," if len(doc.elements) == 1 else "")
        else:
            self.doc(doc)

    def _comment_behind(self, doc: StmtDoc) -> None:
        if doc.comment is None:
            return
        if "\n" in doc.comment:
            raise ValueError(
                f"The comment of a {type(doc).__name__} cannot have newline: it stands behind the "
                "statement, on its line"
            )
        self.write(f"  # {doc.comment}")

    def _comment_above(self, doc: StmtDoc) -> None:
        if doc.comment:
            self._comment_lines(doc.comment)
            self._line()

    def _comment_lines(self, comment: str) -> None:
        for index, line in enumerate(comment.split("\n")):
            if index:
                self._line()
            self.write(f"# {line}")

    def _docstring_lines(self, comment: str) -> None:
        self.write('"""')
        for line in comment.split("\n"):
            self.write("\n" if not line else self._indent + line)
        self._line()
        self.write('"""')

    def _statements(self, body: Iterable[StmtDoc]) -> None:
        for index, stmt in enumerate(body):
            if index:
                self._line()
            self.doc(stmt)

    def _body(self, body: Sequence[StmtDoc], docstring: str | None = None) -> None:
        """The indented statements after a colon."""
        before = self._indent
        self._indent += self._step
        self._line()
        if docstring:
            self._docstring_lines(docstring)
            self._line()
        if body:
            self._statements(body)
        else:
            self.write("pass")
        self._indent = before

    def block(self, doc: docs.StmtBlockDoc) -> None:
        self._statements(doc.stmts)

    def assign(self, doc: docs.AssignDoc) -> None:
        self._targets(doc.lhs)
        if doc.annotation is not None:
            self.write(": ")
            self.doc(doc.annotation)
        if doc.rhs is not None:
            self.write(" = ")
            self.doc(doc.rhs)
        self._comment_behind(doc)

    def branch(self, doc: docs.IfDoc) -> None:
        self._comment_above(doc)
        self.write("if ")
        self.doc(doc.predicate)
        self.write(":")
        self._body(doc.then_branch)
        if doc.else_branch:
            self._line()
            self.write("else:")
            self._body(doc.else_branch)

    def while_loop(self, doc: docs.WhileDoc) -> None:
        self._comment_above(doc)
        self.write("while ")
        self.doc(doc.predicate)
        self.write(":")
        self._body(doc.body)

    def for_loop(self, doc: docs.ForDoc) -> None:
        self._comment_above(doc)
        self.write("for ")
        self._targets(doc.lhs)
        self.write(" in ")
        self.doc(doc.rhs)
        self.write(":")
        self._body(doc.body)

    def scope(self, doc: docs.ScopeDoc) -> None:
        self._comment_above(doc)
        self.write("with ")
        self.doc(doc.rhs)
        if doc.lhs is not None:
            self.write(" as ")
            self.doc(doc.lhs)
        self.write(":")
        self._body(doc.body)

    def expression(self, doc: docs.ExprStmtDoc) -> None:
        self.doc(doc.expr)
        self._comment_behind(doc)

    def assertion(self, doc: docs.AssertDoc) -> None:
        self.write("assert ")
        self._joined((doc.test,) if doc.msg is None else (doc.test, doc.msg))
        self._comment_behind(doc)

    def result(self, doc: docs.ReturnDoc) -> None:
        self.write("return ")
        self.doc(doc.value)
        self._comment_behind(doc)

    def _decorators(self, decorators: Iterable[ExprDoc]) -> None:
        for decorator in decorators:
            self.write("@")
            self.doc(decorator)
            self._line()

    def definition(self, doc: docs.FunctionDoc) -> None:
        self._decorators(doc.decorators)
        self.write("def ")
        self.doc(doc.name)
        self.write("(")
        self._joined(doc.args)
        self.write(")")
        if doc.return_type is not None:
            self.write(" -> ")
            self.doc(doc.return_type)
        self.write(":")
        self._body(doc.body, doc.comment)
        self.write("\n")

    def type_definition(self, doc: docs.ClassDoc) -> None:
        self._decorators(doc.decorators)
        self.write("class ")
        self.doc(doc.name)
        self.write(":")
        self._body(doc.body, doc.comment)

    def comment(self, doc: docs.CommentDoc) -> None:
        if doc.comment:
            self._comment_lines(doc.comment)

    def docstring(self, doc: docs.DocStringDoc) -> None:
        if doc.comment:
            self._docstring_lines(doc.comment)


_WRITERS: dict[type[Doc], Callable[[DocPrinter, Any], None]] = {
    docs.LiteralDoc: DocPrinter.literal,
    docs.IdDoc: DocPrinter.identifier,
    docs.AttrAccessDoc: DocPrinter.attribute,
    docs.IndexDoc: DocPrinter.index,
    docs.CallDoc: DocPrinter.call,
    docs.OperationDoc: DocPrinter.operation,
    docs.LambdaDoc: DocPrinter.function,
    docs.TupleDoc: DocPrinter.tuple,
    docs.ListDoc: DocPrinter.list,
    docs.DictDoc: DocPrinter.dict,
    docs.SliceDoc: DocPrinter.slice,
    docs.StmtBlockDoc: DocPrinter.block,
    docs.AssignDoc: DocPrinter.assign,
    docs.IfDoc: DocPrinter.branch,
    docs.WhileDoc: DocPrinter.while_loop,
    docs.ForDoc: DocPrinter.for_loop,
    docs.ScopeDoc: DocPrinter.scope,
    docs.ExprStmtDoc: DocPrinter.expression,
    docs.AssertDoc: DocPrinter.assertion,
    docs.ReturnDoc: DocPrinter.result,
    docs.FunctionDoc: DocPrinter.definition,
    docs.ClassDoc: DocPrinter.type_definition,
    docs.CommentDoc: DocPrinter.comment,
    docs.DocStringDoc: DocPrinter.docstring,
}


def decorate(
    text: str, spans: Iterable[Span], print_line_numbers: bool, num_context_lines: int | None
) -> str:
    """The text with carets below `spans` of its characters, with the numbers of its lines, and
    without lines that are further than `num_context_lines` from a caret."""
    lines = text.rstrip("\n").split("\n")
    carets = _carets(lines, list(spans))
    marked = [number for number, line in enumerate(carets) if line]
    shown = [True] * len(lines)
    if marked and num_context_lines is not None and num_context_lines >= 0:
        shown = [
            any(abs(number - other) <= num_context_lines for other in marked)
            for number in range(len(lines))
        ]
    width = len(str(len(lines))) + 1 if print_line_numbers else 0
    written: list[str] = []
    number = 0
    while number < len(lines):
        end = number
        while end < len(lines) and not shown[end]:
            end += 1
        if end - number > 1:  # to say that one line is skipped is no shorter than the line
            written.append(f"(... {end - number} lines skipped ...)")
            number = end
            continue
        label = f"{number + 1:>{width - 1}} " if width else ""
        written.append(label + lines[number])
        if carets[number]:
            written.append(" " * width + carets[number])
        number += 1
    return "\n".join(written)


def _carets(lines: Sequence[str], spans: Sequence[Span]) -> list[str]:
    """For each line, the line of carets that belongs below it, or nothing."""
    carets = []
    start = 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        marks = [" "] * len(line)
        for first, end in spans:
            for column in range(max(first - start, indent), min(end - start, len(line))):
                marks[column] = "^"
        carets.append("".join(marks).rstrip())
        start += len(line) + 1
    return carets
