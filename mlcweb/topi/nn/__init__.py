"""Operators of neural networks; a family a file."""

from mlcweb.topi.nn.activation import (
    gelu, gelu_tanh, hard_sigmoid, hard_swish, leaky_relu, prelu, relu, silu, softplus,
)  # fmt: skip
from mlcweb.topi.nn.conv2d import (
    conv2d, conv2d_nchw, conv2d_nhwc, depthwise_conv2d_nchw, depthwise_conv2d_nhwc,
    group_conv2d_nchw, group_conv2d_nhwc,
)  # fmt: skip
from mlcweb.topi.nn.dense import batch_matmul, dense, matmul
from mlcweb.topi.nn.normalization import (
    batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
)  # fmt: skip
from mlcweb.topi.nn.pad import mirror_pad, pad
from mlcweb.topi.nn.pooling import adaptive_pool, avg_pool2d, global_pool, max_pool2d, pool2d
from mlcweb.topi.nn.softmax import log_softmax, softmax
from mlcweb.topi.transform import flatten
