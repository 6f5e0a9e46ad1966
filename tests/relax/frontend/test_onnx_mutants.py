"""Whatever is wrong with a model, the importer says so by an `OnnxError` that names the node."""

import os
import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend.onnx import OnnxError, from_onnx
from tests.relax.frontend.onnx_mutants import build, floats, ints, models, mutant

EACH = 100
WHERE = re.compile(
    r'.*? ("[^"]*"|that gives .*?) \(opset -?\d+\)|The (data of the )?tensor "|The input "'
    r'|The graph uses the value "|The function [\w.]+ |The model does not say the shape of the '
    r"|This is not an ONNX model: ",
    re.DOTALL,
)
"""What is said first: the node, the tensor, or where the file is damaged."""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first < 4 * EACH else pytest.mark.thorough)
        for first in range(0, 40 * EACH, EACH)
    ],
)
def test_mutants_are_imported_or_refused(first):
    for seed in range(first, first + EACH):
        what, data = mutant(seed)
        said = ""
        try:
            from_onnx(data)
        except OnnxError as error:
            said = str(error)
        except Exception as error:
            raise AssertionError(what) from error
        assert not said or WHERE.match(said), what


def test_a_shape_has_not_millions_of_extents():
    model = build("ConstantOfShape", [2, 100_000_000, 4])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(OnnxError, match="800000000 numbers that come with a run"):
        from_onnx(model.SerializeToString())


def test_the_models_that_mutants_are_made_of_can_be_imported():
    for model in models():
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (build("Add"), r'Add "the_node" \(opset 17\): input 0 is missing'),
        (
            build("Slice", [4], ints(0), ints(4), ints(0), ints(0)),
            r"Slice .*: a step is 0: \[0\]",
        ),
        (
            build("Reshape", [2, 3], ints(-1, -1)),
            r"Reshape .*: the shape \[-1, -1\] leaves 2 extents open; one can be",
        ),
        (build("Reshape", [2, 3], ints(-2, 3)), r"Reshape .* negative extent"),
        (build("Unsqueeze", [2, 3], ints(0, 0)), "name one place twice"),
        (
            build("Conv", [1, 4, 6, 6], floats(8, 4, 3, 3), strides=[0, 1]),
            r'Conv "the_node" \(opset 17\): strides=\[0, 1\] must be positive integers',
        ),
        (
            build("MaxPool", [1, 4, 6, 6], kernel_shape=[2, 2], strides=[0, 0]),
            r'MaxPool "the_node" .*: strides=\[0, 0\] must be positive',
        ),
        (
            build("ConvTranspose", [1, 4, 6, 6], floats(4, 4, 3, 3), dilations=[1, -1]),
            r"dilations=\[1, -1\] must be positive",
        ),
        (build("Split", [4, 10**9], axis=1, num_outputs=10**8, opset=18), "1 outputs, where num_"),
        (
            build("MatMul", [2, 3], [4, 5]),
            r'MatMul "the_node" \(opset 17\): relax.matmul: x1 of shape \(2, 3\) and x2 of shape',
        ),
        (
            build("MaxPool", [1, 4, 6, 6], kernel_shape=helper.make_tensor("v", 1, [1], [1.0])),
            "kernel_shape=a tensor of float32 must be positive integers",
        ),
        (
            build("ConstantOfShape", ints(2, -1)),
            r'ConstantOfShape "the_node" .*: the result has a negative extent: .*\(2, -1\)',
        ),
        (
            build("ConstantOfShape", ints(2, 3), value=numpy_helper.from_array(floats(2))),
            r'ConstantOfShape "the_node" .*: value must be a tensor of one element',
        ),
        (build("MaxPool", [1, 4, 6, 6]), 'the attribute "kernel_shape" is missing'),
        (build("Cast", [2]), 'Cast "the_node" .* the attribute "to" is missing'),
        (
            build("Gather", [2, 3], ints(0), axis="first"),
            r"Gather \"the_node\" .* with axis='first': it is malformed \(TypeError: ",
        ),
        (build("OneHot", (4,), np.array(-3, "int64"), floats(2)), "depth must be positive, not -3"),
        (
            build("Tile", [2, 3], ints(-2, 2)),
            r"Tile .* the result has a negative extent: .*-4, 6",
        ),
        (
            build("Reshape", np.int64(0), np.int64(6)),
            r'Reshape "the_node" .*: 1 elements do not fill \(6,\)',
        ),
        (build("Constant", value=[1, -1]), r'Constant "the_node" .*: value must be a tensor'),
        (build("ScatterND", [4], ints(0)[None], [1], reduction="or"), 'no reduction "or"'),
    ],
)
def test_what_is_said_of_a_wrong_node(model, message):
    with pytest.raises(OnnxError, match=message):
        from_onnx(model.SerializeToString())


def test_a_depth_costs_nothing_when_a_model_is_imported():
    model = build("OneHot", (4,), np.array(10**8, "int64"), floats(2))
    main = from_onnx(model.SerializeToString())["main"]
    assert main.ret_struct_info == relax.TensorStructInfo((4, 10**8), "float32")


