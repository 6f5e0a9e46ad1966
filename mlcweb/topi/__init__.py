"""The inventory of tensor operators, written in te with TVM's names.

broadcast.py has operators on two operands, elementwise.py on one, reduction.py sums and maxima,
transform.py what only moves elements, index.py picks them by index, dynamic_slices.py by positions
in tensors, scan.py has running sums, sequences.py masks and windows, diagonals.py matrices,
einsum.py sums by names of axes, signal.py has Fourier transforms, fast_math.py approximations,
fixed_point.py products of quantized models, image.py resizing, nn/ the layers of neural networks.
Each function takes and gives `te.Tensor`; `te.create_prim_func` makes programs of them.
"""

from mlcweb.topi import image, nn, tags as tag, utils, vision
from mlcweb.topi.broadcast import (
    add, atan2, bitwise_and, bitwise_or, bitwise_xor, broadcast_to, divide, equal, floor_divide,
    floor_mod, greater, greater_equal, left_shift, less, less_equal, log_add_exp, logical_and,
    logical_or, logical_xor, maximum, minimum, mod, multiply, not_equal, power, right_shift,
    subtract,
)  # fmt: skip
from mlcweb.topi.elementwise import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not, cast, ceil, ceil_log2, clip, cos, cosh,
    elemwise_sum, erf, exp,
    floor, full, full_like, identity, isfinite, isinf, isnan, log, log10, log2, logical_not,
    negative, reinterpret, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, square, tan, tanh, trunc,
)  # fmt: skip
from mlcweb.topi.diagonals import eye, matrix_set_diag, trilu
from mlcweb.topi.dynamic_slices import (
    dynamic_slice_shape, dynamic_strided_slice, strided_set,
)  # fmt: skip
from mlcweb.topi.einsum import einsum, tensordot
from mlcweb.topi.fast_math import fast_erf, fast_exp, fast_tanh
from mlcweb.topi.fixed_point import fixed_point_multiply, fixed_point_multiply_per_axis
from mlcweb.topi.index import (
    adv_index, gather, gather_nd, index_tensor, one_hot, sparse_to_dense, take, unravel_index,
)  # fmt: skip
from mlcweb.topi.nn.dense import general_matmul as matmul
from mlcweb.topi.reduction import (
    all, any, argmax, argmin, collapse_sum, max, mean, min, prod, sum, variance,
)  # fmt: skip
from mlcweb.topi.scatter import index_put, scatter_elements, scatter_nd, slice_scatter
from mlcweb.topi.scan import cumprod, cumsum
from mlcweb.topi.sequences import hamming_window, sequence_mask, sliding_window
from mlcweb.topi.signal import dft, stft
from mlcweb.topi.sorting import argsort, searchsorted, sort, topk
from mlcweb.topi.transform import (
    arange, concatenate, dyn_tile, expand_dims, expand_like, flip, layout_transform, meshgrid,
    repeat, reshape, reverse_sequence, split, squeeze, stack, strided_slice, tensor_size, tile,
    transpose, tril, triu, where,
)  # fmt: skip
from mlcweb.topi.transform import shape_of as shape
