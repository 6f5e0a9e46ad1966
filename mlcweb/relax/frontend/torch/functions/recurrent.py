"""Recurrent layers: LSTM, GRU and RNN, a step after the other.

The steps are written out, so the length of the sequences must be a number. The gates are computed
as `torch.nn.LSTM`, `GRU` and `RNN` define them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.translator import TorchError, Translator, function

Step: TypeAlias = "Callable[[Translator, Expr, Expr, Sequence[Expr]], Sequence[Expr]]"
"""What the inputs and the hidden state give to all gates, side by side, and the state before, to
the state after: (hidden,), and for an LSTM (hidden, cell)."""


def _gates(t: Translator, value: Expr, count: int) -> Sequence[Expr]:
    return t.bound(op.split(value, count, 1))


def _lstm(t: Translator, x: Expr, h: Expr, state: Sequence[Expr]) -> Sequence[Expr]:
    i, f, g, o = _gates(t, t.bound(x + h), 4)
    remembered = op.sigmoid(f) * state[1]
    cell = t.bound(remembered + op.sigmoid(i) * op.tanh(g))
    return op.sigmoid(o) * op.tanh(cell), cell


def _gru(t: Translator, x: Expr, h: Expr, state: Sequence[Expr]) -> Sequence[Expr]:
    (reset, update, new), (h_reset, h_update, h_new) = (_gates(t, value, 3) for value in (x, h))
    reset = op.sigmoid(reset + h_reset)
    update = t.bound(op.sigmoid(update + h_update))
    new = t.bound(op.tanh(new + reset * h_new))
    return (new + update * (state[0] - new),)


def _rnn(activation: Callable[[Expr], Expr]) -> Step:
    return lambda t, x, h, state: (activation(x + h),)


def recurrent(
    t: Translator, step: Step, x: Expr, initial: Sequence[Expr], params: Sequence[Expr],
    has_biases: bool, num_layers: int, bidirectional: bool, batch_first: bool,
) -> tuple[Expr, ...]:  # fmt: skip
    """A stack of layers.

    Args:
        x: (steps, batch, input), or (batch, steps, input) if `batch_first`.
        initial: each part of the state, (layers * directions, batch, hidden).
        params: for each layer and direction weight_ih, weight_hh and with `has_biases` bias_ih,
            bias_hh.

    Returns:
        The hidden states of the last layer, (steps, batch, directions * hidden) in the order of
        axes that `x` has, and each part of the states after the last steps.
    """
    directions, each = (2 if bidirectional else 1), (4 if has_biases else 2)
    if len(params) != num_layers * directions * each:
        raise TorchError("An LSTM with projections (proj_size) cannot be imported")
    if batch_first:
        x = t.bound(op.permute_dims(x, [1, 0, 2]))
    steps = t.extent(x, 0)
    last: list[Sequence[Expr]] = []
    for layer in range(num_layers):
        sequences = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = params[each * place : each * (place + 1)]
            state = [t.bound(op.take(part, t.const(place, "int64"), 0)) for part in initial]
            outputs, state = _direction(t, step, x, state, weights, steps, direction == 1)
            sequences.append(outputs)
            last.append(state)
        x = t.bound(op.concat(sequences, 2) if len(sequences) > 1 else sequences[0])
    ends = [op.stack([state[part] for state in last], 0) for part in range(len(initial))]
    return (op.permute_dims(x, [1, 0, 2]) if batch_first else x), *ends


def _direction(
    t: Translator, step: Step, x: Expr, state: Sequence[Expr], weights: Sequence[Expr], steps: int,
    backward: bool,
) -> tuple[Expr, Sequence[Expr]]:  # fmt: skip
    weight_ih, weight_hh, *biases = weights
    bias_ih, bias_hh = biases or (None, None)
    inputs = t.bound(op.linear(x, weight_ih, bias_ih))  # of all steps at once
    weight_hh = t.bound(op.permute_dims(weight_hh))
    outputs: dict[int, Expr] = {}
    for place in reversed(range(steps)) if backward else range(steps):
        h = t.bound(op.matmul(state[0], weight_hh))
        if bias_hh is not None:
            h = t.bound(h + bias_hh)
        now = t.bound(op.squeeze(op.strided_slice(inputs, [0], [place], [place + 1]), [0]))
        state = t.bound(step(t, now, h, state))
        outputs[place] = state[0]
    return t.bound(op.stack([outputs[place] for place in range(steps)], 0)), state


@function("lstm")
def lstm(
    t: Translator, input: Expr, hx: Sequence[Expr], params: Sequence[Expr], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Expr, ...]:  # fmt: skip
    return recurrent(
        t, _lstm, input, hx, params, has_biases, num_layers, bidirectional, batch_first
    )


def _of_one_state(name: str, step: Step) -> None:
    @function(name)
    def convert(
        t: Translator, input: Expr, hx: Expr, params: Sequence[Expr], has_biases: bool,
        num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
    ) -> tuple[Expr, ...]:  # fmt: skip
        return recurrent(
            t, step, input, [hx], params, has_biases, num_layers, bidirectional, batch_first
        )


_of_one_state("gru", _gru)
_of_one_state("rnn_tanh", _rnn(op.tanh))
_of_one_state("rnn_relu", _rnn(op.nn.relu))
