"""The importer: the format itself, names, shapes, weights, and what it says of wrong models."""

import struct

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend import detach_params
from mlcweb.relax.frontend.onnx import ConstantNeeded, OnnxError, OpNotImplemented, from_onnx
from mlcweb.relax.frontend.onnx.schema import DECODER
from mlcweb.relax.frontend.onnx.wire import WireError


def field(number, data):
    """A field of the wire format: bytes, text, or a whole number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    value &= (1 << 64) - 1
    out = []
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def attribute(name, kind, number, value):
    return field(1, name) + field(number, value) + field(20, kind)


def node(op_type, inputs, outputs, *attributes, name="", domain=""):
    parts = [field(1, text) for text in inputs] + [field(2, text) for text in outputs]
    parts += [field(3, name), field(4, op_type), *(field(5, a) for a in attributes)]
    return b"".join(parts) + field(7, domain)


def tensor(name, array):
    dtype = {"float32": 1, "int64": 7}[array.dtype.name]
    dims = b"".join(field(1, n) for n in array.shape)
    return dims + field(2, dtype) + field(8, name) + field(9, array.tobytes())


def value(name, shape, dtype=1):
    dims = b"".join(
        field(1, field(2, n) if isinstance(n, str) else b"" if n is None else field(1, n))
        for n in shape
    )
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)))


def model(nodes, inputs, outputs, weights=(), opset=13):
    """An ONNX file, written here so that no other package is needed."""
    graph = b"".join(
        [field(1, n) for n in nodes]
        + [field(5, w) for w in weights]
        + [field(11, i) for i in inputs]
        + [field(12, o) for o in outputs]
    )
    return field(1, 8) + field(7, field(2, "graph") + graph) + field(8, field(2, opset))


def run(module, *inputs):
    machine = relax.VirtualMachine(relax.build(module, "llvm"), mlcweb.cpu())
    return machine["main"](*[mlcweb.nd.array(x) for x in inputs]).numpy()


W = np.arange(6, dtype="float32").reshape(2, 3)


def dense(batch=4, names=("x", "y")):
    nodes = [node("MatMul", [names[0], "w"], ["h"]), node("Relu", ["h"], [names[1]])]
    return model(nodes, [value(names[0], (batch, 2))], [value(names[1], (4, 3))], [tensor("w", W)])


def test_a_model_from_bytes_and_from_a_file(tmp_path):
    x = np.array([[1, -2], [3, 4], [0, 0], [-1, 1]], "float32")
    (tmp_path / "dense.onnx").write_bytes(dense())
    for source in (dense(), tmp_path / "dense.onnx", str(tmp_path / "dense.onnx")):
        np.testing.assert_array_equal(run(from_onnx(source), x), np.maximum(x @ W, 0))


def test_the_imported_function():
    main = from_onnx(dense())["main"]
    assert [param.name_hint for param in main.params] == ["x"]
    assert main.attrs["num_input"] == 1
    assert main.ret_struct_info == relax.TensorStructInfo((4, 3), "float32")


@pytest.mark.parametrize("batch", ["n", None])
def test_an_extent_without_a_number_is_symbolic(batch):
    module = from_onnx(dense(batch))
    assert str(module["main"].params[0].struct_info.shape[0]) == (batch or "x_0")
    for rows in (1, 5):
        x = np.ones((rows, 2), "float32")
        np.testing.assert_array_equal(run(module, x), x @ W)


def test_shapes_and_types_can_be_given():
    module = from_onnx(dense("n"), {"x": (7, 2)}, {"x": "float32"})
    assert module["main"].params[0].struct_info == relax.TensorStructInfo((7, 2), "float32")
    with pytest.raises(OnnxError, match='no input "z"; it has x'):
        from_onnx(dense(), {"z": (1, 2)})


def test_names_that_scripts_cannot_have_are_changed():
    source = dense(names=("input.1", "0"))
    assert from_onnx(source)["main"].params[0].name_hint == "input_1"
    kept = from_onnx(source, sanitize_input_names=False)
    assert kept["main"].params[0].name_hint == "input.1"


def test_weights_can_stay_parameters():
    module = from_onnx(dense(), keep_params_in_input=True)
    assert [param.name_hint for param in module["main"].params] == ["x", "w"]
    detached, params = detach_params(module)
    assert "params" not in detached["main"].attrs
    x = np.ones((4, 2), "float32")
    machine = relax.VirtualMachine(relax.build(detached, "llvm"), mlcweb.cpu())
    result = machine["main"](mlcweb.nd.array(x), *params["main"])
    np.testing.assert_array_equal(result.numpy(), x @ W)


def test_an_operator_that_is_not_there():
    source = model(
        [node("Warp", ["x"], ["y"], name="warp_1")], [value("x", (2,))], [value("y", (2,))]
    )
    with pytest.raises(OpNotImplemented, match=r'Warp "warp_1" \(opset 13\).* is not supported$'):
        from_onnx(source)


def test_extents_that_must_be_numbers_and_are_symbolic():
    source = model([node("Hardmax", ["x"], ["y"])], [value("x", (2, "n"))], [value("y", (2, "n"))])
    with pytest.raises(OpNotImplemented, match=r"Hardmax .*the symbolic extent n of axis"):
        from_onnx(source)


def test_channels_that_must_be_a_number_and_are_symbolic():
    source = model(
        [node("CausalConvWithState", ["x", "w"], ["y"])],
        [value("x", (1, "n", 8)), value("w", (4, 1, 3))],
        [value("y", (1, 4, 8))],
        opset=24,
    )
    with pytest.raises(OpNotImplemented, match=r"CausalConv.*of input 0 are symbolic"):
        from_onnx(source)


@pytest.mark.parametrize("auto_pad", ["", "SAME_UPPER"])
def test_kernels_of_symbolic_extents_need_their_padding(auto_pad):
    attributes = [attribute("auto_pad", 3, 4, auto_pad)] if auto_pad else []
    source = model(
        [node("ConvInteger", ["x", "w"], ["y"], *attributes)],
        [value("x", (1, 1, 8, 8), 2), value("w", (1, 1, "n", 3), 2)],
        [value("y", (1, 1, None, 6), 6)],
    )
    if auto_pad:
        with pytest.raises(OpNotImplemented, match='auto_pad="SAME_UPPER" for windows of symbolic'):
            from_onnx(source)
    else:
        assert from_onnx(source)["main"].ret_struct_info.ndim == 4


def test_a_shape_that_depends_on_an_input():
    source = model(
        [node("Reshape", ["x", "s"], ["y"], name="r")],
        [value("x", (4,)), value("s", (2,), 7)],
        [value("y", (2, 2))],
    )
    with pytest.raises(
        ConstantNeeded, match=r'Reshape "r".*shape \(input "s"\) must be known'
    ) as e:
        from_onnx(source)
    assert e.value.input_name == "s"


def test_a_shape_computed_from_symbolic_extents():
    """x.reshape(x.shape[0], -1), as exporters write it."""
    zero, rest = tensor("zero", np.array(0)), tensor("rest", np.array([-1]))
    axes = tensor("axes", np.array([0]))
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "rest"], ["t"], attribute("axis", 2, 3, 0)),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    source = model(nodes, [value("x", ("n", 3, 4))], [value("y", ("n", 12))], [zero, rest, axes])
    main = from_onnx(source)["main"]
    assert [str(extent) for extent in main.ret_struct_info.values][1] == "T.int64(12)"
    assert sum(len(block.bindings) for block in main.body.blocks) == 2


def test_a_shape_is_a_tensor_where_it_is_asked_for():
    source = model([node("Shape", ["x"], ["s"])], [value("x", ("n", 3))], [value("s", (2,), 7)])
    np.testing.assert_array_equal(run(from_onnx(source), np.ones((5, 3), "float32")), [5, 3])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"\xff\xff\xff", "not an ONNX model: an integer is cut off"),
        (b"", "it has no graph"),
        (dense()[:-20], "not an ONNX model: a field of a"),
        (3, "path, bytes or onnx.ModelProto, not int"),
    ],
)
def test_what_is_no_model(source, message):
    with pytest.raises(OnnxError, match=message):
        from_onnx(source)


def test_a_weight_with_too_few_bytes():
    bad = field(1, 4) + field(2, 1) + field(8, "w") + field(9, b"1234")
    with pytest.raises(
        OnnxError, match=r'"w" of shape \(4,\) .* has 4 bytes of data where it needs 16'
    ):
        from_onnx(model([], [], [], [bad]))


def test_packed_and_single_numbers():
    packed = field(1, varint(2) + varint(3)) + field(4, struct.pack("<2f", 1.5, -2))
    message = DECODER.decode("TensorProto", packed + field(1, -1))
    assert message.dims == [2, 3, -1]
    assert message.float_data == [1.5, -2.0]
    with pytest.raises(WireError, match="wire type 3"):
        DECODER.decode("TensorProto", b"\x0b")


def test_the_reader_agrees_with_the_onnx_package():
    onnx = pytest.importorskip("onnx")
    theirs = onnx.load_from_string(dense("n"))
    onnx.checker.check_model(theirs, full_check=True)
    ours = DECODER.decode("ModelProto", theirs.SerializeToString())
    assert [n.op_type for n in ours.graph.node] == [n.op_type for n in theirs.graph.node]
    assert ours.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert mlcweb.ir.structural_equal(from_onnx(theirs), from_onnx(dense("n")))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_pooling_of_which_onnx_has_no_test(p):
    nodes = [node("GlobalLpPool", ["x"], ["y"], attribute("p", 2, 3, p))]
    module = from_onnx(model(nodes, [value("x", (1, 2, 3, 4))], [value("y", (1, 2, 1, 1))]))
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 4)).astype("float32")
    expected = (np.abs(x) ** p).sum(axis=(2, 3), keepdims=True) ** (1 / p)
    np.testing.assert_allclose(run(module, x), expected, rtol=1e-5)


def local_function(name, *nodes):
    """A function that a model brings along, of one input "a" and one output "b"."""
    parts = [field(1, name), field(4, "a"), field(5, "b"), field(10, "own")]
    return field(25, b"".join([*parts, *(field(7, each) for each in nodes)]))


def of_functions(count, *functions):
    call = node(f"f{count}", ["x"], ["y"], domain="own")
    return model([call], [value("x", (2,))], [value("y", (2,))]) + b"".join(functions)


def doubling(level):
    """A function that calls the one below it twice."""
    inner = f"f{level - 1}"
    return local_function(
        f"f{level}",
        node(inner, ["a"], ["c"], domain="own"),
        node(inner, ["c"], ["b"], domain="own"),
    )


def test_functions_are_written_in_place_of_their_calls():
    given = of_functions(
        3, local_function("f0", node("Neg", ["a"], ["b"])), *map(doubling, (1, 2, 3))
    )
    x = np.array([1, -2], "float32")
    np.testing.assert_array_equal(run(from_onnx(given), x), x)
    assert str(from_onnx(given)).count("R.negative") == 8


def test_functions_that_multiply_are_bounded():
    base = local_function("f0", node("Neg", ["a"], ["b"]))
    with pytest.raises(OnnxError, match="come to more than 20000 nodes"):
        from_onnx(of_functions(40, base, *map(doubling, range(1, 41))))


def test_a_function_that_calls_itself_is_refused():
    around = local_function("f0", node("f1", ["a"], ["b"], domain="own"))
    with pytest.raises(OnnxError, match=r"own\.f1 calls itself: own\.f1 -> own\.f0 -> own\.f1"):
        from_onnx(of_functions(1, around, doubling(1)))
