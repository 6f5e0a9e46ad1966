"""Products of numbers in fixed point, as quantized models have them, in integers of 64 bits.

`T.q_multiply_shift(x, y, q, s)` is x · y · 2^(s - q), halves rounded up. In
`T.q_multiply_shift_per_axis` each channel has shifts of its own, to the left and to the right.
"""

from __future__ import annotations

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast, const, maximum, select
from mlcweb.tir.operators import operator_name


def computed_product(call: E.Call) -> E.PrimExpr | None:
    """What such a call of int32 computes; None for other calls."""
    name = operator_name(call)
    if name not in ("q_multiply_shift", "q_multiply_shift_per_axis"):
        return None
    if dtypes.element_of(call.dtype) != "int32":
        return None
    zero = const(0, call.dtype)
    if name == "q_multiply_shift":
        x, y, fraction, shift = call.args
        left, right = maximum(shift, zero), maximum(-shift, zero)
    else:
        x, y, left, right, fraction, shifts_left, _ = call.args
        left = select(shifts_left, left, zero)
    wide = dtypes.with_lanes("int64", dtypes.lanes(call.dtype))
    x, y, left, right = (cast(wide, part) for part in (x, y, left, right + fraction))
    one = const(1, wide)
    return cast(call.dtype, (x << left) * y + (one << right - one) >> right)
