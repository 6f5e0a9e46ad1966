"""Models written with `nn.Module`: what is traced is what a real TVM traces, and it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te
from mlcweb.ir.structural import structural_equal
from mlcweb.relax.frontend import nn
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.script import tir as T
from tests.relax.frontend.nn_models import ANSWERS, models

MODELS = models(nn)


@pytest.mark.parametrize("name", MODELS)
def test_traces_what_tvm_traces(name: str) -> None:
    model, spec = MODELS[name]
    mod, _ = model.export_tvm(spec)
    expected = from_source((ANSWERS / f"{name}.txt").read_text())
    assert structural_equal(mod, expected), f"{mod.script()}\nTVM:\n{expected.script()}"


def values(*shapes: tuple[int, ...]) -> list[Any]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape).astype("float32") for shape in shapes]


def test_a_perceptron_computes_what_numpy_does() -> None:
    model, spec = models(nn)["perceptron"]
    x, w1, b1, w2 = values((1, 8), (16, 8), (16,), (4, 16))
    mod, params = model.export_tvm(spec)
    assert [name for name, _ in params] == ["fc1.weight", "fc1.bias", "fc2.weight"]
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    result = vm["forward"](*map(tvm.nd.array, (x, w1, b1, w2)))
    np.testing.assert_allclose(result.numpy(), np.maximum(x @ w1.T + b1, 0) @ w2.T, rtol=1e-5)


def test_jit_runs_with_the_values_of_parameters() -> None:
    model, spec = models(nn)["perceptron"]
    x, w1, b1, w2 = values((1, 8), (16, 8), (16,), (4, 16))
    with pytest.raises(ValueError, match=r"fc1\.weight, fc1\.bias, fc2\.weight"):
        model.jit(spec)
    model.load_state_dict({"fc1.weight": w1, "fc1.bias": b1, "fc2.weight": w2})
    result = model.jit(spec, out_format="numpy")["forward"](x)
    np.testing.assert_allclose(result, np.maximum(x @ w1.T + b1, 0) @ w2.T, rtol=1e-5)


def test_states_are_loaded_by_name() -> None:
    model, _ = models(nn)["perceptron"]
    with pytest.raises(KeyError, match=r"Missing keys: \['fc1.bias', 'fc2.weight'\]"):
        model.load_state_dict({"fc1.weight": np.zeros((16, 8), "float32")})
    given = {"fc1.bias": np.ones(16, "float32"), "other": np.ones(1, "float32")}
    assert model.load_state_dict(given, strict=False) == (["fc1.weight", "fc2.weight"], ["other"])
    assert model.fc1.bias.data.numpy().sum() == 16
    with pytest.raises(ValueError, match=r"expected \(16,\), got \(4,\)"):
        model.fc1.bias.data = np.zeros(4, "float32")
    with pytest.raises(ValueError, match="expected float32, got float64"):
        model.fc1.bias.data = np.zeros(16)


def test_element_types_change_before_values_are_set() -> None:
    model, spec = models(nn)["perceptron"]
    model.to("float16")
    assert {param.dtype for param in model.parameters()} == {"float16"}
    model.fc1.bias.data = np.zeros(16, "float16")
    with pytest.raises(ValueError, match="would lose digits"):
        model.to("float32")


@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v] * T.float32(2)


def test_functions_of_the_user_are_called() -> None:
    class Own(nn.Module):
        def forward(self, x: nn.Tensor) -> nn.Tensor:
            y = nn.op.tensor_ir_op(twice, "twice", [x], nn.Tensor.placeholder((4,), "float32"))
            return nn.op.tensor_expr_op(
                lambda a: te.compute(a.shape, lambda i: a[i] + i.astype("float32"), "ramp"),
                "ramp",
                [y],
            )

    mod, _ = Own().export_tvm({"forward": {"x": nn.spec.Tensor((4,), "float32")}})
    assert sorted(var.name_hint for var in mod.functions) == ["forward", "ramp", "twice"]
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    (x,) = values((4,))
    np.testing.assert_allclose(vm["forward"](tvm.nd.array(x)).numpy(), 2 * x + np.arange(4))


def test_one_result_of_a_function_may_be_in_a_list() -> None:
    class Own(nn.Module):
        def forward(self, x: nn.Tensor) -> Any:
            return nn.op.tensor_ir_op(twice, "twice", [x], [nn.Tensor.placeholder((4,), "float32")])

    mod, _ = Own().export_tvm({"forward": {"x": nn.spec.Tensor((4,), "float32")}})
    assert mod["forward"].ret_struct_info == relax.TensorStructInfo((4,), "float32")


def test_embeddings_of_time_steps() -> None:
    class Steps(nn.Module):
        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.op.get_timestep_embedding(x, 10, scale=2)

    mod, _ = Steps().export_tvm({"forward": {"x": nn.spec.Tensor((3,), "float32")}})
    assert mod.script().count("R.exp(") == 1  # the sines and cosines are of the same angles
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    (x,) = values((3,))
    angles = 2 * x[:, None] * np.exp(-np.log(10000) * np.arange(5) / 4)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(vm["forward"](tvm.nd.array(x)).numpy(), expected, atol=1e-5)


def test_effects_are_taken_and_given_where_debugging() -> None:
    model, spec = models(nn)["perceptron"]
    mod, _ = model.export_tvm(spec, debug=True)
    assert mod["forward"].attrs["num_input"] == 2
    assert [var.name_hint for var in mod.functions] == ["_initialize_effect", "forward"]


def test_modules_are_replaced_by_a_mutator() -> None:
    class Narrowing(nn.Mutator):
        def visit_module(self, name: str, node: Any) -> Any:
            if isinstance(node, nn.Linear):
                return nn.Linear(node.in_features, node.out_features, bias=False)
            return self.visit(name, node)

    model, _ = models(nn)["perceptron"]
    changed = Narrowing().visit_module("", model)
    assert [name for name, _ in changed.named_parameters()] == ["fc1.weight", "fc2.weight"]


@pytest.mark.parametrize(
    ("spec", "error", "says"),
    [
        ({"forwards": {}}, AttributeError, "has no method 'forwards'"),
        ({"forward": {"z": int}}, TypeError, "takes x, not z"),
        ({"forward": {"x": 3}}, TypeError, "Invalid spec for argument x"),
        ({"forward": {"$": {"param_mode": "all"}}}, ValueError, "plain, packed, none"),
        (None, TypeError, "The spec of a model"),
    ],
)
def test_wrong_specifications_are_refused(spec: Any, error: type[Exception], says: str) -> None:
    model, _ = models(nn)["perceptron"]
    with pytest.raises(error, match=says):
        model.export_tvm(spec)


def test_tensors_outside_of_tracing_are_refused() -> None:
    x = nn.Tensor.placeholder((2, "n"), "float32")
    with pytest.raises(tvm.TVMError, match="computed while a model is traced"):
        x + 1.0


def test_what_is_not_here_says_what_is() -> None:
    with pytest.raises(NotImplementedError, match="there is one device here"):
        nn.op.ccl_allreduce(None)


class Printing(nn.Module):
    def forward(self, x: nn.Tensor) -> nn.Tensor:
        y = x + x
        nn.op.print_(y)
        nn.op.debug_func("tests.seen", y, 3, "text", _line_info="model.py:7")
        return y


def test_models_print_and_call_functions_where_debugging(capsys: Any) -> None:
    seen: list[Any] = []
    register_func("tests.seen", lambda place, y, *rest: seen.append((place, y.numpy(), *rest)))
    spec = {"forward": {"x": nn.spec.Tensor((2,), "float32")}}
    try:
        forward = Printing().jit(spec, out_format="numpy", debug=True)["forward"]
        for number in (1, 2):
            x = np.full(2, number, "float32")
            np.testing.assert_array_equal(forward(x), 2 * x)
    finally:
        remove_global_func("tests.seen")
    assert [(place, y.tolist(), *rest) for place, y, *rest in seen] == [
        ("model.py:7", [2, 2], 3, "text"),
        ("model.py:7", [4, 4], 3, "text"),
    ]
    first, *_ = capsys.readouterr().out.splitlines()
    assert "test_nn.py:" in first and "shape = (2,), dtype = float32" in first
    with pytest.raises(RuntimeError, match="debug mode is on"):
        Printing().export_tvm(spec)


def test_modules_by_name():
    layers = nn.ModuleDict({"first": nn.Linear(4, 3), "second": nn.Linear(3, 2, bias=False)})
    layers.update(modules={"third": nn.ReLU()})
    assert list(layers) == list(layers.keys()) == ["first", "second", "third"]
    assert "second" in layers and len(layers) == 3 and layers.get("fourth") is None
    names = [name for name, _ in layers.named_parameters()]
    assert names == ["first.weight", "first.bias", "second.weight"]
    assert isinstance(layers.pop("third"), nn.ReLU) and list(layers)[-1] == "second"
    assert layers != nn.ModuleDict(dict(layers.items())) and {layers: 1}[layers] == 1
    layers.clear()
    assert not list(layers.values())


class Shared(nn.Module):
    """Two parameters of as many rows as the vocabulary has words."""

    def __init__(self) -> None:
        self.head = nn.Linear(4, "words")

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.head(x)

    def first(self, x: nn.Tensor) -> nn.Tensor:
        return nn.op.matmul(x, nn.op.permute_dims(self.head.weight))


def test_symbolic_extents_of_parameters_are_one_by_their_name() -> None:
    x = nn.spec.Tensor(("words", 4), "float32")
    mod, params = Shared().export_tvm({"forward": {"x": x}, "first": {"x": x}})
    assert [str(param.shape) for _, param in params] == ["[words, 4]", "[words]"]
    assert relax.analysis.well_formed(mod)
    (rows, _), (words, _), (length,) = [p.struct_info.values for p in mod["forward"].params]
    assert words is length and words is not rows  # that of an input is another one
    assert words is not mod["first"].params[1].struct_info.values[0]
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    data, weight, bias = values((3, 4), (5, 4), (5,))
    result = vm["forward"](*map(tvm.nd.array, (data, weight, bias))).numpy()
    np.testing.assert_allclose(result, data @ weight.T + bias, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="words"):
        vm["forward"](*map(tvm.nd.array, (data, weight, bias[:4])))


def test_extents_that_nothing_defines_are_refused() -> None:
    class Padding(nn.Module):
        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.op.zeros((tvm.tir.Var("rows", "int64"), 2))

    with pytest.raises(tvm.TVMError, match="rows is not defined"):
        Padding().export_tvm({"forward": {"x": nn.spec.Tensor((2,), "float32")}})


@pytest.mark.parametrize(("kind", "layout"), [(nn.Conv2D, "NHWC"), (nn.Conv3D, "NDHWC")])
def test_weights_of_convolutions_have_one_layout(kind: Any, layout: str) -> None:
    rank = len(layout) - 2
    first, last = kind(3, 2, 3), kind(3, 2, 3, data_layout=layout)
    assert first.weight.shape == last.weight.shape == [2, 3] + [3] * rank
    x, weight, bias = values((1, 3, *[4] * rank), (2, 3, *[3] * rank), (2,))
    results = []
    for model, data in ((first, x), (last, np.moveaxis(x, 1, -1))):
        model.load_state_dict({"weight": weight, "bias": bias})
        spec = {"forward": {"x": nn.spec.Tensor(data.shape, "float32")}}
        results.append(model.jit(spec, out_format="numpy")["forward"](data))
    np.testing.assert_allclose(np.moveaxis(results[1], -1, 1), results[0], rtol=1e-4, atol=1e-5)


def test_parameters_of_attention_come_in_the_order_of_tvm() -> None:
    names = [name for name, _ in nn.Attention(8, heads=2, norm_num_groups=2).named_parameters()]
    assert names == [
        "to_q.weight", "to_k.weight", "to_v.weight", "group_norm.weight", "group_norm.bias",
        "to_out.0.weight", "to_out.0.bias",
    ]  # fmt: skip


def test_numbers_of_any_kind_are_computed_with() -> None:
    class Filled(nn.Module):
        def forward(self) -> tuple[nn.Tensor, ...]:
            numbers = 3, tvm.tir.IntImm("int64", 3), tvm.tir.FloatImm("float32", 3)
            tensors = [nn.op.full((2,), number, "float16") for number in numbers]
            sums = [tensors[0] + number for number in numbers]
            return (*tensors, *sums)

    results = Filled().jit({"forward": {}}, out_format="numpy")["forward"]()
    assert {each.dtype.name for each in results} == {"float16"}
    assert [each.tolist() for each in results] == [[3, 3]] * 3 + [[6, 6]] * 3
