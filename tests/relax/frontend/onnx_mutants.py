"""Small models of one operator or few, and random damage to them, for tests of the importer.

`models()` builds them; `mutant(seed)` gives one of them with one to three parts changed: an
attribute has another value or type, an input is left out, a weight's shape is a lie, bytes are
missing.
"""

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

F, I = TensorProto.FLOAT, TensorProto.INT64

INTEGERS = (0, 1, -1, 2, 3, -2, 7, -100, 1000, 10**8, 2**31, -(2**31), 2**62, -(2**63))
FLOATS = (0.0, -1.0, 1e30, float("inf"), float("nan"))
TEXTS = ("", "none", "SAME_UPPER", "linear", "DCR", "no such mode", "\0")


def ints(*values: int) -> np.ndarray:
    return np.array(values, "int64")


def floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype="float32").reshape(shape)


def build(
    op_type: str, *inputs: Any, outputs: int = 1, opset: int = 17, **attrs: Any
) -> ModelProto:
    """A model of one operator. Arrays are weights, lists are the shapes of inputs of floats, and
    tuples of inputs of integers."""
    names, values, weights = [], [], []
    for number, given in enumerate(inputs):
        name = f"in{number}" if given is not None else ""
        names.append(name)
        if isinstance(given, np.ndarray | np.generic):
            weights.append(numpy_helper.from_array(np.asarray(given), name))
        elif given is not None:
            dtype = I if isinstance(given, tuple) else F
            values.append(helper.make_tensor_value_info(name, dtype, list(given)))
    results = [f"out{number}" for number in range(outputs)]
    node = helper.make_node(op_type, names, results, name="the_node", **attrs)
    gives = [helper.make_tensor_value_info(name, F, None) for name in results]
    graph = helper.make_graph([node], "model", values, gives, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@cache
def models() -> list[ModelProto]:
    """Models that can be imported as they are."""
    image = [1, 4, 6, 6]
    return [
        *(build(name, [2, 3], [3]) for name in ("Add", "Mul", "Div", "Pow", "MatMul", "Less")),
        *(build(name, [2, 3]) for name in ("Relu", "Exp", "Softmax", "Flatten", "Shape", "Selu")),
        build("LeakyRelu", [2, 3], alpha=0.1),
        build("Clip", [2, 3], np.float32(0), np.float32(1)),
        build("Gemm", [2, 3], floats(4, 3), floats(4), transB=1, alpha=0.5),
        build("Conv", image, floats(8, 2, 3, 3), floats(8), group=2, pads=[1] * 4, strides=[2, 2]),
        build("ConvTranspose", image, floats(4, 2, 3, 3), strides=[2, 2], output_padding=[1, 1]),
        build("MaxPool", image, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        build("AveragePool", image, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        build("GlobalAveragePool", image),
        build("BatchNormalization", image, *(floats(4) for _ in range(4)), epsilon=1e-3),
        build("LayerNormalization", [2, 3], floats(3), floats(3), axis=-1),
        build("InstanceNormalization", image, floats(4), floats(4)),
        build("LRN", image, size=3),
        build("Reshape", [2, 3], ints(3, -1)),
        build("Squeeze", [1, 3], ints(0)),
        build("Unsqueeze", [2, 3], ints(0, 3)),
        build("Transpose", [2, 3], perm=[1, 0]),
        build("Concat", [2, 3], [2, 3], axis=1),
        build("Split", [2, 6], ints(2, 4), outputs=2, axis=1),
        build("Slice", [4, 6], ints(1, 0), ints(3, 6), ints(0, 1), ints(1, 2)),
        build("Pad", [2, 3], ints(1, 0, 1, 2), np.float32(0), mode="constant"),
        build("Expand", [2, 1], ints(2, 3)),
        build("Tile", [2, 3], ints(2, 2)),
        build("ConstantOfShape", ints(2, 3), value=helper.make_tensor("v", F, [1], [1.0])),
        build("Constant", value=numpy_helper.from_array(floats(3))),
        build("Range", *(np.array(i, "int64") for i in (0, 6, 2))),
        build("Cast", [2, 3], to=I),
        build("Where", np.array([True, False]), [3, 2], [2]),
        build("Gather", [4, 3], ints(0, 2), axis=0),
        build("Gather", [4, 3], (2, 2), axis=1),
        build("GatherElements", [4, 3], ints(0, 1, 2)[None], axis=0),
        build("GatherND", [4, 3], ints(0, 1)[None]),
        build("ScatterElements", [4, 3], ints(0, 1)[None], floats(1, 2), axis=0),
        build("ScatterND", [4, 3], ints(0, 2)[:, None], floats(2, 3), reduction="add"),
        build("OneHot", (4,), np.array(5, "int64"), floats(2), axis=-1),
        build("Trilu", [4, 4], np.array(1, "int64"), upper=0),
        build("EyeLike", [4, 4], k=1, dtype=F),
        build("TopK", [4, 6], ints(2), outputs=2, axis=-1, largest=0),
        build("CumSum", [4, 6], np.array(1, "int64"), reverse=1),
        build("ReduceMean", [2, 3, 4], axes=[1], keepdims=0),
        build("ReduceSum", [2, 3, 4], ints(0, 2), keepdims=1),
        build("ArgMax", [2, 3], axis=1, select_last_index=1),
        build("DepthToSpace", image, blocksize=2, mode="CRD"),
        build("SpaceToDepth", image, blocksize=2),
        build("Resize", image, None, np.array([1, 1, 2, 2], "float32"), mode="linear"),
        build("Einsum", [2, 3], [3, 4], equation="ij,jk->ik"),
        build("QuantizeLinear", [2, 3], np.float32(0.1), np.uint8(3)),
        build("DequantizeLinear", np.zeros((2, 3), "uint8"), np.float32(0.1), np.uint8(3)),
        build("LSTM", [3, 2, 4], floats(1, 20, 4), floats(1, 20, 5), outputs=3, hidden_size=5),
        build("GRU", [3, 2, 4], floats(1, 15, 4), floats(1, 15, 5), outputs=2, hidden_size=5),
        build("Hardmax", [2, 3], axis=-1),
        _computed_shape(),
        _loop(),
    ]


def _computed_shape() -> ModelProto:
    """A reshape by what the graph computes of the input's shape."""
    make = helper.make_node
    nodes = [
        make("Shape", ["x"], ["shape"]),
        make("Gather", ["shape", "zero"], ["rows"], axis=0),
        make("Mul", ["rows", "two"], ["twice"]),
        make("Concat", ["twice", "rest"], ["wanted"], axis=0),
        make("Reshape", ["x", "wanted"], ["y"], name="reshaped"),
    ]
    weights = {"zero": ints(0), "two": ints(2), "rest": ints(-1)}
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", F, ["n", 6])],
        [helper.make_tensor_value_info("y", F, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _loop() -> ModelProto:
    """Three steps that add one."""
    inner = helper.make_graph(
        [
            helper.make_node("Add", ["h", "one"], ["h2"]),
            helper.make_node("Identity", ["go"], ["go2"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", I, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", F, [3]),
        ],
        [
            helper.make_tensor_value_info("go2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h2", F, [3]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["steps", "", "x"], ["y"], body=inner)],
        "model",
        [helper.make_tensor_value_info("x", F, [3])],
        [helper.make_tensor_value_info("y", F, [3])],
        [
            numpy_helper.from_array(np.array(3, "int64"), "steps"),
            numpy_helper.from_array(np.ones(3, "float32"), "one"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def mutant(seed: int) -> tuple[str, bytes]:
    """What was done to which operator, and the model's bytes."""
    rng = random.Random(seed)
    model = ModelProto()
    source = rng.choice(models())
    model.CopyFrom(source)
    done = [source.graph.node[-1].op_type]
    for _ in range(rng.choice((1, 1, 2, 3))):
        mutate = rng.choice(MUTATIONS)
        if mutate(rng, model):
            done.append(mutate.__name__)
    data = model.SerializeToString()
    if rng.random() < 0.1:
        done.append("bytes")
        data = _damaged(rng, data)
    return f"mutant({seed}): {', '.join(done)}", data


def _damaged(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    if rng.random() < 0.3:
        return data[:place]
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    for node in model.graph.node:
        yield node
        for attribute in node.attribute:
            yield from attribute.g.node


def attribute_value(rng: random.Random, model: ModelProto) -> bool:
    found = [attribute for node in _nodes(model) for attribute in node.attribute]
    if not found:
        return False
    chosen = rng.choice(found)
    if chosen.type == AttributeProto.INT:
        chosen.i = rng.choice(INTEGERS)
    elif chosen.type == AttributeProto.FLOAT:
        chosen.f = rng.choice(FLOATS)
    elif chosen.type == AttributeProto.STRING:
        chosen.s = rng.choice(TEXTS).encode()
    elif chosen.type == AttributeProto.INTS:
        _change_list(rng, chosen.ints)
    elif chosen.type == AttributeProto.TENSOR:
        _change_tensor(rng, chosen.t)
    return True


def _change_list(rng: random.Random, values: Any) -> None:
    how = rng.randrange(4)
    if how == 0 or not values:
        values.append(rng.choice(INTEGERS))
    elif how == 1:
        values.pop()
    elif how == 2:
        del values[:]
    else:
        values[rng.randrange(len(values))] = rng.choice(INTEGERS)


def attribute_type(rng: random.Random, model: ModelProto) -> bool:
    node = rng.choice(list(_nodes(model)))
    if not node.attribute:
        return False
    chosen = rng.choice(node.attribute)
    value = rng.choice((rng.choice(INTEGERS), 0.5, "text", [1, 2], [0.5], ["a"], floats(2)))
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value)
    chosen.CopyFrom(helper.make_attribute(chosen.name, value))
    return True


def attribute_kind(rng: random.Random, model: ModelProto) -> bool:
    """An attribute that is said to be of another kind than its field."""
    node = rng.choice(list(_nodes(model)))
    if node.attribute:
        rng.choice(node.attribute).type = rng.randrange(15)
    return True


def attribute_gone(rng: random.Random, model: ModelProto) -> bool:
    node = rng.choice(list(_nodes(model)))
    if node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
    return True


def attribute_more(rng: random.Random, model: ModelProto) -> bool:
    name = rng.choice(("axis", "axes", "to", "mode", "pads", "perm", "dilations", "auto_pad", "k"))
    value = rng.choice((rng.choice(INTEGERS), [rng.choice(INTEGERS)], rng.choice(TEXTS)))
    node = rng.choice(list(_nodes(model)))
    node.attribute.append(helper.make_attribute(name, value))
    return True


def inputs(rng: random.Random, model: ModelProto) -> bool:
    node = rng.choice(list(_nodes(model)))
    how = rng.randrange(5)
    if how == 0 or not node.input:
        node.input.append(rng.choice(["", "in0", "out0", "nothing"]))
    elif how == 1:
        node.input.pop()
    elif how == 2:
        del node.input[:]
    elif how == 3:
        node.input[rng.randrange(len(node.input))] = rng.choice(["", "in0", "in1", "x"])
    else:
        node.input[:] = rng.sample(list(node.input), len(node.input))
    return True


def outputs(rng: random.Random, model: ModelProto) -> bool:
    node = rng.choice(list(_nodes(model)))
    if rng.random() < 0.5 or not node.output:
        node.output.append(rng.choice(("", "more")))
    else:
        node.output.pop()
    return True


def operator(rng: random.Random, model: ModelProto) -> bool:
    node = rng.choice(list(_nodes(model)))
    node.op_type = rng.choice([each.graph.node[-1].op_type for each in models()] + ["Nothing", ""])
    return True


def function(rng: random.Random, model: ModelProto) -> bool:
    """The operator becomes a function of the model, which may call itself."""
    node = rng.choice(model.graph.node)
    node.domain = "local"
    inner = helper.make_node(rng.choice((node.op_type, "Relu", "Add")), ["a"], ["b"])
    inner.domain = rng.choice(("local", ""))
    opsets = [helper.make_opsetid("", 17)] * rng.randrange(2)
    body = helper.make_function("local", node.op_type, ["a"], ["b"], [inner], opsets)
    model.functions.append(body)
    return True


def subgraph(rng: random.Random, model: ModelProto) -> bool:
    """A graph where an attribute is, of an operator that may have none."""
    node = rng.choice(model.graph.node)
    name = rng.choice(("body", "then_branch", "else_branch", "axis"))
    graph = GraphProto()
    if rng.random() < 0.5:
        graph.CopyFrom(model.graph)
    node.op_type = rng.choice((node.op_type, "If", "Loop", "Scan", "SequenceMap"))
    node.attribute.append(helper.make_attribute(name, graph))
    return True


def order(rng: random.Random, model: ModelProto) -> bool:
    """A node is computed twice, or before what it needs."""
    model.graph.node.insert(0, rng.choice(model.graph.node))
    return True


def _change_tensor(rng: random.Random, tensor: TensorProto) -> None:
    how = rng.randrange(6)
    if how == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(INTEGERS)
    elif how == 1:
        tensor.dims.append(rng.choice((0, 1, -1)))
    elif how == 2:
        tensor.data_type = rng.randrange(30)
    elif how == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif how == 4:
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=rng.choice(("", "weights", "../w", "\0")))
        tensor.external_data.add(key="offset", value=rng.choice(("-1", "10000000", "x")))
        tensor.external_data.add(key="length", value=rng.choice(("-2", "99999999", "", "4")))
    elif tensor.data_type == I and tensor.raw_data and len(tensor.raw_data) % 8 == 0:
        values = np.frombuffer(tensor.raw_data, "int64").copy()
        values[rng.randrange(values.size)] = rng.choice(INTEGERS)
        tensor.raw_data = values.tobytes()


def weight(rng: random.Random, model: ModelProto) -> bool:
    if not model.graph.initializer:
        return False
    _change_tensor(rng, rng.choice(model.graph.initializer))
    return True


def input_shape(rng: random.Random, model: ModelProto) -> bool:
    if not model.graph.input:
        return False
    tensor = rng.choice(model.graph.input).type.tensor_type
    how = rng.randrange(5)
    if how == 0:
        tensor.shape.dim.add(dim_value=rng.choice(INTEGERS))
    elif how == 1 and tensor.shape.dim:
        del tensor.shape.dim[-1]
    elif how == 2 and tensor.shape.dim:
        rng.choice(tensor.shape.dim).dim_value = rng.choice(INTEGERS)
    elif how == 3 and tensor.shape.dim:
        rng.choice(tensor.shape.dim).dim_param = rng.choice(("n", "", "2n", "a b"))
    else:
        tensor.elem_type = rng.randrange(30)
    return True


def opset(rng: random.Random, model: ModelProto) -> bool:
    model.opset_import[0].version = rng.choice(
        (0, 1, 5, 8, 9, 10, 11, 12, 13, 18, 20, 25, -1, 10**9)
    )
    return True


MUTATIONS: tuple[Callable[[random.Random, ModelProto], bool], ...] = (
    attribute_value, attribute_value, attribute_type, attribute_kind, attribute_gone,
    attribute_more, inputs, inputs, outputs, operator, function, subgraph, order, weight, weight,
    weight, input_shape, input_shape, opset,
)  # fmt: skip
