"""Mathematical functions as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.tir import expr as E


def expand(name: str, args: Sequence[E.PrimExpr]) -> E.PrimExpr | None:
    """The function `name` of `args` in terms of arithmetic; None where it is not known."""
    return None
