"""`tvm.topi.utils`: numbers out of extents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir.arithmetic import convert
from mlcweb.topi import shapes
from mlcweb.topi.nn.window import paddings


def get_const_int(expr: Any) -> int:
    """The number that an extent is; a DiagnosticError where it is symbolic."""
    found = shapes.constant(simplify(expr))
    if found is None:
        raise DiagnosticError(f"Expect value to be constant int, but {expr} is symbolic")
    return int(found)


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """The extents of a shape as numbers; symbolic ones stay as they are."""
    found = [shapes.constant(extent) for extent in in_tuple]
    return tuple(e if n is None else int(n) for e, n in zip(in_tuple, found, strict=True))


def equal_const_int(expr: Any, value: int) -> bool:
    return shapes.constant(expr) == value


def simplify(expr: Any) -> Any:
    """An expression simplified; a number as it is."""
    return expr if isinstance(expr, (int, float)) else Analyzer().simplify(convert(expr))


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[int, ...]:
    """Widths of a two-dimensional padding: top, left, bottom, right."""
    before, behind = paddings("pad", padding, [convert(extent) for extent in kernel])
    return (*before, *behind)


def get_pad_tuple1d(padding: Any, kernel: Any) -> tuple[int, ...]:
    """Widths of a one-dimensional padding: left, right."""
    window = kernel if isinstance(kernel, (tuple, list)) else (kernel,)
    return get_pad_tuple(padding, window)


get_pad_tuple3d = get_pad_tuple
