"""Written by `python -m tests.relax.op.stub`, from what operators register."""

# fmt: off
# ruff: noqa: I001
from mlcweb.relax.op.nn.activation import (
    dropout as dropout, gelu as gelu, gelu_tanh as gelu_tanh, leakyrelu as leakyrelu,
    log_softmax as log_softmax, prelu as prelu, relu as relu, relu6 as relu6, selu as selu,
    silu as silu, softmax as softmax, softplus as softplus,
)
from mlcweb.relax.op.nn.convolution import (
    conv1d as conv1d, conv1d_transpose as conv1d_transpose, conv2d as conv2d,
    conv2d_transpose as conv2d_transpose, conv3d as conv3d, conv3d_transpose as conv3d_transpose,
)
from mlcweb.relax.op.nn.dot_product_attention import (
    attention as attention, attention_bias as attention_bias,
)
from mlcweb.relax.op.nn.loss import (
    cross_entropy_with_logits as cross_entropy_with_logits, nll_loss as nll_loss,
)
from mlcweb.relax.op.nn.normalization import (
    batch_norm as batch_norm, group_norm as group_norm, instance_norm as instance_norm,
    layer_norm as layer_norm, rms_norm as rms_norm,
)
from mlcweb.relax.op.nn.padding import (
    batch_flatten as batch_flatten, pad as pad, pixel_shuffle as pixel_shuffle,
)
from mlcweb.relax.op.nn.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d, max_pool1d as max_pool1d, max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
)
