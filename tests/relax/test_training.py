"""Training: losses, optimizers, and a trainer whose losses fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.training import AppendLoss, SetupTrainer, Trainer, loss, optimizer
from mlcweb.script import ir as I
from mlcweb.script import relax as R

PREDICTION = relax.TensorStructInfo((8, 3), "float32")
CLASSES = relax.TensorStructInfo((8,), "int64")
DRAW = np.random.default_rng(3)
X = DRAW.standard_normal((8, 4)).astype("float32")
Y = DRAW.standard_normal((8, 3)).astype("float32")
T = DRAW.integers(0, 3, 8)


@I.ir_module
class Model:
    I.module_attrs({"param_num": 2, "state_num": 0})

    @R.function
    def backbone(
        x: R.Tensor((8, 4), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            lv = R.matmul(x, w)
            out = R.add(lv, b)
            R.output(out)
        return out


def run(func: relax.Function, *arrays: Any) -> Any:
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    return machine["main"](*arrays)


def log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize(
    ("given", "target", "expected"),
    [
        (loss.MSELoss(), Y, ((X[:, :3] - Y) ** 2).mean()),
        (loss.L1Loss("sum"), Y, np.abs(X[:, :3] - Y).sum()),
        (loss.CrossEntropyLoss(), T, -log_softmax(X[:, :3])[range(8), T].mean()),
        (
            loss.CategoricalCrossEntropyLoss("sum"),
            np.eye(3, dtype="float32")[T],
            -log_softmax(X[:, :3])[range(8), T].sum(),
        ),
    ],
)
def test_losses(given: loss.Loss, target: np.ndarray, expected: float) -> None:
    info = relax.TensorStructInfo(target.shape, str(target.dtype))
    result = run(given(PREDICTION, info), tvm.nd.array(X[:, :3].copy()), tvm.nd.array(target))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


def by_hand(given: optimizer.Optimizer, value: np.ndarray, grads: list[np.ndarray]) -> np.ndarray:
    """The steps of each optimizer as its paper has them."""
    mean, square = np.zeros_like(value), np.zeros_like(value)
    for count, grad in enumerate(grads, 1):
        grad = grad + given.weight_decay * value
        if isinstance(given, optimizer.Adam):
            mean = given.beta1 * mean + (1 - given.beta1) * grad
            square = given.beta2 * square + (1 - given.beta2) * grad**2
            step = mean / (1 - given.beta1**count)
            step = step / (np.sqrt(square / (1 - given.beta2**count)) + given.eps)
        elif isinstance(given, optimizer.MomentumSGD):
            mean = given.momentum * mean + (1 - given.dampening) * grad
            step = grad + given.momentum * mean if given.nesterov else mean
        else:
            step = grad
        value = value - given.lr * step
    return value


@pytest.mark.parametrize(
    "given",
    [
        optimizer.SGD(0.1),
        optimizer.SGD(0.1, weight_decay=0.01),
        optimizer.MomentumSGD(0.1, 0.9),
        optimizer.MomentumSGD(0.1, 0.9, dampening=0.1, weight_decay=0.01, nesterov=True),
        optimizer.Adam(0.01),
        optimizer.Adam(0.1, betas=(0.8, 0.9), weight_decay=0.01),
    ],
)
def test_optimizers(given: optimizer.Optimizer) -> None:
    params = [relax.Var(name, relax.TensorStructInfo((3,), "float32")) for name in "ab"]
    func = given.init(params).get_function()
    values: Any = [tvm.nd.array(Y[0]), tvm.nd.array(Y[1])]
    state: Any = given.state
    grads = [[X[i, :3].copy(), X[i + 1, :3].copy()] for i in range(3)]
    for pair in grads:
        values, state = run(func, tuple(values), tuple(map(tvm.nd.array, pair)), tuple(state))
    assert state[0].numpy() == 3
    for place in range(2):
        expected = by_hand(given, Y[place], [pair[place] for pair in grads])
        np.testing.assert_allclose(values[place].numpy(), expected, rtol=1e-4)


def trainer(given: loss.Loss, target: relax.TensorStructInfo, **options: Any) -> Trainer:
    mod = SetupTrainer(given, optimizer.Adam(0.1), [PREDICTION, target])(Model)
    return Trainer(mod, relax.VirtualMachine(relax.build(mod), tvm.cpu()), tvm.cpu(), **options)


def test_a_trainer_lowers_the_loss() -> None:
    model = trainer(loss.CrossEntropyLoss(), CLASSES)
    model.xaiver_uniform_init_params()
    losses = [float(model.update(X, T).numpy()) for _ in range(60)]
    assert losses[-1] < losses[0] / 2
    weights = model.export_params()
    assert list(weights) == ["w", "b"]
    given = log_softmax(X @ weights["w"].numpy() + weights["b"].numpy())
    expected = -given[range(8), T].mean()
    np.testing.assert_allclose(model.update(X, T).numpy(), expected, rtol=1e-4)


def test_weights_are_loaded_by_name() -> None:
    model = trainer(loss.MSELoss(), PREDICTION, zero_init_param_state=False)
    with pytest.raises(RuntimeError, match="Without a value: w, b"):
        model.predict(X)
    weight = DRAW.standard_normal((4, 3)).astype("float32")
    model.load_params({"w": weight, "b": np.ones(3, "float32")})
    np.testing.assert_allclose(model.predict(X).numpy(), X @ weight + 1, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match='no parameter "c"; there are w, b'):
        model.load_params({"c": weight})
    with pytest.raises(ValueError, match="There are 2 parameters, not 1"):
        model.load_params([weight])
    with pytest.raises(ValueError, match=r"takes 1 input\(s\), not 2"):
        model.predict(X, X)


def test_what_setup_needs_is_said() -> None:
    setup = SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [PREDICTION, PREDICTION])
    with pytest.raises(ValueError, match='no function "backbone"; it has no functions'):
        setup(tvm.IRModule())
    with pytest.raises(tvm.TVMError, match='does not say its "param_num"'):
        setup(tvm.IRModule({"backbone": Model["backbone"]}))
    with pytest.raises(tvm.TVMError, match=r"call init\(params\) first"):
        optimizer.SGD(0.1).get_function()
    with pytest.raises(tvm.TVMError, match=r"the loss takes 2 result\(s\)"):
        AppendLoss("backbone", loss.MSELoss()(PREDICTION, PREDICTION), 2)(Model)


def test_optimizers_take_variables() -> None:
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    assert optimizer.SGD(0.1).init(x).param_list == [x]
    for params in (relax.Tuple([x]), [relax.Tuple([x])]):
        with pytest.raises(ValueError, match=r"Parameters are variables, not \(x,\)"):
            optimizer.SGD(0.1).init(params)
