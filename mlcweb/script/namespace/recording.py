"""Statements that functions of Python make which a script calls: they go where the call is.

def clear(A, n):
    for i in range(n):
        with T.If(A[i] < 0), T.Then():
            T.buffer_store(A, 0, [i])
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import arithmetic
from mlcweb.tir import stmt as S

_statements: ContextVar[list[S.Stmt] | None] = ContextVar("statements", default=None)
"""Those of the call, or of the branch that is open in it. None: the text of a script, which a
function reads, is carried out."""

_branches: ContextVar[dict[str, S.Stmt] | None] = ContextVar("branches", default=None)
"""The branches of the innermost `T.If` that is open."""


@contextmanager
def recording() -> Iterator[list[S.Stmt]]:
    """The statements that are made inside."""
    statements: list[S.Stmt] = []
    token = _statements.set(statements)
    try:
        yield statements
    finally:
        _statements.reset(token)


@contextmanager
def as_text() -> Iterator[None]:
    """What is called inside is called by the text of a script itself."""
    token = _statements.set(None)
    try:
        yield
    finally:
        _statements.reset(token)


def record(statement: S.Stmt) -> S.Stmt | None:
    """The statement itself in the text of a script; None where a function has made it."""
    statements = _statements.get()
    if statements is None:
        return statement
    statements.append(statement)
    return None


@contextmanager
def if_(condition: Any) -> Iterator[None]:
    """A branch, inside of which are `with T.Then():` and perhaps `with T.Else():`."""
    _need_function("T.If")
    branches: dict[str, S.Stmt] = {}
    token = _branches.set(branches)
    try:
        yield
    finally:
        _branches.reset(token)
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
    branches = _branches.get()
    if branches is None or case in branches:
        raise DiagnosticError(f"{case} belongs inside `with T.If(condition):`, once")
    with recording() as statements:
        yield
    if not statements:
        raise DiagnosticError(f"{case} has no statement")
    branches[case] = S.sequence(*statements)


def _need_function(name: str) -> None:
    if _statements.get() is None:
        raise DiagnosticError(
            f"{name} is for functions that a script calls; in its own text write `if` and `else`"
        )
