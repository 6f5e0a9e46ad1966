"""Statements that functions of Python make which a script calls: they go where the call is.

def clear(A, n):
    for i in range(n):
        with T.If(A[i] < 0), T.Then():
            T.buffer_store(A, 0, [i])
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import arithmetic
from mlcweb.tir import stmt as S

_open: list[list[S.Stmt] | None] = []
"""The statements of the call, and of the branches that are open in it; innermost last. None: the
text of a script, which a function reads, is carried out."""

_branches: list[dict[str, S.Stmt]] = []
"""The branches of each open `T.If`."""


@contextmanager
def recording() -> Iterator[list[S.Stmt]]:
    """The statements that are made inside."""
    statements: list[S.Stmt] = []
    _open.append(statements)
    try:
        yield statements
    finally:
        _open.pop()


@contextmanager
def as_text() -> Iterator[None]:
    """What is called inside is called by the text of a script itself."""
    _open.append(None)
    try:
        yield
    finally:
        _open.pop()


def record(statement: S.Stmt) -> S.Stmt | None:
    """The statement itself in the text of a script; None where a function has made it."""
    statements = _open[-1] if _open else None
    if statements is None:
        return statement
    statements.append(statement)
    return None


@contextmanager
def if_(condition: Any) -> Iterator[None]:
    """A branch, inside of which are `with T.Then():` and perhaps `with T.Else():`."""
    _need_function("T.If")
    branches: dict[str, S.Stmt] = {}
    _branches.append(branches)
    try:
        yield
    finally:
        _branches.pop()
    if "T.Then" not in branches:
        raise DiagnosticError("T.If has no branch: write `with T.Then():` inside")
    test = arithmetic.cast("bool", arithmetic.convert(condition))
    record(S.IfThenElse(test, branches["T.Then"], branches.get("T.Else")))


def then_() -> AbstractContextManager[None]:
    """What `T.If` does where its condition holds."""
    return _branch("T.Then")


def else_() -> AbstractContextManager[None]:
    """What `T.If` does where its condition does not hold."""
    return _branch("T.Else")


@contextmanager
def _branch(case: str) -> Iterator[None]:
    _need_function(case)
    if not _branches or case in _branches[-1]:
        raise DiagnosticError(f"{case} belongs inside `with T.If(condition):`, once")
    with recording() as statements:
        yield
    if not statements:
        raise DiagnosticError(f"{case} has no statement")
    _branches[-1][case] = S.sequence(*statements)


def _need_function(name: str) -> None:
    if not _open or _open[-1] is None:
        raise DiagnosticError(
            f"{name} is for functions that a script calls; in its own text write `if` and `else`"
        )
