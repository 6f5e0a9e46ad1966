"""Written by `python -m tests.relax.op.stub`, from what operators register."""

# fmt: off
# ruff: noqa: I001
from mlcweb.relax.op import (
    builtin as builtin, grad as grad, image as image, memory as memory, nn as nn, vision as vision,
    vm as vm,
)
from mlcweb.relax.op.base import (
    assert_op as assert_op, call_builtin_with_ctx as call_builtin_with_ctx,
    call_dps_packed as call_dps_packed, call_packed as call_packed,
    call_pure_packed as call_pure_packed, call_py_func as call_py_func, call_tir as call_tir,
    null_value as null_value, print as print, shape_of as shape_of,
    shape_to_tensor as shape_to_tensor, size as size, tensor_shape_i as tensor_shape_i,
    tensor_to_shape as tensor_to_shape,
)
from mlcweb.relax.op.closure import (
    invoke_closure as invoke_closure, invoke_pure_closure as invoke_pure_closure,
    make_closure as make_closure,
)
from mlcweb.relax.op.create import (
    arange as arange, eye as eye, eye_like as eye_like, full as full, full_like as full_like,
    hamming_window as hamming_window, ones as ones, ones_like as ones_like, tril as tril,
    triu as triu, zeros as zeros, zeros_like as zeros_like,
)
from mlcweb.relax.op.device import (
    hint_on_device as hint_on_device, to_vdevice as to_vdevice,
)
from mlcweb.relax.op.elementwise import (
    abs as abs, acos as acos, acosh as acosh, add as add, asin as asin, asinh as asinh,
    astype as astype, atan as atan, atan2 as atan2, atanh as atanh, bitwise_and as bitwise_and,
    bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor, ceil as ceil,
    clip as clip, cos as cos, cosh as cosh, divide as divide, equal as equal, erf as erf,
    ewise_fma as ewise_fma, exp as exp, floor as floor, floor_divide as floor_divide,
    floor_mod as floor_mod, greater as greater, greater_equal as greater_equal,
    isfinite as isfinite, isinf as isinf, isnan as isnan, left_shift as left_shift, less as less,
    less_equal as less_equal, log as log, log_add_exp as log_add_exp, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    maximum as maximum, minimum as minimum, mod as mod, multiply as multiply, negative as negative,
    not_equal as not_equal, power as power, right_shift as right_shift, round as round,
    rsqrt as rsqrt, sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh, sqrt as sqrt,
    square as square, subtract as subtract, tan as tan, tanh as tanh, trunc as trunc,
    wrap_param as wrap_param,
)
from mlcweb.relax.op.index import (
    dynamic_strided_slice as dynamic_strided_slice, gather_elements as gather_elements,
    gather_nd as gather_nd, index_tensor as index_tensor, one_hot as one_hot,
    strided_slice as strided_slice, take as take,
)
from mlcweb.relax.op.inplace import (
    call_inplace_packed as call_inplace_packed, call_tir_inplace as call_tir_inplace,
)
from mlcweb.relax.op.joining import (
    concat as concat, meshgrid as meshgrid, split as split, stack as stack,
)
from mlcweb.relax.op.linear_algebra import (
    einsum as einsum, linear as linear, matmul as matmul, outer as outer,
)
from mlcweb.relax.op.manipulate import (
    broadcast_to as broadcast_to, collapse_sum_like as collapse_sum_like,
    collapse_sum_to as collapse_sum_to, expand_dims as expand_dims, flatten as flatten,
    flip as flip, layout_transform as layout_transform, permute_dims as permute_dims,
    repeat as repeat, reshape as reshape, reverse_sequence as reverse_sequence, squeeze as squeeze,
    tile as tile,
)
from mlcweb.relax.op.qdq import (
    dequantize as dequantize, quantize as quantize,
)
from mlcweb.relax.op.sampling import (
    multinomial_from_uniform as multinomial_from_uniform,
)
from mlcweb.relax.op.scatter import (
    index_put as index_put, scatter_elements as scatter_elements, scatter_nd as scatter_nd,
    slice_scatter as slice_scatter,
)
from mlcweb.relax.op.search import (
    argmax as argmax, argmin as argmin, bucketize as bucketize, masked_fill as masked_fill,
    where as where,
)
from mlcweb.relax.op.set import (
    nonzero as nonzero, unique as unique,
)
from mlcweb.relax.op.sorting import (
    argsort as argsort, median as median, sort as sort, topk as topk,
)
from mlcweb.relax.op.statistical import (
    cumprod as cumprod, cumsum as cumsum, max as max, mean as mean, min as min, prod as prod,
    std as std, sum as sum, variance as variance,
)
from mlcweb.relax.op.te_grad import (
    call_tir_with_grad as call_tir_with_grad,
)

NAMESPACES: tuple[str, ...]
