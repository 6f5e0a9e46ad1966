"""Importers in the page: ONNX is read there; PyTorch is not there, and the page says so."""

import pytest
from playwright.sync_api import expect

WRITER = '''
import struct
import numpy as np


def varint(number):
    """A number of a protocol buffer: seven bits a byte, the lowest first."""
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, value):
    """A field of a message: an integer, a text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, array):
    kinds = {"float32": 1, "int64": 7}
    dims = b"".join(field(1, n) for n in array.shape)
    return dims + field(2, kinds[str(array.dtype)]) + field(8, name) + field(9, array.tobytes())


def value_info(name, shape):
    dims = b"".join(field(1, field(1, n) if isinstance(n, int) else field(2, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def node(op_type, inputs, outputs, **ints):
    out = b"".join(field(1, name) for name in inputs) + b"".join(field(2, n) for n in outputs)
    out += field(3, op_type.lower()) + field(4, op_type)
    for name, number in ints.items():
        out += field(5, field(1, name) + field(3, number) + field(20, 2))
    return out


def model(nodes, weights, inputs, outputs):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    graph += b"".join(field(5, tensor(name, array)) for name, array in weights.items())
    graph += b"".join(field(11, value_info(*given)) for given in inputs)
    graph += b"".join(field(12, value_info(*given)) for given in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))
'''
"""Writes ONNX files, as far as the tests go: the package `onnx` is not in the page."""

CLASSIFIER = """
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

random = np.random.default_rng(0)
weights = {
    "w0": random.standard_normal((32, 64)).astype("float32") * 0.1,
    "b0": random.standard_normal(32).astype("float32"),
    "w1": random.standard_normal((10, 32)).astype("float32") * 0.1,
    "b1": random.standard_normal(10).astype("float32"),
    "k": np.array([3], "int64"),
}
onnx_bytes = model(
    [
        node("Gemm", ["x", "w0", "b0"], ["h"], transB=1),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w1", "b1"], ["y"], transB=1),
        node("Softmax", ["y"], ["p"], axis=1),
        node("TopK", ["p", "k"], ["best", "places"]),
    ],
    weights, [("x", ("n", 64))], [("p", ("n", 10)), ("places", ("n", 3))],
)
mod = from_onnx(onnx_bytes)
print(mod.script())
vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())


def expected(x):
    h = np.maximum(x @ weights["w0"].T + weights["b0"], 0)
    y = np.exp(h @ weights["w1"].T + weights["b1"])
    return y / y.sum(1, keepdims=True)


for n in (1, 5):
    x = random.standard_normal((n, 64)).astype("float32")
    p, places = vm["main"](tvm.nd.array(x))
    np.testing.assert_allclose(p.numpy(), expected(x), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(places.numpy(), np.argsort(-expected(x), 1)[:, :3])
    print("best of", n, places.numpy().tolist())
"""


@pytest.mark.thorough
def test_an_onnx_model_is_read_and_run(run):
    printed = run(WRITER + CLASSIFIER)
    assert "R.nn.softmax" in printed
    assert "R.topk" in printed
    assert "best of 5" in printed


@pytest.mark.thorough
def test_an_operator_that_is_not_there_is_named(used_playground):
    playground = used_playground()
    program = """
from tvm.relax.frontend.onnx import from_onnx

from_onnx(
    model([node("StringNormalizer", ["x"], ["y"])], {}, [("x", (2,))], [("y", (2,))])
)
"""
    playground.run_to_end(WRITER + program)
    console = playground["console"]
    expect(console).to_contain_text("the operator StringNormalizer is not supported")


@pytest.mark.thorough
def test_what_needs_pytorch_says_so_in_a_line(used_playground):
    playground = used_playground()
    playground.run_to_end(
        """
from tvm.relax.frontend.torch import from_fx

from_fx(object(), [((1, 4), "float32")])
"""
    )
    console = playground["console"]
    expect(console).to_contain_text("from_fx takes a torch.fx.GraphModule, not object")
    expect(console).to_contain_text("from_onnx")
