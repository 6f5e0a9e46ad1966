"""Values drawn from the most probable ones, on processors and simulated GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.frontend import nn
from mlcweb.relax.frontend.nn import op, spec

VALUES = 50
TOP_P = np.array([[0.6], [0.9], [1.0], [0.0]], "float32")
TOP_K = np.array([[50], [4], [50], [7]], "int32")
ROWS = np.array([[0], [1], [1], [2], [3], [0]], "int32")


class Sampler(nn.Module):
    def draw(self, prob: Any, index: Any, p: Any, k: Any, uniform: Any, rows: Any) -> Any:
        return op.sample_top_p_top_k_from_sorted_prob(prob, index, p, k, uniform, rows)

    def one_each(self, prob: Any, index: Any, p: Any, k: Any, uniform: Any) -> Any:
        return op.sample_top_p_top_k_from_sorted_prob(prob, index, p, k, uniform)

    def renormalize(self, prob: Any, ordered: Any, p: Any, k: Any) -> Any:
        return op.renormalize_top_p_top_k_prob(prob, ordered, p, k)


def machine(name: str, target: str, batch: int | str, samples: int | str) -> Any:
    table = spec.Tensor([batch, VALUES], "float32")
    limits = [spec.Tensor([batch, 1], "float32"), spec.Tensor([batch, 1], "int32")]
    uniform, rows = spec.Tensor([samples, 1], "float32"), spec.Tensor([samples, 1], "int32")
    places = spec.Tensor([batch, VALUES], "int32")
    inputs = {
        "draw": [table, places, *limits, uniform, rows],
        "one_each": [table, places, *limits, uniform],
        "renormalize": [table, table, *limits],
    }[name]
    model = Sampler()
    names = getattr(Sampler, name).__code__.co_varnames[1 : len(inputs) + 1]
    mod, _ = model.export_tvm({name: dict(zip(names, inputs, strict=True))})
    device = tvm.device(target)
    function = relax.VirtualMachine(relax.build(mod, target), device)[name]
    return lambda *arrays: function(*(tvm.nd.array(each, device) for each in arrays)).numpy()


def distributions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    prob = np.random.default_rng(7).random((4, VALUES)).astype("float32") ** 4
    prob /= prob.sum(1, keepdims=True)
    index = np.argsort(-prob, axis=1, kind="stable").astype("int32")
    return prob, np.take_along_axis(prob, index, 1), index


def counts(ordered: np.ndarray) -> np.ndarray:
    """How many of the values of each distribution are drawn."""
    enough = (ordered.cumsum(1) >= TOP_P).argmax(1) + 1
    enough[(ordered.cumsum(1) < TOP_P).all(1)] = VALUES
    return np.minimum(enough, TOP_K[:, 0])


@pytest.mark.parametrize("target", ["llvm", "cuda", "webgpu"])
def test_drawn_from_the_most_probable(target: str) -> None:
    _, ordered, index = distributions()
    uniform = np.array([[0.1], [0.95], [0.5], [0.999], [0.7], [0.0]], "float32")
    got = machine("draw", target, "b", "n")(ordered, index, TOP_P, TOP_K, uniform, ROWS)
    expected = []
    for row, number in zip(ROWS[:, 0], uniform[:, 0], strict=True):
        sums = ordered[row].cumsum()[: counts(ordered)[row]]
        expected.append([index[row, (sums / sums[-1] <= number).sum()]])
    np.testing.assert_array_equal(got, np.array(expected, "int32"))


def test_one_drawn_from_each() -> None:
    _, ordered, index = distributions()
    uniform = np.full((4, 1), 0.3, "float32")
    got = machine("one_each", "llvm", 4, 4)(ordered, index, TOP_P, TOP_K, uniform)
    rows = np.arange(4, dtype="int32")[:, None]
    want = machine("draw", "llvm", 4, 4)(ordered, index, TOP_P, TOP_K, uniform, rows)
    np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="5 samples of 4 distributions need sample_indices"):
        machine("one_each", "llvm", 4, 5)


@pytest.mark.parametrize("target", ["llvm", "webgpu"])
def test_the_most_probable_sum_up_to_one(target: str) -> None:
    prob, ordered, _ = distributions()
    got = machine("renormalize", target, "b", "n")(prob, ordered, TOP_P, TOP_K)
    last = np.take_along_axis(ordered, counts(ordered)[:, None] - 1, 1)
    kept = np.where(prob >= last, prob, 0)
    np.testing.assert_allclose(got, kept / kept.sum(1, keepdims=True), rtol=1e-5)
