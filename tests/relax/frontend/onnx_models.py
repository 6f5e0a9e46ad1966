"""ONNX models of known architectures with random weights, as exporters write them.

`resnet50`, `mobilenet_v2` and `bert` build graphs by the operators and shape computations of
PyTorch's exporter; width, image size and depth are arguments, so that they run quickly.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class GraphWriter:
    """Collects nodes and weights."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def emit(self, op_type, *inputs, outputs=1, **attrs):
        self.count += 1
        names = [f"{op_type.lower()}_{self.count}_{i}" for i in range(outputs)]
        node = helper.make_node(op_type, inputs, names, name=f"{op_type}_{self.count}", **attrs)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def array(self, values):
        self.count += 1
        name = f"weight.{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def random(self, *shape, scale=None):
        fan_in = int(np.prod(shape[1:])) or 1
        scale = (2 / fan_in) ** 0.5 if scale is None else scale
        return self.array((self.rng.standard_normal(shape) * scale).astype("float32"))

    def ints(self, *values):
        return self.array(np.array(values, "int64"))

    def constant(self, values, dtype="int64"):
        value = numpy_helper.from_array(np.array(values, dtype))
        return self.emit("Constant", value=value)

    def model(self, inputs, outputs, opset=13):
        graph = helper.make_graph(self.nodes, "model", inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def conv(g, x, c_in, c_out, kernel, stride=1, groups=1):
    pad = kernel // 2
    return g.emit(
        "Conv", x, g.random(c_out, c_in // groups, kernel, kernel), kernel_shape=[kernel] * 2,
        strides=[stride] * 2, pads=[pad] * 4, group=groups, dilations=[1, 1],
    )  # fmt: skip


def batch_norm(g, x, channels, gain=1.0):
    def near(value):
        return g.array(g.rng.uniform(0.5 * value, 1.5 * value, channels).astype("float32"))

    def shift():
        return g.random(channels, scale=0.1)

    return g.emit("BatchNormalization", x, near(gain), shift(), shift(), near(1), epsilon=1e-5)


def resnet50(width=64, size=224, classes=1000, batch=1):
    """ResNet-50, of `width` channels behind the first layer (He et al. 2015, v1.5)."""
    g = GraphWriter()

    def block(x, c_in, c_mid, stride):
        y = g.emit("Relu", batch_norm(g, conv(g, x, c_in, c_mid, 1), c_mid))
        y = g.emit("Relu", batch_norm(g, conv(g, y, c_mid, c_mid, 3, stride), c_mid))
        y = batch_norm(g, conv(g, y, c_mid, 4 * c_mid, 1), 4 * c_mid, gain=0.2)
        if c_in != 4 * c_mid or stride != 1:
            x = batch_norm(g, conv(g, x, c_in, 4 * c_mid, 1, stride), 4 * c_mid, gain=0.7)
        return g.emit("Relu", g.emit("Add", y, x))

    x = g.emit("Relu", batch_norm(g, conv(g, "data", 3, width, 7, 2), width))
    x = g.emit("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, depth in enumerate((3, 4, 6, 3)):
        middle = width * 2**stage
        for i in range(depth):
            x = block(x, channels, middle, 2 if stage and not i else 1)
            channels = 4 * middle
    x = g.emit("Flatten", g.emit("GlobalAveragePool", x), axis=1)
    x = g.emit("Gemm", x, g.random(classes, channels), g.random(classes, scale=0.1), transB=1)
    return g.model(
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 3, size, size])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, classes])],
    )


def mobilenet_v2(width=32, size=224, classes=1000, batch=1):
    """MobileNet v2, of `width` channels behind the first layer (Sandler et al. 2018)."""
    g = GraphWriter(1)

    def clip(x):
        return g.emit("Clip", x, g.constant(0.0, "float32"), g.constant(6.0, "float32"))

    def block(x, c_in, c_out, stride, expansion):
        y, hidden = x, c_in * expansion
        if expansion != 1:
            y = clip(batch_norm(g, conv(g, y, c_in, hidden, 1), hidden))
        y = clip(batch_norm(g, conv(g, y, hidden, hidden, 3, stride, hidden), hidden))
        y = batch_norm(g, conv(g, y, hidden, c_out, 1), c_out)
        return g.emit("Add", x, y) if stride == 1 and c_in == c_out else y

    channels = width
    x = clip(batch_norm(g, conv(g, "input.1", 3, channels, 3, 2), channels))
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for expansion, c_out, depth, stride in plan:
        c_out = max(c_out * width // 32, 1)
        for i in range(depth):
            x = block(x, channels, c_out, 1 if i else stride, expansion)
            channels = c_out
    last = 1280 * width // 32
    x = clip(batch_norm(g, conv(g, x, channels, last, 1), last))
    x = g.emit("ReduceMean", x, axes=[2, 3], keepdims=0)
    x = g.emit("Gemm", x, g.random(classes, last), g.random(classes, scale=0.1), transB=1)
    return g.model(
        [helper.make_tensor_value_info("input.1", TensorProto.FLOAT, [batch, 3, size, size])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, classes])],
    )


