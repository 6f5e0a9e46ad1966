"""The operators of the graph level: `relax.op.add(x, y)`, in scripts `R.add(x, y)`.

One file per family. A new operator is one `register` line with its deduction (registry.py,
infer.py) and one function that builds the call; what is imported here is known as `R.…` as well.
"""

from mlcweb.relax.op import builtin, image, memory, nn, vm
from mlcweb.relax.op.base import (
    assert_op, call_builtin_with_ctx, call_dps_packed, call_packed, call_pure_packed, call_tir,
    null_value, print, shape_of, shape_to_tensor, size, tensor_shape_i, tensor_to_shape,
)  # fmt: skip
from mlcweb.relax.op.binary import (
    add, atan2, bitwise_and, bitwise_or, bitwise_xor, divide, equal, floor_divide, floor_mod,
    greater, greater_equal, left_shift, less, less_equal, log_add_exp, logical_and, logical_or,
    logical_xor, maximum, minimum, mod, multiply, not_equal, power, right_shift, subtract,
)  # fmt: skip
from mlcweb.relax.op.create import (
    arange, eye, eye_like, full, full_like, ones, ones_like, tril, triu, zeros, zeros_like,
)  # fmt: skip
from mlcweb.relax.op.datatype import astype
from mlcweb.relax.op.index import (
    gather_elements, gather_nd, index_tensor, one_hot, strided_slice, take,
)  # fmt: skip
from mlcweb.relax.op.inplace import call_inplace_packed, call_tir_inplace
from mlcweb.relax.op.joining import concat, meshgrid, split, stack
from mlcweb.relax.op.linear_algebra import einsum, linear, matmul, outer
from mlcweb.relax.op.manipulate import (
    broadcast_to, collapse_sum_like, collapse_sum_to, expand_dims, flatten, flip, layout_transform,
    permute_dims, repeat, reshape, reverse_sequence, squeeze, tile,
)  # fmt: skip
from mlcweb.relax.op.qdq import dequantize, quantize
from mlcweb.relax.op.scatter import index_put, scatter_elements, scatter_nd, slice_scatter
from mlcweb.relax.op.search import argmax, argmin, bucketize, masked_fill, where
from mlcweb.relax.op.set import nonzero, unique
from mlcweb.relax.op.sorting import argsort, sort, topk
from mlcweb.relax.op.statistical import (
    cumprod, cumsum, max, mean, min, prod, std, sum, variance,
)  # fmt: skip
from mlcweb.relax.op.ternary import ewise_fma
from mlcweb.relax.op.unary import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not, ceil, clip, cos, cosh, erf, exp, floor,
    isfinite, isinf, isnan, log, logical_not, negative, round, rsqrt, sigmoid, sign, sin, sinh,
    sqrt, square, tan, tanh, trunc,
)  # fmt: skip

NAMESPACES = ("nn", "image", "memory", "builtin", "vm")
"""The modules of operators that scripts reach as `R.nn` and so on."""
