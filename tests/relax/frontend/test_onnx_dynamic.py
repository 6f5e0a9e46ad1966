"""Models whose shapes and positions are known only in a run give what onnxruntime gives."""

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend import detach_params
from mlcweb.relax.frontend.onnx import ConstantNeeded, OpNotImplemented, from_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

RANDOM = np.random.default_rng(3)


def image(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


def model_of(nodes, inputs, shapes, weights, outputs=("y",), opset=17):
    def info(name, array):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, shapes.get(name, array.shape))

    graph = helper.make_graph(
        nodes,
        "graph",
        [info(name, array) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    # The types of outputs are inferred.
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def check(nodes, inputs, shapes=None, weights=None, **options):
    """Also with the weights as parameters."""
    inputs = {name: np.asarray(array) for name, array in inputs.items()}
    model = model_of(nodes, inputs, shapes or {}, weights or {}, **options)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    for keep in (False, True) if weights else (False,):
        module, params = detach_params(from_onnx(model, keep_params_in_input=keep))
        machine = relax.VirtualMachine(relax.build(module, "llvm"), mlcweb.cpu())
        arrays = [mlcweb.nd.array(array) for array in inputs.values()]
        results = machine["main"](*arrays, *params.get("main", []))
        results = [results] if hasattr(results, "numpy") else list(results)
        for result, value in zip(results, expected, strict=True):
            assert result.numpy().dtype == value.dtype
            assert result.numpy().shape == value.shape
            np.testing.assert_allclose(result.numpy(), value, rtol=1e-4, atol=1e-5)


def node(op_type, *inputs, **attributes):
    return helper.make_node(op_type, inputs, ["y"], **attributes)


def test_a_shape_that_is_an_input():
    check([node("Expand", "x", "s")], {"x": image(3, 1), "s": [2, 1, 4]})
    check([node("ConstantOfShape", "s")], {"s": [2, 3]})
    check([node("Tile", "x", "r")], {"x": image(2, 3), "r": [2, 3]}, {"x": ("a", 3)})


def test_an_expansion_of_symbolic_extents_needs_its_shape():
    inputs = {"x": image(3, 1), "s": np.array([3, 4])}
    model = model_of([node("Expand", "x", "s")], inputs, {"x": ("a", 1)}, {})
    with pytest.raises(OpNotImplemented, match=r"a shape that comes with a run, .*\[a, 1\]"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("int64", (1, 9, 2)),
        ("int64", (7, -5, -4)),
        ("int32", (7, 5, 4)),
        ("float32", (1, 3.2, 0.5)),
    ],
)
def test_a_range_of_inputs(dtype, numbers):
    values = [np.array(number, dtype) for number in numbers]
    check([node("Range", "a", "b", "c")], dict(zip("abc", values, strict=True)))


def test_slices_at_positions_that_are_inputs():
    x = image(9, 5, 4)
    check([node("Slice", "x", "s", "e")], {"x": x, "s": [1, 2], "e": [7, -1]})
    check(
        [node("Slice", "x", "s", "e", "axes")],
        {"x": x, "s": np.array([1, -7], "int32"), "e": np.array([-1, 100], "int32")},
        weights={"axes": np.array([2, 0], "int32")},
    )
    check(
        [node("Slice", "x", "s", "e", "axes", "steps")],
        {"x": x, "steps": [-3]},
        weights={"s": [8], "e": [1], "axes": [0]},
    )


def test_what_follows_a_slice_knows_its_axes():
    nodes = [helper.make_node("Slice", ["x", "s", "e"], ["a"]), node("Transpose", "a")]
    check(nodes, {"x": image(9, 4), "s": [-4], "e": [8]})


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_images_of_symbolic_extents_at_other_sizes(nearest):
    x, shape = image(2, 3, 5, 4), {"x": ("n", 3, "h", "w")}
    whole, part = (np.array(scales, "float32") for scales in ([1, 1, 3, 2], [1, 1, 1, 1.5]))
    resize = node("Resize", "x", "", "scales", nearest_mode=nearest)
    check([resize], {"x": x}, shape, {"scales": whole})
    check([resize], {"x": x}, {"x": ("n", 3, "h", 4)}, {"scales": part})
    with pytest.raises(OpNotImplemented, match=r"symbolic extents times \[1.5\], which are not"):
        from_onnx(model_of([resize], {"x": x}, shape, {"scales": part}))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_smooth_images_of_symbolic_extents(mode):
    for transformation in ("half_pixel", "asymmetric", "align_corners"):
        attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
        resize = node("Resize", "x", "", "", "sizes", **attributes)
        check([resize], {"x": image(1, 3, 5, 4)}, {"x": (1, 3, "h", "w")}, {"sizes": [1, 3, 7, 9]})


def test_weights_that_must_be_known_are_read_from_the_model():
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["a"], mode="nearest"),
        helper.make_node("Mul", ["a", "w"], ["b"]),
        node("Pad", "b", "pads", "fill"),
    ]
    weights = {
        "scales": np.array([1, 1, 2, 2], "float32"), "w": np.float32(3), "fill": np.float32(0.5),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 1]),
    }  # fmt: skip
    check(nodes, {"x": image(1, 1, 4, 4)}, weights=weights)
    module = from_onnx(
        model_of(nodes, {"x": image(1, 1, 4, 4)}, {}, weights), keep_params_in_input=True
    )
    assert [param.name_hint for param in module["main"].params] == ["x", "w"]


