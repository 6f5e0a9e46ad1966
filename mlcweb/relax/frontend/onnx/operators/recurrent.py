"""Recurrent layers: RNN, GRU and LSTM, a step after the other.

The steps are written out, so the length of the sequences must be known. Gates are computed as the
operators' definitions in the ONNX specification say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.relax import op
from mlcweb.relax.expr import Expr, TupleGetItem
from mlcweb.relax.frontend.onnx.control import MAX_STEPS
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.tir.expr import PrimExpr

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

Activation = Callable[[Expr], Expr]


class _Layer:
    """One direction of a layer."""

    def __init__(self, node: Node, direction: int, count: int) -> None:
        self.node = node
        self.kind = node.op_type
        self.gates = _GATES[self.kind]
        self.hidden: int = node.attrs["hidden_size"]
        self.direction = direction
        self.dtype = node.dtype(0)
        self.activations = self._activations(count)
        # (input, gates * hidden) and (hidden, gates * hidden)
        self.weights = self._transposed(1)
        self.recurrent = self._transposed(2)
        self.bias, self.recurrent_bias = self._biases()

    def part(self, index: int) -> Expr:
        """An input that has a slice for each direction."""
        whole = self.node.tensor(index)
        at = [self.direction], [self.direction + 1]
        return self.node.emit(op.squeeze(op.strided_slice(whole, [0], *at), [0]))

    def _transposed(self, index: int) -> Expr:
        return self.node.emit(op.permute_dims(self.part(index)))

    def _biases(self) -> tuple[Expr | None, Expr | None]:
        if not self.node.has(3):
            return None, None
        own, recurrent = self.node.fields(op.split(self.part(3), 2, 0))
        return own, recurrent

    def _activations(self, count: int) -> list[Activation]:
        node = self.node
        names = node.attrs.get("activations") or _DEFAULTS[self.kind] * count
        each = len(names) // count
        mine = range(self.direction * each, (self.direction + 1) * each)
        alpha, beta = node.attrs.get("activation_alpha", []), node.attrs.get("activation_beta", [])
        activations = []
        for place in mine:
            options = [values[place] if place < len(values) else None for values in (alpha, beta)]
            activations.append(_activation(node, names[place], *options))
        return activations

    def clipped(self, value: Expr) -> Expr:
        limit = self.node.attrs.get("clip")
        return value if not limit else op.clip(value, -limit, limit)

    def split(self, value: Expr) -> list[Expr]:
        """The gates side by side in a tensor, each by itself."""
        if self.gates == 1:
            return [self.node.emit(value)]
        return self.node.fields(op.split(value, self.gates, 1), self.gates)

    def linear(self, x: Expr, weights: Expr, bias: Expr | None) -> Expr:
        product = op.matmul(x, weights)
        return product if bias is None else product + bias

    def step(self, x: Expr, state: Sequence[Expr]) -> list[Expr]:
        """The state after an element of the sequence: (hidden,), and for an LSTM (hidden, cell)."""
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.kind](x, *state)

    def joined(self, x: Expr, h: Expr) -> Expr:
        """What the input and the hidden state give to all gates, side by side."""
        inputs = self.linear(x, self.weights, self.bias)
        return inputs + self.linear(h, self.recurrent, self.recurrent_bias)

    def _rnn(self, x: Expr, h: Expr) -> list[Expr]:
        return [self.node.emit(self.activations[0](self.clipped(self.joined(x, h))))]

    def _gru(self, x: Expr, h: Expr) -> list[Expr]:
        first, second = self.activations
        emit = self.node.emit
        inputs = self.split(self.linear(x, self.weights, self.bias))
        hidden = self.split(self.linear(h, self.recurrent, self.recurrent_bias))
        update = emit(first(self.clipped(inputs[0] + hidden[0])))
        reset = emit(first(self.clipped(inputs[1] + hidden[1])))
        if self.node.attrs.get("linear_before_reset", 0):
            turned = reset * hidden[2]
        else:
            size = self.hidden
            weights = op.strided_slice(self.recurrent, [1], [2 * size], [3 * size])
            bias = self.recurrent_bias
            if bias is not None:
                bias = op.strided_slice(bias, [0], [2 * size], [3 * size])
            turned = self.linear(reset * h, weights, bias)
        new = emit(second(self.clipped(inputs[2] + turned)))
        from_new = (self.node.const(1.0, self.dtype) - update) * new
        return [emit(from_new + update * h)]

    def _lstm(self, x: Expr, h: Expr, c: Expr) -> list[Expr]:
        gate, cell, out = self.activations
        emit = self.node.emit
        i, o, f, new = self.split(self.joined(x, h))
        peep = self._peepholes()
        if peep:
            i, f = i + peep[0] * c, f + peep[2] * c
        i = emit(gate(self.clipped(i)))
        if self.node.attrs.get("input_forget", 0):
            f = emit(self.node.const(1.0, self.dtype) - i)
        else:
            f = emit(gate(self.clipped(f)))
        new = emit(cell(self.clipped(new)))
        after = emit(f * c + i * new)
        if peep:
            o = o + peep[1] * after
        o = emit(gate(self.clipped(o)))
        return [emit(o * out(after)), after]

    def _peepholes(self) -> list[Expr]:
        if not self.node.has(7):
            return []
        return self.node.fields(op.split(self.part(7), 3, 0), 3)


def _activation(node: Node, name: str, alpha: float | None, beta: float | None) -> Activation:
    """An activation by its name, which is written in any case."""

    def number(value: float | None, default: float) -> Expr:
        return node.const(default if value is None else value, node.dtype(0))

    table: dict[str, Activation] = {
        "sigmoid": op.sigmoid,
        "tanh": op.tanh,
        "relu": op.nn.relu,
        "softplus": op.nn.softplus,
        "softsign": lambda x: x / (number(1, 1) + op.abs(x)),
        "leakyrelu": lambda x: op.nn.leakyrelu(x, 0.01 if alpha is None else alpha),
        "affine": lambda x: x * number(alpha, 1) + number(beta, 0),
        "hardsigmoid": lambda x: op.clip(x * number(alpha, 0.2) + number(beta, 0.5), 0.0, 1.0),
        "scaledtanh": lambda x: op.tanh(x * number(beta, 1)) * number(alpha, 1),
        "thresholdedrelu": lambda x: op.where(x > number(alpha, 1), x, op.zeros_like(x)),
        "elu": lambda x: op.where(
            x < number(0, 0),
            (op.exp(x) - number(1, 1)) * number(alpha, 1),
            x,
        ),
    }
    if name.lower() not in table:
        raise node.unsupported(f"the activation {name}; there are {', '.join(table)}")
    return table[name.lower()]


@converter("RNN", "GRU", "LSTM")
def _recurrent(node: Node) -> list[Expr]:
    batch_first = bool(node.attrs.get("layout", 0))
    x = node.tensor(0)
    if batch_first:
        x = node.emit(op.permute_dims(x, [1, 0, 2]))
    count = {"forward": 1, "reverse": 1, "bidirectional": 2}[node.attrs.get("direction", "forward")]
    length = node.static_shape(0)[1 if batch_first else 0]
    if not 0 < length <= MAX_STEPS:
        raise node.unsupported(f"{length} steps; there can be 1 to {MAX_STEPS}")
    batch = node.shape(0)[0 if batch_first else 1]
    hidden = node.attrs["hidden_size"]
    parts = node.emit(op.split(x, length, 0)) if length > 1 else None
    steps = [
        node.emit(op.squeeze(x if parts is None else TupleGetItem(parts, t), [0]))
        for t in range(length)
    ]
    states = 2 if node.op_type == "LSTM" else 1
    sequences, last = [], []
    for direction in range(count):
        layer = _Layer(node, direction, count)
        state = [
            _initial(node, layer, 5 + number, batch, hidden, batch_first)
            for number in range(states)
        ]
        backward = node.attrs.get("direction") == "reverse" or direction == 1
        order = range(length)
        outputs: dict[int, Expr] = {}
        for t in reversed(order) if backward else order:
            new = layer.step(steps[t], state)
            if node.has(4):
                new, shown = _within(node, t, new, state)
            else:
                shown = new[0]
            state, outputs[t] = new, shown
        sequences.append(node.emit(op.stack([outputs[t] for t in order], 0)))
        last.append(state)
    whole = node.emit(op.stack(sequences, 1))  # (length, directions, batch, hidden)
    ends = [node.emit(op.stack([state[i] for state in last], 0)) for i in range(states)]
    if batch_first:
        whole = op.permute_dims(whole, [2, 0, 1, 3])
        ends = [op.permute_dims(end, [1, 0, 2]) for end in ends]
    return [whole, *ends]


def _initial(
    node: Node, layer: _Layer, index: int, batch: int | PrimExpr, hidden: int, batch_first: bool
) -> Expr:
    if not node.has(index):
        return node.emit(op.zeros([batch, hidden], layer.dtype))
    if not batch_first:
        return layer.part(index)
    at = [layer.direction], [layer.direction + 1]
    return node.emit(op.squeeze(op.strided_slice(node.tensor(index), [1], *at), [1]))


def _within(
    node: Node, t: int, new: Sequence[Expr], old: Sequence[Expr]
) -> tuple[list[Expr], Expr]:
    """The states where the sequence still goes on; where it has ended, those before, and zeros to
    be shown."""
    lengths = op.astype(node.tensor(4), "int32")
    goes_on = lengths > node.const(t, "int32")
    goes_on = node.emit(op.expand_dims(goes_on, [1]))
    states = [node.emit(op.where(goes_on, a, b)) for a, b in zip(new, old, strict=True)]
    return states, node.emit(op.where(goes_on, new[0], op.zeros_like(new[0])))
