"""The state of recurrent layers, for several sequences, `vm.builtin.rnn_state_…`: for each layer
arrays (sequence, history, *state), which functions of the module read and write.

A forward pass writes what is next in the history of each sequence, a ring, so that `popn` can go
back as many passes of one token as the ring has room for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlcweb.relax_vm.cached_sequences import check_batch
from mlcweb.relax_vm.packed import machine_function
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.ndarray import NDArray, array, empty

Function = Callable[..., object]


@dataclass(frozen=True)
class _Sequence:
    slot: int
    length: int = 0
    at: int = 0
    """Where in the ring its state is."""
    past: int = 0
    """How many states before are there."""


class RNNState:
    """See the module. Sequences have numbers that the program chooses."""

    def __init__(
        self, layers: int, max_sequences: int, max_history: int, gets: Sequence[Function],
        sets: Sequence[Function], initial: Sequence[NDArray],
    ) -> None:  # fmt: skip
        if max_history < 1 or not len(gets) == len(sets) == len(initial):
            raise ArgumentValueError(
                "A state has a history of at least one, and for each of its parts a function that "
                "reads, one that writes, and an initial value"
            )
        self.max_sequences, self.max_history = max_sequences, max_history
        self.gets, self.sets, self.initial = gets, sets, initial
        self.parts = [
            [
                empty((max_sequences, max_history, *value.shape), value.dtype, value.device)
                for value in initial
            ]
            for _ in range(layers)
        ]
        self.clear()

    def clear(self) -> None:
        self.free = list(range(self.max_sequences - 1, -1, -1))
        self.sequences: dict[int, _Sequence] = {}
        self.batch: dict[int, int] | None = None

    def sequence(self, number: int) -> _Sequence:
        if number not in self.sequences:
            raise ArgumentValueError(
                f'The sequence "{number}" cannot be found in the space state storage.'
            )
        return self.sequences[number]

    def _slot(self, number: int) -> int:
        if number in self.sequences:
            raise ArgumentValueError(
                f'The sequence "{number}" is already in the space state storage.'
            )
        if not self.free:
            raise ArgumentValueError("The Sequence slot is full, cannot accept new sequence.")
        return self.free.pop()

    def add_sequence(self, number: int) -> None:
        sequence = self.sequences[number] = _Sequence(self._slot(number))
        for parts in self.parts:
            for part, value in zip(parts, self.initial, strict=True):
                self._state(part, sequence).copyfrom(value)

    def remove_sequence(self, number: int) -> None:
        self.free.append(self.sequence(number).slot)
        del self.sequences[number]

    def fork_sequence(self, parent: int, child: int, position: int = -1) -> None:
        source = self.sequence(parent)
        count = 0 if position == -1 else source.length - position
        back = _back(source, count, self.max_history)
        slot = self._slot(child)
        for parts in self.parts:
            for part in parts:
                self._history(part, slot).copyfrom(self._history(part, source.slot))
        self.sequences[child] = replace(back, slot=slot)

    def popn(self, number: int, count: int) -> None:
        self.sequences[number] = _back(self.sequence(number), count, self.max_history)

    def begin_forward(
        self, numbers: Sequence[int], counts: Sequence[int], parents: object = None
    ) -> None:
        if parents is not None:
            raise ArgumentValueError("The state of recurrent layers has no trees of tokens")
        check_batch(numbers, counts)
        sequences = [self.sequence(number) for number in numbers]
        self.batch = dict(zip(numbers, counts, strict=True))
        device = self.initial[0].device
        self.slots, self.places = (
            _integers([getattr(sequence, name) for sequence in sequences]).copyto(device)
            for name in ("slot", "at")
        )

    def end_forward(self) -> None:
        for number, count in self._running().items():
            old = self.sequence(number)
            past = min(old.past + 1, self.max_history - 1) if count == 1 else 0
            at = (old.at + 1) % self.max_history
            self.sequences[number] = _Sequence(old.slot, old.length + count, at, past)
        self.batch = None

    def _running(self) -> dict[int, int]:
        if self.batch is None:
            raise ArgumentValueError("No forward pass is under way: call begin_forward first")
        return self.batch

    def get(self, layer: int, part: int, output: NDArray) -> None:
        """What the sequences of the forward pass have."""
        self._running()
        self.gets[part](self.parts[layer][part], self.slots, self.places, output)

    def set(self, layer: int, part: int, data: NDArray) -> RNNState:
        """What they have after it; the function writes behind the places that it is given."""
        self._running()
        self.sets[part](self.parts[layer][part], self.slots, self.places, data)
        return self

    def debug_get(self, layer: int, part: int, number: int) -> NDArray:
        sequence = self.sequence(number)
        return array(self._state(self.parts[layer][part], sequence))

    def _history(self, part: NDArray, slot: int) -> NDArray:
        shape = part.shape[1:]
        return part._create_view(shape, None, slot * (part.nbytes // self.max_sequences))

    def _state(self, part: NDArray, sequence: _Sequence) -> NDArray:
        history = self._history(part, sequence.slot)
        start = sequence.at * (history.nbytes // self.max_history)
        return history._create_view(part.shape[2:], None, start)


def _back(sequence: _Sequence, count: int, max_history: int) -> _Sequence:
    if count > sequence.past:
        raise ArgumentValueError(
            f"The sequence only has {sequence.past} available history in the space state storage, "
            f"while the length of rollback is {count}"
        )
    at = (sequence.at - count) % max_history
    return replace(sequence, length=sequence.length - count, at=at, past=sequence.past - count)


def _integers(values: list[int]) -> NDArray:
    import numpy as np

    return array(np.array(values, "int32"))


@machine_function("rnn_state_create")
def create(
    num_layers: int, reserved_num_seqs: int, max_history: int, f_gets: Sequence[Function],
    f_sets: Sequence[Function], init_layer_value: Sequence[NDArray],
) -> RNNState:  # fmt: skip
    """State of layers, each of the parts that there are initial values of."""
    return RNNState(num_layers, reserved_num_seqs, max_history, f_gets, f_sets, init_layer_value)


machine_function("rnn_state_get")(RNNState.get)
machine_function("rnn_state_set")(RNNState.set)
machine_function("rnn_state_debug_get")(RNNState.debug_get)
