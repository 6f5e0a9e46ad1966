"""Operators of neural networks; a family a file."""

from mlcweb.topi.broadcast import add
from mlcweb.topi.nn import pixel_shuffle
from mlcweb.topi.nn.activation import (
    gelu, gelu_tanh, hard_sigmoid, hard_swish, leaky_relu, prelu, relu, selu,
    silu, softplus,
)  # fmt: skip
from mlcweb.topi.nn.binary import binarize_pack, binary_dense
from mlcweb.topi.nn.bitserial import (
    bitpack, bitserial_conv2d_nchw, bitserial_conv2d_nhwc, bitserial_dense,
)  # fmt: skip
from mlcweb.topi.nn.blocked_convolution import (
    conv2d_NCHWc, conv2d_NCHWc_int8, conv2d_NCHWc_OIHWo,
)  # fmt: skip
from mlcweb.topi.nn.conv_transpose import (
    conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw, conv_transpose, dilate,
    group_conv1d_transpose_ncw, group_conv2d_transpose_nchw, group_conv3d_transpose_ncdhw,
)  # fmt: skip
from mlcweb.topi.nn.convolution import (
    conv1d, conv1d_ncw, conv1d_nwc, conv2d, conv2d_hwcn, conv2d_nchw, conv2d_nhwc, conv3d,
    conv3d_ncdhw, conv3d_ndhwc, convolution, depthwise_conv2d_nchw, depthwise_conv2d_nhwc,
    group_conv1d_ncw, group_conv1d_nwc, group_conv2d_nchw, group_conv2d_nhwc,
)  # fmt: skip
from mlcweb.topi.nn.correlation import correlation_nchw
from mlcweb.topi.nn.deformable_conv2d import deformable_conv2d_nchw, deformable_conv2d_nhwc
from mlcweb.topi.nn.dense import batch_matmul, dense, matmul
from mlcweb.topi.nn.depthwise_grad import (
    depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc,
)  # fmt: skip
from mlcweb.topi.nn.fifo_buffer import fifo_buffer
from mlcweb.topi.nn.local_response_norm import lrn
from mlcweb.topi.nn.loss import nll_loss
from mlcweb.topi.nn.mapping import scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc
from mlcweb.topi.nn.normalization import (
    batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
)  # fmt: skip
from mlcweb.topi.nn.attention import attention
from mlcweb.topi.nn.pad import circular_pad, mirror_pad, pad, reflect_pad, replicate_pad
from mlcweb.topi.nn.pool_grad import pool_grad
from mlcweb.topi.nn.pooling import (
    adaptive_pool, adaptive_pool1d, adaptive_pool3d, avg_pool2d, global_pool, max_pool2d,
    pool, pool1d, pool2d, pool3d,
)  # fmt: skip
from mlcweb.topi.nn.qnn import (
    SQNN_CODE_TO_DTYPE, SQNN_DISABLE, SQNN_DTYPE_TO_CODE, SQNN_INT8, SQNN_INT32, SQNN_UINT8,
    simulated_dequantize, simulated_quantize,
)  # fmt: skip
from mlcweb.topi.nn.softmax import fast_softmax, log_softmax, softmax
from mlcweb.topi.nn.space import (
    batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth,
)  # fmt: skip
from mlcweb.topi.nn.upsampling import upsampling, upsampling3d
from mlcweb.topi.transform import flatten
