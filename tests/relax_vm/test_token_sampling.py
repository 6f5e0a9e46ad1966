"""Functions that choose the next token; the tokens are those that TVM 0.27 chooses."""

import numpy as np
import pytest

import mlcweb as tvm

UNIFORM = (0.0, 0.1, 0.5, 0.77, 0.99)
LOGITS = np.random.default_rng(0).standard_normal((1, 50)).astype("float32") * 3
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum()


def call(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


@pytest.mark.parametrize(
    ("temperature", "top_p", "tokens"),
    [
        (0.0, 0.9, [47, 47, 47, 47, 47]), (1.0, 0.0, [47, 47, 47, 47, 47]),
        (0.5, 0.9, [47, 47, 47, 48, 39]), (0.5, 1.0, [47, 47, 47, 48, 6]),
        (1.0, 0.5, [47, 47, 47, 48, 41]), (1.0, 0.9, [47, 47, 48, 46, 6]),
        (1.0, 1.0, [47, 47, 41, 42, 34]),
    ],
)  # fmt: skip
def test_tokens_of_logits(temperature, top_p, tokens):
    logits = tvm.nd.array(LOGITS)
    chosen = [call("sample_top_p_from_logits", logits, temperature, top_p, u) for u in UNIFORM]
    assert chosen == tokens
    if temperature == 1:
        prob = tvm.nd.array(PROBABILITIES)
        assert [call("sample_top_p_from_prob", prob, top_p, u) for u in UNIFORM] == tokens


def test_tokens_of_rows():
    rows = np.random.default_rng(1).random((4, 7)).astype("float32")
    rows /= rows.sum(axis=1, keepdims=True)
    samples = np.array([[0.1], [0.5], [0.95], [1.0]], "float32")
    tokens = call("multinomial_from_uniform", tvm.nd.array(rows), tvm.nd.array(samples))
    expected = [
        next((t for t, total in enumerate(np.cumsum(row)) if u < total), 6)
        for row, u in zip(rows, samples[:, 0], strict=True)
    ]
    assert tokens.dtype == "int64" and tokens.numpy().tolist() == [[t] for t in expected]
    with pytest.raises(ValueError, match="a number for each row"):
        call("multinomial_from_uniform", tvm.nd.array(rows), tvm.nd.array(samples[:1]))


def test_penalties_and_probabilities_overwrite_logits():
    tokens = tvm.nd.array(np.array([1, 3, 5], "int32"))
    counts = tvm.nd.array(np.array([1, 2, 3], "int32"))
    logits = tvm.nd.array(LOGITS)
    call("apply_repetition_penalty", logits, tokens, 1.3)
    expected = LOGITS.copy()
    for token in (1, 3, 5):
        expected[0, token] *= 1.3 if LOGITS[0, token] <= 0 else 1 / 1.3
    np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-6)
    call("apply_presence_and_frequency_penalty", logits, tokens, counts, 0.5, 0.25)
    expected[0, [1, 3, 5]] -= [0.75, 1.0, 1.25]
    np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-6)
    call("apply_softmax_with_temperature", logits, 0.7)
    powers = np.exp(expected / 0.7)
    np.testing.assert_allclose(logits.numpy(), powers / powers.sum(), rtol=1e-5)


def test_several_rows_are_refused():
    rows = tvm.nd.array(np.zeros((2, 4), "float32"))
    for name, args in (("sample_top_p_from_prob", (1.0, 0.5)), ("apply_repetition_penalty", ())):
        extra = args or (tvm.nd.array(np.array([0], "int32")), 1.0)
        with pytest.raises(ValueError, match="one row of float32"):
            call(name, rows, *extra)
