"""`tvm.tir.op`: the functions that build expressions, as far as they are no methods of expressions.

Every builtin is one, by the name that it has in `T`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.builtins import BUILTINS, Builtin, call_builtin
from mlcweb.tir.intrinsics import binary_functions, isfinite, popcount, unary_functions


def builtin_function(row: Builtin) -> Callable[..., E.PrimExpr]:
    """What calls a builtin."""

    def apply(*args: Any, **options: Any) -> E.PrimExpr:
        return call_builtin(row, *args, **options)

    apply.__name__ = row.script_name
    return apply


def ceildiv(lhs: Any, rhs: Any) -> E.PrimExpr:
    """a / b, rounded up."""
    return arithmetic.floordiv(arithmetic.subtract(arithmetic.add(lhs, rhs), 1), rhs)


def logaddexp(a: Any, b: Any, span: Any = None) -> E.PrimExpr:
    """log(exp(a) + exp(b))."""
    exp, log = unary_functions["exp"], unary_functions["log"]
    return log(arithmetic.add(exp(a), exp(b)))


def get_vscale_expr(dtype: Any, min_size: int = 128) -> E.PrimExpr:
    """How many elements of a type a vector of scalable length has, of at least `min_size` bits for
    each `T.vscale()`."""
    return arithmetic.multiply(min_size // dtypes.bits(str(dtype)), BUILTIN_FUNCTIONS["vscale"]())


def infinity(dtype: Any) -> E.PrimExpr:
    """The largest value of a float type."""
    if not dtypes.is_float(str(dtype)):
        raise DiagnosticError(f"{dtype} has no infinity")
    return arithmetic.const(float("inf"), str(dtype))


def trunc_division(a: Any, b: Any, span: Any = None) -> E.PrimExpr:
    """a / b: of floats the quotient, of integers towards zero."""
    return arithmetic.truncdiv(a, b) if _integers(a, b) else arithmetic.divide(a, b)


def stmt_seq(*args: Any) -> S.Stmt:
    """Statements one after another; an expression is a statement that computes it."""
    return S.sequence(
        *(x if isinstance(x, S.Stmt) else S.Evaluate(arithmetic.convert(x)) for x in args)
    )


def _integers(*operands: Any) -> bool:
    return all(x.dtype.startswith(("int", "uint")) for x in map(arithmetic.convert, operands))


def _without_span(build: Callable[..., Any]) -> Callable[..., Any]:
    """The builder with the parameter `span` that TVM's functions have."""

    @wraps(build)
    def apply(*operands: Any, span: Any = None, **named: Any) -> Any:
        return build(*operands, **named)

    return apply


BUILTIN_FUNCTIONS: dict[str, Callable[..., E.PrimExpr]] = {
    name: builtin_function(row)
    for row in BUILTINS.values()
    for name in (row.name, row.spelling or row.name)
    if "." not in row.name
}
"""By their names in `T`."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **BUILTIN_FUNCTIONS,
    **unary_functions,
    **binary_functions,
    **{
        name: _without_span(getattr(arithmetic, name))
        for name in (
            "add", "subtract", "multiply", "shift_left", "shift_right", "bitwise_and", "bitwise_or",
            "bitwise_xor", "bitwise_not",
        )
    },
    "div": trunc_division,
    "indexdiv": _without_span(arithmetic.floordiv),
    "indexmod": _without_span(arithmetic.floormod),
    "ceildiv": _without_span(ceildiv),
    "get_vscale_expr": get_vscale_expr,
    "infinity": infinity,
    "logaddexp": logaddexp,
    "popcount": _without_span(popcount),
    "isfinite": _without_span(isfinite),
    "convert": arithmetic.convert,
    "stmt_seq": stmt_seq,
    "stmt_list": lambda stmt: list(stmt.seq) if isinstance(stmt, S.SeqStmt) else [stmt],
}  # fmt: skip
