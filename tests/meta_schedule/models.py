"""Small models to tune: a chain of dense layers, and a convolutional network."""

import numpy as np

import mlcweb as tvm
from mlcweb.script import ir as I
from mlcweb.script import relax as R


@I.ir_module
class Mlp:
    """Three dense layers, of which the last two are of one kind; `v` is used twice."""

    @R.function
    def main(
        x: R.Tensor((1, 48), "float32"),
        w: R.Tensor((32, 48), "float32"),
        b: R.Tensor((32,), "float32"),
        v: R.Tensor((32, 32), "float32"),
    ):
        with R.dataflow():
            h = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w)), b))
            h1 = R.nn.relu(R.add(R.matmul(h, R.permute_dims(v)), b))
            h2 = R.nn.relu(R.add(R.matmul(h1, R.permute_dims(v)), b))
            R.output(h2)
        return h2


def mlp_weights():
    """Weights of `Mlp`, by name, as NumPy arrays."""
    rng = np.random.default_rng(3)
    shapes = {"w": (32, 48), "b": (32,), "v": (32, 32)}
    return {name: rng.normal(0, 0.3, shape).astype("float32") for name, shape in shapes.items()}


def mlp_expected(x):
    """What `Mlp` computes."""
    weights = mlp_weights()
    for name in ("w", "v", "v"):
        x = np.maximum(x @ weights[name].T + weights["b"], 0)
    return x


@I.ir_module
class Cnn:
    """Two convolutions with bias and relu, pooling, and a dense layer."""

    @R.function
    def main(
        x: R.Tensor((1, 3, 16, 16), "float32"),
        k0: R.Tensor((8, 3, 3, 3), "float32"),
        k1: R.Tensor((8, 8, 3, 3), "float32"),
        b: R.Tensor((1, 8, 1, 1), "float32"),
        w: R.Tensor((8 * 8 * 8, 10), "float32"),
    ):
        with R.dataflow():
            c0 = R.nn.relu(R.add(R.nn.conv2d(x, k0, padding=1), b))
            c1 = R.nn.relu(R.add(R.nn.conv2d(c0, k1, padding=1), b))
            p = R.nn.max_pool2d(c1, (2, 2), strides=(2, 2))
            y = R.matmul(R.reshape(p, (1, 512)), w)
            R.output(y)
        return y


def arrays(weights):
    """NumPy arrays as those of models."""
    return {name: tvm.nd.array(value) for name, value in weights.items()}


def cnn_weights():
    """Weights of `Cnn`, by name, as NumPy arrays."""
    rng = np.random.default_rng(4)
    shapes = {"k0": (8, 3, 3, 3), "k1": (8, 8, 3, 3), "b": (1, 8, 1, 1), "w": (512, 10)}
    return {name: rng.normal(0, 0.2, shape).astype("float32") for name, shape in shapes.items()}


@I.ir_module
class Dense:
    @R.function
    def main(x: R.Tensor((16, 32), "float32"), w: R.Tensor((32, 64), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            R.output(y)
        return y


@I.ir_module
class Conv:
    @R.function
    def main(x: R.Tensor((1, 8, 14, 14), "float32"), w: R.Tensor((32, 8, 3, 3), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.nn.relu(R.nn.conv2d(x, w))
            R.output(y)
        return y


def one_layer(name):
    """The model `Dense` or `Conv`: as a module, an input, the weights, and the result."""
    rng = np.random.default_rng(5)
    if name == "dense":
        x, w = rng.random((16, 32), "float32"), rng.normal(0, 0.2, (32, 64)).astype("float32")
        return Dense, x, w, np.maximum(x @ w, 0)
    x, w = rng.random((1, 8, 14, 14), "float32"), rng.normal(0, 0.2, (32, 8, 3, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    w = w.astype("float32")
    return Conv, x, w, np.maximum(np.einsum("nchwpq,ocpq->nohw", windows, w), 0)