def test_a_weight_that_is_read_and_used_stays_a_parameter():
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["a"], mode="nearest"),
        helper.make_node("Mul", ["scales", "scales"], ["b"]),
        node("Add", "a", "b"),
    ]
    weights = {"scales": np.array([1, 1, 2, 2], "float32")}
    model = model_of(nodes, {"x": image(1, 1, 2, 2)}, {}, weights)
    module = from_onnx(model, keep_params_in_input=True)
    assert [param.name_hint for param in module["main"].params] == ["x", "scales"]
    check(nodes, {"x": image(1, 1, 2, 2)}, weights=weights)


def test_extents_by_the_same_mark_need_not_be_equal():
    x, w = image(3, 4), image(4, 5)
    check([node("MatMul", "x", "w")], {"x": x}, {"x": ("?", "?")}, {"w": w})


def test_an_extent_may_be_computed_from_others():
    inputs = {"x": image(6, 3), "a": image(3), "b": image(3)}
    shapes = {"x": ("n + m", 3), "a": ("n",), "b": ("m",)}
    model = model_of([node("Identity", "x")], inputs, shapes, {})
    x, a, b = (param.struct_info.shape.values for param in from_onnx(model)["main"].params)
    assert mlcweb.ir.structural_equal(x[0], a[0] + b[0])
    check([node("Identity", "x")], inputs, shapes)
    for text, formula in (
        ("2 * n - m // 3", lambda n, m: 2 * n - m // 3),
        ("n / m", lambda n, m: n // m),
    ):
        model = model_of([node("Identity", "x")], inputs, {**shapes, "x": (text, 3)}, {})
        x, a, b = (param.struct_info.shape.values for param in from_onnx(model)["main"].params)
        assert mlcweb.ir.structural_equal(x[0], formula(a[0], b[0]))


def test_a_formula_of_what_no_input_has_is_a_name():
    shapes = {"x": ("other + 1", 3)}
    model = model_of([node("Identity", "x")], {"x": image(6, 3)}, shapes, {})
    assert str(from_onnx(model)["main"].params[0].struct_info.shape.values[0]) == "other___1"


def test_a_symbolic_scalar_is_a_scalar():
    nodes = [helper.make_node("Shape", ["x"], ["s"]), node("Gather", "s", "i")]
    check(nodes, {"x": image(5, 2)}, {"x": ("n", 2)}, {"i": np.array(0)})


def test_a_matrix_of_symbolic_extents():
    check([node("EyeLike", "x", k=1)], {"x": image(3, 4)}, {"x": ("a", "b")})


def test_pads_must_be_known():
    inputs = {"x": image(2, 2), "p": np.array([0, 1, 0, 1])}
    with pytest.raises(ConstantNeeded, match="pads"):
        from_onnx(model_of([node("Pad", "x", "p")], inputs, {}, {}))
