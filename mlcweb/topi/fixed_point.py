"""Products of integers and numbers in fixed point, as quantized models rescale their sums."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import intrinsics
from mlcweb.tir.arithmetic import const
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import tags
from mlcweb.topi.elementwise import elementwise

_FRACTION = const(31, "int32")
"""How many bits of a multiplier are behind its point."""


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Tensor:
    """x · multiplier · 2^(shift - 31) of int32, halves rounded up."""
    factors = (const(multiplier, "int32"), _FRACTION, const(shift, "int32"))
    return elementwise(x, lambda value: _call(value, "q_multiply_shift", *factors))


def fixed_point_multiply_per_axis(
    x: Tensor,
    y: Tensor,
    lshift: Tensor,
    rshift: Tensor,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: Sequence[int],
) -> Tensor:
    """x · y · 2^(lshift - rshift - 31) of int32, halves rounded up.

    Args:
        y, lshift, rshift: the numbers for each position along `axes` of x.
        is_lshift_required: whether lshift counts; rshift always does.
    """
    flags = (const(bool(flag), "bool") for flag in (is_lshift_required, is_rshift_required))
    rest = (_FRACTION, *flags)

    def element(*index: PrimExpr) -> PrimExpr:
        place = [index[axis] for axis in axes]
        numbers = (factor(*place) for factor in (y, lshift, rshift))
        return _call(x(*index), "q_multiply_shift_per_axis", *numbers, *rest)

    return compute(x.shape, element, tag=tags.BROADCAST)


def _call(x: PrimExpr, name: str, *numbers: PrimExpr) -> PrimExpr:
    return intrinsics.call(x.dtype, name, x, *numbers)
