"""The operators of the graph level: `relax.op.add(x, y)`, in scripts `R.add(x, y)`.

One file per family. A new operator is one `register` line with its deduction (registry.py,
infer.py) and one function that builds the call; what is imported here is known as `R.…` as well.
"""

from mlcweb.relax.op import image, nn
from mlcweb.relax.op.base import (
    call_dps_packed, call_packed, call_pure_packed, call_tir, null_value, print, shape_of,
    shape_to_tensor, size, tensor_shape_i, tensor_to_shape,
)  # fmt: skip
from mlcweb.relax.op.binary import (
    add, atan2, bitwise_and, bitwise_or, bitwise_xor, divide, equal, floor_divide, floor_mod,
    greater, greater_equal, left_shift, less, less_equal, log_add_exp, logical_and, logical_or,
    logical_xor, maximum, minimum, mod, multiply, not_equal, power, right_shift, subtract,
)  # fmt: skip
from mlcweb.relax.op.create import (
    arange, eye, full, full_like, ones, ones_like, tril, triu, zeros, zeros_like,
)  # fmt: skip
from mlcweb.relax.op.datatype import astype
from mlcweb.relax.op.index import (
    gather_elements, gather_nd, index_tensor, one_hot, scatter_elements, scatter_nd, strided_slice,
    take,
)  # fmt: skip
from mlcweb.relax.op.joining import concat, meshgrid, split, stack
from mlcweb.relax.op.linear_algebra import einsum, linear, matmul, outer
from mlcweb.relax.op.manipulate import (
    broadcast_to, expand_dims, flatten, flip, layout_transform, permute_dims, repeat, reshape,
    squeeze, tile,
)  # fmt: skip
from mlcweb.relax.op.search import argmax, argmin, masked_fill, where
from mlcweb.relax.op.statistical import (
    cumprod, cumsum, max, mean, min, prod, std, sum, variance,
)  # fmt: skip
from mlcweb.relax.op.ternary import ewise_fma
from mlcweb.relax.op.unary import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not, ceil, clip, cos, cosh, erf, exp, floor,
    isfinite, isinf, isnan, log, logical_not, negative, round, rsqrt, sigmoid, sign, sin, sinh,
    sqrt, square, tan, tanh, trunc,
)  # fmt: skip

NAMESPACES = ("nn", "image")
"""The modules of operators that scripts reach as `R.nn` and so on."""
