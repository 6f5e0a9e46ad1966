"""The stand-in for PyTorch beside PyTorch itself, on what the course's documents call."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import compat, relax
from mlcweb.relax.frontend.torch import from_fx
from mlcweb.stand_ins import torch as stand_in
from mlcweb.stand_ins import torchvision
from mlcweb.stand_ins.torchvision.weights import convolutional, mlp


@pytest.fixture(
    params=["stand-in", pytest.param("PyTorch", marks=pytest.mark.thorough)],
)
def torch(request: pytest.FixtureRequest) -> Any:
    """The stand-in, or PyTorch, of which the same is asked."""
    if request.param == "PyTorch":
        return pytest.importorskip("torch", reason="PyTorch comes with `make test-all`")
    return stand_in


def network(torch: Any) -> Any:
    """A small network of all the layers, with weights that are the same for both."""
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(1, 4, 3, stride=2, padding=1)
            self.rest = nn.Sequential(
                nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10), nn.Softmax(dim=1)
            )
            self.scale = nn.Parameter(torch.ones(1, 10))

        def forward(self, x: Any) -> Any:
            x = self.rest(self.first(x))
            return torch.relu(x * self.scale) * 1000

    rng = np.random.default_rng(0)
    model = Network().eval()
    values = [rng.normal(0, 0.3, tuple(p.shape)).astype("float32") for p in model.parameters()]
    for parameter, value in zip(model.parameters(), values, strict=True):
        parameter.data = torch.from_numpy(value)
    return model


def picture() -> np.ndarray:
    return np.random.default_rng(1).random((2, 1, 12, 12), dtype="float32")


NETWORK = [
    [ 2.7316058,  0.       , 11.110777 ,  0.4747079,  0.       , 13.973531 ,  6.3326178,
   4.423681 ,  0.       ,  0.       ],
 [ 4.7508345,  0.       , 14.883046 ,  0.6451533,  0.       , 15.945073 ,  5.140325 ,
  12.44764  ,  0.       ,  0.       ]
]  # fmt: skip
"""What PyTorch 2.13 gives for the picture."""


def test_the_convolution_of_chapter_2(torch: Any) -> None:
    data = np.arange(64).reshape(1, 1, 8, 8)
    weight = np.arange(18).reshape(2, 1, 3, 3)
    result = torch.nn.functional.conv2d(torch.Tensor(data), torch.Tensor(weight))
    rows = result.numpy().astype(np.int64)[0]
    assert rows[0, 0].tolist() == [474, 510, 546, 582, 618, 654]
    assert rows[1, 5].tolist() == [5883, 6000, 6117, 6234, 6351, 6468]


def test_normalization_over_the_last_axes(torch: Any) -> None:
    x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) ** 2
    functional = torch.nn.functional
    rows = functional.layer_norm(x, x.shape[-1:])
    np.testing.assert_allclose(rows[0, 0], [-1.0, -0.714286, 0.142857, 1.571428], atol=1e-5)
    assert rows.dtype == torch.float32
    weight, bias = torch.full((3, 4), 2.0), torch.ones(3, 4)
    planes = functional.layer_norm(x, (3, 4), weight, bias, eps=0.5)
    array = x.numpy().reshape(2, -1)
    deviation = np.sqrt(array.var(1, keepdims=True) + 0.5)
    expected = 2 * (array - array.mean(1, keepdims=True)) / deviation + 1
    np.testing.assert_allclose(planes.reshape(2, -1), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="expected input with shape"):
        functional.layer_norm(x, (3,))


def test_library_functions_write_into_the_memory_of_an_ndarray(torch: Any) -> None:
    x, w = np.arange(6, dtype="float32").reshape(2, 3), np.ones((4, 3), "float32")
    out = tvm.nd.empty((2, 4), "float32")
    into = torch.from_dlpack(out)
    torch.mm(torch.from_dlpack(tvm.nd.array(x)), torch.from_dlpack(tvm.nd.array(w)).T, out=into)
    torch.add(into, torch.from_dlpack(tvm.nd.array(np.float32([0, 0, -20, 0]))), out=into)
    torch.maximum(into, torch.Tensor([0.0]), out=into)
    assert out.numpy().tolist() == [[3, 3, 0, 3], [12, 12, 0, 12]]


def test_the_network_gives_what_pytorch_gives(torch: Any) -> None:
    with torch.no_grad():
        result = network(torch)(torch.from_numpy(picture()))
    np.testing.assert_allclose(result.detach().numpy(), NETWORK, rtol=1e-5)


def test_the_graph_of_the_network(torch: Any) -> None:
    traced = torch.fx.symbolic_trace(network(torch))
    steps = [(node.op, node.name) for node in traced.graph.nodes]
    assert steps == [
        ("placeholder", "x"), ("call_module", "first"), ("call_module", "rest_0"),
        ("call_module", "rest_1"), ("call_module", "rest_2"), ("call_module", "rest_3"),
        ("call_module", "rest_4"), ("get_attr", "scale"), ("call_function", "mul"),
        ("call_function", "relu"), ("call_function", "mul_1"), ("output", "output"),
    ]  # fmt: skip
    targets = [node.target for node in traced.graph.nodes]
    assert targets[2] == "rest.0"
    assert targets[9] is torch.relu
    result = traced(torch.from_numpy(picture()))
    np.testing.assert_allclose(result.detach().numpy(), NETWORK, rtol=1e-5)


def test_relax_imports_the_network(torch: Any) -> None:
    traced = torch.fx.symbolic_trace(network(torch))
    module = from_fx(traced, [((2, 1, 12, 12), "float32")])
    machine = relax.VirtualMachine(relax.build(module, "llvm"), tvm.cpu())
    result = machine["main"](tvm.nd.array(picture()))
    np.testing.assert_allclose(result.numpy(), NETWORK, rtol=1e-5)


def test_tensors(torch: Any) -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert (x.dtype, str(x.dtype)) == (torch.int64, "torch.int64")
    assert x.shape == (2, 3)
    assert str(x.shape) == "torch.Size([2, 3])"
    assert (x / 2).dtype == torch.float32
    assert (x @ x.T).tolist() == [[14, 32], [32, 77]]
    assert (1 - x)[0].tolist() == [0, -1, -2]
    assert x.reshape(3, 2).permute(1, 0).tolist() == [[1, 3, 5], [2, 4, 6]]
    assert x.float().mean().item() == 3.5
    assert x.argmax(dim=1).tolist() == [2, 2]
    assert [row.sum().item() for row in x] == [6, 15]
    assert ["a", "b", "c"][x[0, 1]] == "c"
    values, places = torch.max(x, dim=0)
    assert (values.tolist(), places.tolist()) == ([4, 5, 6], [1, 1, 1])
    assert torch.cat([x, x], dim=1).shape == (2, 6)
    assert repr(torch.Tensor([0.5, 2])) == "tensor([0.5000, 2.0000])"
    kept = np.zeros(2, "float32")
    torch.from_numpy(kept)[0] = 7
    assert kept.tolist() == [7, 0]


def test_the_loss_that_the_assignment_sums(torch: Any) -> None:
    scores = torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    target = torch.tensor([0, 2])
    loss = torch.nn.functional.nll_loss
    assert loss(scores, target, reduction="sum").item() == -0.625
    assert loss(scores, target).item() == -0.3125
    assert loss(scores, target, reduction="none").tolist() == [-0.5, -0.125]
    guess = scores.argmax(dim=1, keepdim=True)
    assert guess.eq(target.view_as(guess)).sum().item() == 1


def test_states_are_copied_by_name(torch: Any) -> None:
    model, other = network(torch), network(torch)
    state = {name: value + 1 for name, value in model.state_dict().items()}
    assert list(state) == ["scale", "first.weight", "first.bias", "rest.3.weight", "rest.3.bias"]
    other.load_state_dict(state)
    difference = other.first.weight.detach().numpy() - model.first.weight.detach().numpy()
    np.testing.assert_allclose(difference, 1, rtol=1e-5)
    with pytest.raises(RuntimeError, match=r"first\.bias"):
        other.load_state_dict({name: state[name] for name in state if name != "first.bias"})


def test_batches(torch: Any) -> None:
    samples = [(torch.ones(2) * n, n) for n in range(5)]
    loader = torch.utils.data.DataLoader(samples, batch_size=2)
    batches = [(images.tolist(), labels.tolist()) for images, labels in loader]
    assert len(loader) == 3
    assert batches[1] == ([[2, 2], [3, 3]], [2, 3])
    shuffled = torch.utils.data.DataLoader(samples, batch_size=1, shuffle=True)
    assert sorted(label.item() for _, label in shuffled) == [0, 1, 2, 3, 4]


def test_modules_print_their_parts(torch: Any) -> None:
    assert repr(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n)"
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda: stand_in.optim,
        lambda: stand_in.nn.LSTM(2, 2),
        lambda: stand_in.nn.functional.gelu,
        lambda: stand_in.ones(2).backward(),
        lambda: stand_in.fx.Interpreter,
        lambda: torchvision.datasets.MNIST,
        lambda: torchvision.models,
        lambda: torchvision.transforms.Normalize,
        lambda: stand_in.ones(2).to("cuda"),
    ],
)
def test_what_is_not_there_is_refused_by_name(use: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"\w+ is not part of this stand-in|to\('cuda'\)"):
        use()


def test_the_names_are_taken_only_on_request() -> None:
    before = {name: sys.modules.pop(name, None) for name in ("torch", "torchvision")}
    compat.install(stand_ins=True)
    try:
        import torch
        import torch.nn.functional as F
        import torchvision as vision

        assert torch is stand_in
        assert F is stand_in.nn.functional
        assert vision is torchvision
        with pytest.raises(ModuleNotFoundError, match=r"torch\.optim is not part of the stand-in"):
            import torch.optim
    finally:
        compat.uninstall()
        sys.modules.update({n: m for n, m in before.items() if isinstance(m, ModuleType)})
    assert all(not hasattr(finder, "alias") for finder in sys.meta_path)


@pytest.mark.parametrize(("module", "name"), [("torch.nn", "LSTM"), ("torch", "optim")])
def test_names_that_are_imported_are_refused_as_well(module: str, name: str) -> None:
    reason = rf"{module}\.{name} is not part of this stand-in"
    with pytest.raises(NotImplementedError, match=reason):
        exec(f"from mlcweb.stand_ins.{module} import {name}")
    assert not hasattr(stand_in, "__wrapped__")


def test_pictures_are_always_the_same_and_of_ten_kinds() -> None:
    images = torchvision.datasets.FashionMNIST("data", train=False, download=True)
    again = torchvision.datasets.FashionMNIST("elsewhere", train=False)
    assert len(images) == 1000
    assert all(np.array_equal(images[n][0], again[n][0]) for n in range(20))
    assert [images[n][1] for n in range(12)] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    picture, label = torchvision.datasets.FashionMNIST(
        "data", train=False, transform=torchvision.transforms.ToTensor()
    )[3]
    assert (tuple(picture.shape), picture.dtype, label) == ((1, 28, 28), stand_in.float32, 3)
    assert 0 == picture.min().item() < 0.5 < picture.max().item() <= 1


def expect_predictions(logits: np.ndarray, labels: np.ndarray) -> None:
    """The documents take a picture at random, and tests of them compare what is predicted."""
    first, second = np.sort(logits, axis=1).T[[-1, -2]]
    assert (logits.argmax(axis=1) == labels).all()
    assert (first - second).min() > 1


def test_the_weights_know_all_pictures_of_the_test_set() -> None:
    images = torchvision.datasets.FashionMNIST("data", train=False)
    x = images.data.numpy().reshape(1000, 784) / np.float32(255)
    w = mlp()
    logits = np.maximum(x @ w["w0"].T + w["b0"], 0) @ w["w1"].T + w["b1"]
    expect_predictions(logits, images.targets.numpy())


def test_the_weights_of_the_assignment_know_them_as_well() -> None:
    nn, w = stand_in.nn, convolutional()
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5408, 100),
        nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip
    for parameter, value in zip(model.parameters(), w.values(), strict=True):
        parameter.data = stand_in.from_numpy(value)
    images = torchvision.datasets.FashionMNIST("data", train=False)
    x = stand_in.from_numpy(images.data.numpy()[:, None] / np.float32(255))
    expect_predictions(model(x).numpy(), images.targets.numpy())
