"""The pass Gradient: numbers against differences of the function itself; what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax import op
from mlcweb.script import ir as I
from mlcweb.script import relax as R

STEP = 1e-2


def module(build: Callable[..., Any], *arrays: np.ndarray) -> tvm.ir.IRModule:
    """`main`, which gives the sum of what `build` makes of its parameters, weighted."""
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            value = builder.emit(build(*params))
            info: Any = value.struct_info
            shape = [extent.value for extent in info.values]
            weights = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape)
            weighted = builder.emit(op.multiply(value, relax.const(weights.astype("float32"))))
            result = builder.emit_output(op.sum(weighted))
        builder.emit_func_output(result)
    return builder.get()


DRAW = np.random.default_rng(7)
POSITIVE = DRAW.uniform(0.5, 2, (3, 4)).astype("float32")
ANY = DRAW.choice([-1, 1], (3, 4)).astype("float32") * POSITIVE
ROW = DRAW.uniform(0.5, 2, (4,)).astype("float32")
SQUARE = DRAW.uniform(0.5, 2, (4, 4)).astype("float32")
BATCH = DRAW.uniform(0.5, 2, (2, 3, 4)).astype("float32")
INDICES = np.array([[0, 2], [2, 1]], "int32")

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "add": (op.add, (ANY, ROW)),
    "subtract": (op.subtract, (ROW, ANY)),
    "multiply": (op.multiply, (ANY, ROW)),
    "divide": (op.divide, (ANY, ROW)),
    "power": (op.power, (POSITIVE, ROW)),
    "maximum": (op.maximum, (ANY, POSITIVE * 0.9)),
    "minimum": (op.minimum, (ANY, POSITIVE * 0.9)),
    **{name: (getattr(op, name), (ANY,)) for name in (
        "negative", "exp", "sin", "cos", "tanh", "sigmoid", "abs", "square", "erf")},
    **{name: (getattr(op, name), (POSITIVE,)) for name in ("log", "sqrt", "rsqrt")},
    "relu": (op.nn.relu, (ANY,)),
    "silu": (op.nn.silu, (ANY,)),
    "softmax": (lambda x: op.nn.softmax(x, 1), (ANY,)),
    "log_softmax": (lambda x: op.nn.log_softmax(x, 0), (ANY,)),
    "sum": (lambda x: op.sum(x, 1), (ANY,)),
    "mean": (lambda x: op.mean(x, [0], keepdims=True), (ANY,)),
    "variance": (lambda x: op.variance(x, 1), (ANY,)),
    "cumsum": (lambda x: op.cumsum(x, 1), (ANY,)),
    "cumsum_flat": (op.cumsum, (ANY,)),
    "permute_dims": (lambda x: op.permute_dims(x, [1, 2, 0]), (BATCH,)),
    "reshape": (lambda x: op.reshape(x, (4, 3)), (ANY,)),
    "squeeze": (lambda x: op.squeeze(op.expand_dims(x, 1)), (ANY,)),
    "broadcast_to": (lambda x: op.broadcast_to(x, (3, 4)), (ROW,)),
    "concat": (lambda x, y: op.concat([x, y], 1), (ANY, POSITIVE)),
    "triu": (lambda x: op.triu(x, 1), (ANY,)),
    "where": (lambda x, y: op.where(op.less(x, y), x, y), (ANY, POSITIVE * 0.9)),
    "matmul": (op.matmul, (ANY, SQUARE)),
    "matmul_batched": (op.matmul, (BATCH, SQUARE)),
    "matmul_vectors": (op.matmul, (ROW, ROW + 1)),
    "matmul_row": (op.matmul, (ROW, SQUARE)),
    "matmul_column": (op.matmul, (BATCH, ROW)),
    "take_rows": (lambda x: op.take(x, relax.const(INDICES), 0), (ANY,)),
    "take_columns": (lambda x: op.take(x, relax.const(INDICES), 1), (BATCH,)),
    "cross_entropy": (op.nn.cross_entropy_with_logits, (ANY, POSITIVE)),
    "nll_loss": (
        lambda x: op.nn.nll_loss(x, relax.const(np.array([0, 3, -100], "int64"))),
        (ANY,),
    ),
    "nll_loss_weighted": (
        lambda x: op.nn.nll_loss(x, relax.const(np.array([0, 3, 1], "int64")), relax.const(ROW)),
        (ANY,),
    ),
    "nll_loss_of_pixels": (
        lambda x: op.nn.nll_loss(
            x, relax.const(np.array([[0, 1, 2, 0], [2, 1, 0, 0]], "int64")), reduction="none"
        ),
        (BATCH,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name: str) -> None:
    build, arrays = CASES[name]
    check_gradients(build, *arrays)


def check_gradients(build: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Compare the gradients of what `build` makes with differences."""
    mod = relax.transform.Gradient("main")(module(build, *arrays))
    vm = relax.VirtualMachine(relax.build(mod, "numpy"), tvm.cpu())

    def value(*given: np.ndarray) -> float:
        return float(vm["main"](*map(tvm.nd.array, given)).numpy())

    result, gradients = vm["main_adjoint"](*map(tvm.nd.array, arrays))
    assert float(result.numpy()) == pytest.approx(value(*arrays))
    for position, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        expected = np.zeros(array.shape)
        for place in np.ndindex(*array.shape):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in arrays]
                moved[position][place] += sign * STEP
                ends.append(value(*moved))
            expected[place] = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=2e-2, atol=1e-2)


def test_a_gradient_of_the_users_own() -> None:
    mod = module(op.ceil, ANY)
    with pytest.raises(tvm.TVMError, match=r"relax\.ceil, of \"lv\", has no gradient; register"):
        relax.transform.Gradient("main")(mod)
    ceil = tvm.ir.Op.get("relax.ceil")
    try:
        # That of the identity, as for weights that are rounded in training.
        op.register_gradient("relax.ceil", lambda var, call, grad, builder: [grad])
        adjoint = relax.transform.Gradient("main")(mod)
    finally:
        ceil.set_attr("FPrimalGradient", None)
    vm = relax.VirtualMachine(relax.build(adjoint), tvm.cpu())
    _, (gradient,) = vm["main_adjoint"](tvm.nd.array(ANY))
    np.testing.assert_allclose(gradient.numpy(), np.linspace(0.5, 1.5, 12).reshape(3, 4), rtol=1e-5)


@I.ir_module
class Several:
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = R.sum(R.multiply(x, y))
            b = R.add(x, y)
            R.output(a, b)
        return (a, b)

    @R.function
    def plain(x: R.Tensor((2,), "float32")):
        return R.sum(x)

    @R.function
    def labels(x: R.Tensor((2, 3), "float32"), t: R.Tensor((2,), "int64")):
        with R.dataflow():
            loss = R.nn.nll_loss(x, t)
            R.output(loss)
        return loss


X = Several["main"].params[0]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("main", {"target_index": 1}, "the target is a float tensor without dimensions"),
        ("main", {"target_index": 2}, "there is no result 2 of 2"),
        ("main", {"require_grads": relax.Var("z")}, '"z" is no variable of "main", which takes x'),
        ("main", {"require_grads": [X, X]}, "twice in require_grads: x, x"),
        ("labels", {"require_grads": Several["labels"].params[1]}, '"t" has no gradient, since it'),
        ("plain", {}, "a body of one dataflow block"),
    ],
)
def test_other_functions_are_refused(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(tvm.TVMError, match=says):
        relax.transform.Gradient(name, **options)(Several)
