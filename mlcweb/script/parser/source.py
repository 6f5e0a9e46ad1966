"""Source text of a script, and spans into it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import re
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, TypeVar

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.span import Span


@dataclass(frozen=True, slots=True)
class Source:
    """The text that was parsed: a file's name, and by how much its lines are shifted.

    `runs` says whether Python may compute what the text asks for, which it may not where nobody has
    run the text: while it is being written, or where it comes from a file of records.
    """

    filename: str
    shift: int = 0
    encoded_lines: tuple[bytes, ...] = ()
    runs: bool = True

    def span(self, node: Any) -> Span:
        """The range of a syntax tree node."""
        start, end = node.col_offset, node.end_col_offset
        if self.encoded_lines:
            start = self._characters(node.lineno, start)
            end = self._characters(node.end_lineno, end)
        return Span(
            self.filename, node.lineno + self.shift, start, node.end_lineno + self.shift, end
        )

    def _characters(self, line: int, column: int) -> int:
        """Syntax trees count columns in bytes; people and editors count characters."""
        return len(self.encoded_lines[line - 1][:column].decode(errors="replace"))


def source_of_text(
    text: str, filename: str | None = None, runs: bool = True
) -> tuple[ast.Module, Source]:
    """Parse a whole text. It is kept where error messages find its lines."""
    if filename is None:
        filename = f"<script {hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    try:
        tree = ast.parse(text, filename)
    except SyntaxError as error:
        for pattern, reason in FOREIGN.items():
            if place := re.search(pattern, text, re.MULTILINE):
                line = text.count("\n", 0, place.start()) + 1
                span = Span(filename, line, 0, line, len(text.splitlines()[line - 1]))
                raise DiagnosticError(reason, span) from error
        raise
    return tree, Source(filename, 0, _encoded(text), runs)


FOREIGN = {
    r"^ *(#\[version|def @\w|fn \(%|let %|free_var %)": (
        "This is Relay, which was replaced by relax in TVM 0.20: write the model with @R.function, "
        "or read it with relax.frontend"
    ),
    r"^ *(@\w+ = )?primfn\(": (
        "This is how TVM before 0.9 showed programs, which no TVM reads: let it print "
        "mod.script(), or write the function with @T.prim_func"
    ),
    r"^ *(extern \"C\" )?(__global__|__kernel|kernel) void ": (
        "This is the source of a kernel: in TVMScript it is a @T.prim_func whose loops are bound "
        "to threads, and tvm.build writes the source"
    ),
}
"""Texts that are no Python, by how a line of them begins: what they are, and what is read."""


def source_of_function(function: FunctionType) -> tuple[ast.FunctionDef, Source]:
    """The definition of a Python function, decorators included."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree, source = _parse_block(lines, code.co_firstlineno, code.co_filename, function.__name__)
    if not isinstance(tree, ast.FunctionDef):
        raise DiagnosticError(f'"{function.__name__}" is not a function defined with `def`')
    return tree, source


def source_of_class(cls: type, frame: FrameType) -> tuple[ast.ClassDef, Source]:
    """The definition of a Python class that `frame` is decorating."""
    functions = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
    # The frame's file is the class's, even where the class's module has no file of its own.
    filename = frame.f_code.co_filename
    lines = linecache.getlines(filename, frame.f_globals)
    last = min((f.__code__.co_firstlineno for f in functions), default=len(lines))
    header = re.compile(rf"\s*class\s+{re.escape(cls.__name__)}\b")
    starts = [n for n, line in enumerate(lines[:last], start=1) if header.match(line)]
    if not starts:
        raise _no_source(cls.__name__, filename)
    nearest = starts[-1] if functions else min(starts, key=lambda n: abs(n - frame.f_lineno))
    tree, source = _parse_block(lines, nearest, filename, cls.__name__)
    if not isinstance(tree, ast.ClassDef):
        raise _no_source(cls.__name__, filename)
    return tree, source


def _parse_block(lines: list[str], first: int, filename: str, name: str) -> tuple[ast.stmt, Source]:
    """The definition that starts at line `first` of a file."""
    if not 0 < first <= len(lines):
        raise _no_source(name, filename)
    block = _block(lines[first - 1 :])
    # An indented block stands under an `if` of its own: one line more, the same columns.
    indented = block[0][:1].isspace()
    text = ("if 1:\n" if indented else "") + "".join(block)
    try:
        tree: Any = ast.parse(text, filename)
    except SyntaxError:
        block = inspect.getblock(lines[first - 1 :])
        text = ("if 1:\n" if indented else "") + "".join(block)
        tree = ast.parse(text, filename)
    body = tree.body[0].body if indented else tree.body
    return body[0], Source(filename, first - 1 - indented, _encoded(text))


def _block(lines: list[str]) -> list[str]:
    """The leading lines up to the next statement that is not indented deeper.

    Only a guess where strings or brackets span lines; reading them shows whether it was right.
    """
    base = len(lines[0]) - len(lines[0].lstrip())
    in_body = False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or stripped[0] in "#)]}":
            continue
        if len(line) - len(line.lstrip()) > base:
            in_body = True
        elif in_body:
            return lines[:number]
    return lines


def _encoded(text: str) -> tuple[bytes, ...]:
    return () if text.isascii() else tuple(line.encode() for line in text.splitlines())


def _no_source(name: str, filename: str) -> DiagnosticError:
    return DiagnosticError(
        f'The source of "{name}" is not to be found in {filename}; TVMScript is read from source, '
        "so define it in a file or a cell, or use `from_source` on its text"
    )


def type_variables_in(tree: ast.Module) -> dict[str, Any]:
    """The type variables that a text defines: `n = TypeVar("n")`."""
    names = {}
    for item in tree.body:
        match item:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="TypeVar"))
            ):
                names[name] = TypeVar(name)  # type: ignore[misc]
    return names