def bert(layers=12, hidden=768, heads=12, words=30522, length=128, batch="batch"):
    """The encoder of BERT (Devlin et al. 2018), with shapes computed in the graph as PyTorch's
    exporter leaves them, and a pooled output."""
    g = GraphWriter(2)
    head = hidden // heads

    def dense(x, n, m):
        y = g.emit("MatMul", x, g.random(n, m, scale=n**-0.5))
        return g.emit("Add", g.random(m, scale=0.1), y)

    def layer_norm(x):
        """Opset 13 has none: it is written out."""
        mean = g.emit("ReduceMean", x, axes=[-1])
        away = g.emit("Sub", x, mean)
        square = g.emit("Pow", away, g.constant(2.0, "float32"))
        variance = g.emit("ReduceMean", square, axes=[-1])
        shifted = g.emit("Add", variance, g.constant(1e-12, "float32"))
        normal = g.emit("Div", away, g.emit("Sqrt", shifted))
        scaled = g.emit("Mul", normal, g.array(g.rng.uniform(0.5, 1.5, hidden).astype("float32")))
        return g.emit("Add", scaled, g.random(hidden, scale=0.1))

    def extent(x, axis):
        return g.emit("Gather", g.emit("Shape", x), g.constant(axis), axis=0)

    def by_heads(x):
        parts = [g.emit("Unsqueeze", extent(x, axis), g.ints(0)) for axis in (0, 1)]
        shape = g.emit("Concat", *parts, g.ints(heads), g.ints(head), axis=0)
        return g.emit("Reshape", x, shape)

    def erf_gelu(x):
        y = g.emit("Erf", g.emit("Div", x, g.constant(2**0.5, "float32")))
        y = g.emit("Mul", x, g.emit("Add", y, g.constant(1.0, "float32")))
        return g.emit("Mul", y, g.constant(0.5, "float32"))

    ends = g.emit("Unsqueeze", extent("input_ids", 1), g.ints(0))
    places = g.emit("Slice", g.array(np.arange(512)[None]), g.ints(0), ends, g.ints(1))
    x = g.emit("Gather", g.random(words, hidden, scale=1.0), "input_ids")
    x = g.emit("Add", x, g.emit("Gather", g.random(2, hidden, scale=1.0), "token_type_ids"))
    x = layer_norm(g.emit("Add", x, g.emit("Gather", g.random(512, hidden, scale=1.0), places)))
    mask = g.emit("Unsqueeze", g.emit("Unsqueeze", "attention_mask", g.ints(1)), g.ints(2))
    mask = g.emit("Cast", mask, to=TensorProto.FLOAT)
    mask = g.emit("Sub", g.constant(1.0, "float32"), mask)
    mask = g.emit("Mul", mask, g.constant(-10000.0, "float32"))
    for _ in range(layers):
        q, k, v = (by_heads(dense(x, hidden, hidden)) for _ in range(3))
        q, v = (g.emit("Transpose", y, perm=[0, 2, 1, 3]) for y in (q, v))
        scores = g.emit("MatMul", q, g.emit("Transpose", k, perm=[0, 2, 3, 1]))
        scores = g.emit("Div", scores, g.constant(head**0.5, "float32"))
        weights = g.emit("Softmax", g.emit("Add", scores, mask), axis=-1)
        mixed = g.emit("Transpose", g.emit("MatMul", weights, v), perm=[0, 2, 1, 3])
        parts = [g.emit("Unsqueeze", extent(mixed, axis), g.ints(0)) for axis in (0, 1)]
        mixed = g.emit("Reshape", mixed, g.emit("Concat", *parts, g.ints(hidden), axis=0))
        x = layer_norm(g.emit("Add", dense(mixed, hidden, hidden), x))
        y = dense(erf_gelu(dense(x, hidden, 4 * hidden)), 4 * hidden, hidden)
        x = layer_norm(g.emit("Add", y, x))
    first = g.emit("Gather", x, g.constant(0), axis=1)
    pooled = g.emit("Gemm", first, g.random(hidden, hidden, scale=hidden**-0.5),
                    g.random(hidden, scale=0.1), transB=1)  # fmt: skip
    pooled = g.emit("Tanh", pooled)
    names = ("input_ids", "attention_mask", "token_type_ids")
    int64 = TensorProto.INT64
    return g.model(
        [helper.make_tensor_value_info(name, int64, [batch, length]) for name in names],
        [
            helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, length, hidden]),
            helper.make_tensor_value_info(pooled, TensorProto.FLOAT, [batch, hidden]),
        ],
    )