def test_powers_of_constants_stay_in_their_type():
    power = build("Pow", ints(3, 10**18), ints(41, 10**18))
    graph = from_onnx(power.SerializeToString())
    machine = relax.VirtualMachine(relax.build(graph, "llvm"), mlcweb.cpu())
    with np.errstate(over="ignore"):
        expected = np.power(ints(3, 10**18), ints(41, 10**18))
    np.testing.assert_array_equal(machine["main"]().numpy(), expected)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"location": "weights", "length": "4000"}, r"4000 bytes from byte 0 of .* which has 16"),
        ({"location": "weights", "offset": "-4"}, r"from byte -4"),
        ({"location": "weights", "offset": "99"}, r"from byte 99"),
        ({"location": "weights", "length": "-2"}, r"-2 bytes"),
        ({"location": "weights", "offset": "x"}, "does not say where"),
        ({"location": "weights", "length": "8"}, "8 bytes of data where it needs 16"),
        ({"location": "nothing"}, "is not there"),
        ({}, "not in the folder"),
        ({"location": "../weights"}, "not in the folder"),
        ({"location": "\0"}, "does not say where"),
        ({"location": "a" * 5000}, "does not say where .* too long"),
        ({"location": "circle"}, "does not say where|is not there"),
        ({"location": "pipe"}, "is not there"),
    ],
)
def test_a_weight_in_a_file_is_read_only_where_it_is(tmp_path, where, message):
    model = build("Add", [4], floats(4))
    tensor = model.graph.initializer[0]
    (tmp_path / "weights").write_bytes(tensor.raw_data)
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in where.items():
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(OnnxError, match=message):
        from_onnx(tmp_path / "model.onnx")


def test_an_output_that_is_left_out_is_named():
    model = build("Add", [4], floats(4))
    model.graph.output[0].name = ""
    with pytest.raises(OnnxError, match='The graph uses the value "" as an output, which is left'):
        from_onnx(model.SerializeToString())


LARGE = np.zeros(2000, "int64")
LARGE[1999] = -5


@pytest.mark.parametrize(
    "model",
    [
        build("Gather", [4, 3], ints(0, 4)),
        build("Gather", [4, 3], LARGE),
        build("GatherElements", [4, 3], ints(0, 1, -4)[None], axis=1),
        build("GatherND", [4, 3], ints(0, 3)[None]),
        build("ScatterElements", [4, 3], ints(0, 1, 4)[None], [1, 3]),
        build("ScatterND", [4, 3], ints(1, 999_999)[:, None], [2, 3]),
    ],
)
def test_constant_indices_out_of_range_are_refused(model):
    with pytest.raises(
        OnnxError, match=r'"the_node".*: the index -?\d+ is out of range for an ext'
    ):
        from_onnx(model.SerializeToString())


SCATTERS = {
    "ScatterND": (build("ScatterND", [4, 3], (1, 1), [1, 3]), (1, 1), (1, 3)),
    "ScatterElements": (build("ScatterElements", [4, 3], (1, 3), [1, 3]), (1, 3), (1, 3)),
}


@pytest.mark.parametrize("index", [4, 12, 999_999, 2**40, -5])
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("target", ["wasm", "interpreter"])
def test_a_scatter_writes_nothing_outside(name, index, target):
    model, chosen, new = SCATTERS[name]
    built = relax.build(from_onnx(model.SerializeToString()), target)
    machine = relax.VirtualMachine(built, mlcweb.cpu())
    data = mlcweb.nd.array(np.zeros((4, 3), "float32"))
    beside = [mlcweb.nd.array(np.zeros(64, "float32")) for _ in range(8)]
    updates = mlcweb.nd.array(np.ones(new, "float32"))
    with pytest.raises(mlcweb.TVMError, match="an index is out of range in axis 0"):
        machine["main"](data, mlcweb.nd.array(np.full(chosen, index)), updates)
    assert not any(array.numpy().any() for array in [data, *beside])
    # From the end, and in range.
    last = machine["main"](data, mlcweb.nd.array(np.full(chosen, -4)), updates).numpy()
    assert last.sum() == 3 and last[0].sum() == 3


def test_a_gather_out_of_range_is_an_error_of_a_checked_run():
    module = from_onnx(build("Gather", [4, 3], (2,)).SerializeToString())
    for target in ("wasm -bounds_check=1", "interpreter"):
        machine = relax.VirtualMachine(relax.build(module, target), mlcweb.cpu())
        data = mlcweb.nd.array(floats(4, 3))
        np.testing.assert_array_equal(
            machine["main"](data, mlcweb.nd.array(ints(-1, 0))).numpy(), floats(4, 3)[[-1, 0]]
        )
        with pytest.raises(mlcweb.TVMError, match="out of bounds"):
            machine["main"](data, mlcweb.nd.array(ints(0, 999_999)))


def test_errors_of_graphs_inside_name_the_inner_node():
    body = helper.make_graph(
        [helper.make_node("Cast", ["h"], ["h2"], name="inner")],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h2", TensorProto.FLOAT, [3]),
        ],
    )
    loop = build("Loop", np.array(2, "int64"), None, [3], body=body)
    with pytest.raises(OnnxError, match=r'Cast "inner" .*"to" is missing'):
        from_onnx(loop.SerializeToString())
