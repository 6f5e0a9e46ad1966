"""Matrices and their diagonals."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.shapes import Extent
from mlcweb.topi.transform import moved, tril_or_triu

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def eye(n: int, m: int | None = None, k: int = 0, dtype: str = "float32") -> Tensor:
    """A matrix (n, m) with ones on the k-th diagonal and zeros elsewhere; square without `m`."""
    one, zero = (arithmetic.const(number, dtype) for number in (1, 0))

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        return intrinsics.if_then_else(
            arithmetic.equal(i, j - k), one, zero
        )  # fmt: skip

    return compute((n, n if m is None else m), element, "eye", varargs_names=["i", "j"])


def trilu(data: Tensor, k: Extent, upper: bool) -> Tensor:
    """`triu` or `tril` of the last two dimensions; `k` may be an expression."""
    return tril_or_triu(data, k, upper, "trilu")


def matrix_set_diag(
    data: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices (…, rows, columns) with other elements on their diagonals.

    Args:
        diagonal: (…, length) for one diagonal, (…, diagonals, longest) for several, the uppermost
            first.
        k: the number of the diagonal (0 the main one, 1 the one above), or (lowest, highest).
        align: where shorter diagonals are in their rows, those above the main one and those
            below: such as "RIGHT_LEFT".
    """
    lowest, highest = k if isinstance(k, (tuple, list)) else (k, k)
    several = isinstance(k, (tuple, list)) and lowest != highest
    if align not in _ALIGNMENTS:
        raise DiagnosticError(f"matrix_set_diag: align is one of {', '.join(_ALIGNMENTS)}")
    if lowest > highest or diagonal.ndim != data.ndim - 1 + several:
        raise DiagnosticError(
            f"matrix_set_diag: diagonals {shapes.show(diagonal.shape)} do not fit k = {k} of "
            f"{shapes.show(data.shape)}"
        )
    rows, columns = data.shape[-2:]
    longest = diagonal.shape[-1]
    right_above, right_below = (side == "RIGHT" for side in align.split("_"))

    def start(number: PrimExpr) -> PrimExpr:
        """Where the diagonal begins in its row of `diagonal`."""
        above = number >= 0
        across = arithmetic.minimum(columns - number, rows)
        down = arithmetic.minimum(rows + number, columns)
        zero = arithmetic.const(0, number.dtype)
        high = longest - across if right_above else zero
        low = longest - down if right_below else zero
        return intrinsics.if_then_else(above, high, low)

    def element(*index: PrimExpr) -> PrimExpr:
        *outer, row, column = index
        number = column - row
        place = intrinsics.if_then_else(number >= 0, row, column)
        which: list[PrimExpr] = []
        if several:
            which.append(highest - number)
            place = place + start(number)
        chosen = arithmetic.logical_and(number >= lowest, number <= highest)
        return intrinsics.if_then_else(chosen, diagonal(*outer, *which, place), data(*index))

    return moved(data.shape, element, "T_matrix_set_diag")
