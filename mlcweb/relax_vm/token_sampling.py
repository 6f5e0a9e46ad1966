"""What chooses the next token of a language model, `vm.builtin.sample_top_p_from_logits` and the
like: functions of logits, one for each token there is, or of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.relax_vm.packed import machine_function
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.ndarray import NDArray, array

if TYPE_CHECKING:
    import numpy as np

GREEDY = 1e-6
"""A temperature, or a part of all probability, below which the likeliest token is taken."""


@machine_function("sample_top_p_from_logits")
def sample_from_logits(
    logits: NDArray, temperature: float, top_p: float, uniform_sample: float
) -> int:
    """The token that a number in [0, 1) chooses among the likeliest ones, which together have a
    probability of at least `top_p`."""
    values = _one_row(logits)
    if temperature < GREEDY or top_p < GREEDY:
        return int(values.argmax())
    return _sample(_softmax(values, temperature), top_p, uniform_sample)


@machine_function("sample_top_p_from_prob")
def sample_from_probabilities(prob: NDArray, top_p: float, uniform_sample: float) -> int:
    """The same of probabilities."""
    values = _one_row(prob)
    return int(values.argmax()) if top_p < GREEDY else _sample(values, top_p, uniform_sample)


def _sample(probabilities: np.ndarray[Any, Any], top_p: float, uniform_sample: float) -> int:
    import numpy as np

    order = np.argsort(-probabilities, kind="stable")
    cumulative = np.cumsum(probabilities[order], dtype="float64")
    last = min(int(np.searchsorted(cumulative, top_p)), len(order) - 1)
    chosen = int(np.searchsorted(cumulative, uniform_sample * cumulative[last], side="right"))
    return int(order[min(chosen, last)])


@machine_function("multinomial_from_uniform")
def multinomial(prob: NDArray, uniform_sample: NDArray) -> NDArray:
    """For each row of probabilities the token that a number in [0, 1) chooses: (batch, 1)."""
    import numpy as np

    rows, samples = prob.numpy(), uniform_sample.numpy().reshape(-1)
    if rows.ndim != 2 or len(samples) != len(rows):
        raise ArgumentValueError(
            "multinomial_from_uniform takes probabilities of shape (batch, tokens) and a number "
            f"for each row, not {described(prob)} and {described(uniform_sample)}"
        )
    # The last token takes what rounding leaves.
    below = np.cumsum(rows, axis=1, dtype="float64") <= samples[:, None]
    tokens = np.minimum(below.sum(axis=1), rows.shape[1] - 1)
    return array(tokens.reshape(-1, 1).astype("int64"), prob.device)


@machine_function("apply_softmax_with_temperature")
def softmax(logits: NDArray, temperature: float) -> None:
    """Overwrite logits with probabilities."""
    values = _one_row(logits)
    logits.copyfrom(_softmax(values, max(temperature, GREEDY)).reshape(logits.shape))


@machine_function("apply_repetition_penalty")
def repetition_penalty(logits: NDArray, token_ids: NDArray, penalty: float) -> None:
    """Make tokens less likely by a factor above one: positive logits are divided by it, others
    multiplied."""
    import numpy as np

    values, tokens = _one_row(logits), np.unique(token_ids.numpy())
    old = values[tokens]
    values[tokens] = np.where(old <= 0, old * penalty, old / penalty)
    logits.copyfrom(values.reshape(logits.shape))


@machine_function("apply_presence_and_frequency_penalty")
def frequency_penalty(
    logits: NDArray, token_ids: NDArray, token_freqs: NDArray, presence: float, frequency: float
) -> None:
    """Lower the logits of tokens, once and by how often each has come."""
    values, tokens = _one_row(logits), token_ids.numpy().reshape(-1)
    values[tokens] -= token_freqs.numpy().reshape(-1) * frequency + presence
    logits.copyfrom(values.reshape(logits.shape))


def _one_row(values: NDArray) -> np.ndarray[Any, Any]:
    if values.dtype != "float32" or not values.ndim or values.size != values.shape[-1]:
        raise ArgumentValueError(
            f"Logits are one row of float32, a number for each token, not {described(values)}"
        )
    return values.numpy().reshape(-1)


def _softmax(values: np.ndarray[Any, Any], temperature: float) -> np.ndarray[Any, Any]:
    import numpy as np

    powers = np.exp((values - values.max()) / np.float32(temperature))
    return powers / powers.sum()
