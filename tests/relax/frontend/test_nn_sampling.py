"""Drawing tokens from the likeliest ones, in models written with `nn`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlcweb.relax.frontend import nn

FLOAT, INT = "float32", "int64"


class Sampler(nn.Module):
    def draw(self, prob: Any, tokens: Any, top_p: Any, top_k: Any, u: Any, rows: Any) -> Any:
        return nn.op.sample_top_p_top_k_from_sorted_prob(prob, tokens, top_p, top_k, u, rows)

    def draw_each(self, prob: Any, tokens: Any, top_p: Any, top_k: Any, u: Any) -> Any:
        return nn.op.sample_top_p_top_k_from_sorted_prob(prob, tokens, top_p, top_k, u)

    def renormalize(self, prob: Any, sorted_prob: Any, top_p: Any, top_k: Any) -> Any:
        return nn.op.renormalize_top_p_top_k_prob(prob, sorted_prob, top_p, top_k)


def run(method: str, **arrays: np.ndarray) -> Any:
    spec = {name: nn.spec.Tensor(a.shape, str(a.dtype)) for name, a in arrays.items()}
    return Sampler().jit({method: spec}, out_format="numpy")[method](*arrays.values())


def distributions(batch: int, size: int) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(size)
    prob = draw.dirichlet(np.ones(size), batch).astype(FLOAT)
    tokens = np.argsort(-prob, axis=1).astype(INT)
    top_p = draw.uniform(0.05, 1.1, (batch, 1)).astype(FLOAT)
    top_k = draw.integers(0, size + 3, (batch, 1)).astype(INT)
    return prob, np.take_along_axis(prob, tokens, 1), tokens, top_p, top_k


def eligible(prob: np.ndarray, top_p: float, top_k: int) -> int:
    """How many of sorted probabilities are drawn from."""
    total = 0.0
    for count, each in enumerate(prob, 1):
        total += each
        if total >= top_p or count >= top_k:
            return count
    return len(prob)


@pytest.mark.parametrize(("batch", "size", "samples"), [(2, 3, 5), (6, 17, 9), (3, 1, 2)])
def test_tokens_are_drawn_from_the_likeliest(batch: int, size: int, samples: int) -> None:
    _, prob, tokens, top_p, top_k = distributions(batch, size)
    draw = np.random.default_rng(1)
    u = draw.random((samples, 1)).astype(FLOAT)
    rows = draw.integers(0, batch, (samples, 1)).astype(INT)
    result = run("draw", prob=prob, tokens=tokens, top_p=top_p, top_k=top_k, u=u, rows=rows)
    expected = []
    for number, row in zip(u[:, 0], rows[:, 0], strict=True):
        part = prob[row, : eligible(prob[row], top_p[row, 0], top_k[row, 0])]
        above = np.cumsum(part) / part.sum() > number
        expected.append([tokens[row, above.argmax()]])
    assert result.dtype == INT and result.tolist() == expected


@pytest.mark.parametrize(("batch", "size"), [(2, 3), (6, 17), (3, 1)])
def test_probabilities_of_the_likeliest_come_to_one(batch: int, size: int) -> None:
    prob, in_order, _, top_p, top_k = distributions(batch, size)
    result = run("renormalize", prob=prob, sorted_prob=in_order, top_p=top_p, top_k=top_k)
    for row in range(batch):
        count = eligible(in_order[row], top_p[row, 0], top_k[row, 0])
        kept = np.where(prob[row] >= in_order[row, count - 1], prob[row], 0)
        np.testing.assert_allclose(result[row], kept / kept.sum(), rtol=1e-5)


def test_each_distribution_has_a_sample_where_no_rows_are_told() -> None:
    _, prob, tokens, top_p, top_k = distributions(4, 5)
    u = np.zeros((4, 1), FLOAT)
    result = run("draw_each", prob=prob, tokens=tokens, top_p=top_p, top_k=top_k, u=u)
    assert result.tolist() == tokens[:, :1].tolist()
    with pytest.raises(ValueError, match="3 samples of 4 distributions need sample_indices"):
        run("draw_each", prob=prob, tokens=tokens, top_p=top_p, top_k=top_k, u=u[:3])
    rows = np.zeros((3, 1), INT)
    with pytest.raises(ValueError, match="must be of the shape of uniform_sample"):
        run("draw", prob=prob, tokens=tokens, top_p=top_p, top_k=top_k, u=u, rows=rows)
