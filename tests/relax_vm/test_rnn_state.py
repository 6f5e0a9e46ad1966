"""The state of recurrent layers; the numbers are those of TVM 0.27 with the same functions."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.relax_vm import ShapeTuple
from mlcweb.script import tir as T


@T.prim_func
def read(storage: T.handle, slots: T.handle, places: T.handle, out: T.handle):
    sequences, history, n = T.int32(), T.int32(), T.int32()
    S = T.match_buffer(storage, (sequences, history, 2), "float32")
    A = T.match_buffer(slots, (n,), "int32")
    B = T.match_buffer(places, (n,), "int32")
    Out = T.match_buffer(out, (n, 2), "float32")
    for i, j in T.grid(n, 2):
        with T.block("read"):
            vi, vj = T.axis.remap("SS", [i, j])
            Out[vi, vj] = S[A[vi], B[vi], vj]


@T.prim_func
def write(storage: T.handle, slots: T.handle, places: T.handle, data: T.handle):
    sequences, history, n = T.int32(), T.int32(), T.int32()
    S = T.match_buffer(storage, (sequences, history, 2), "float32")
    A = T.match_buffer(slots, (n,), "int32")
    B = T.match_buffer(places, (n,), "int32")
    Data = T.match_buffer(data, (n, 2), "float32")
    for i, j in T.grid(n, 2):
        with T.block("write"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[A[vi], (B[vi] + 1) % history, vj] = Data[vi, vj]


def builtin(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


class States:
    """Two layers of one part, which is 7 at first; a pass writes a value, and one more in the
    second layer."""

    def __init__(self, sequences=4, history=3):
        functions = [tvm.build(f, "llvm")["main"] for f in (read, write)]
        initial = tvm.nd.array(np.full(2, 7, "float32"))
        self.state = builtin(
            "rnn_state_create", 2, sequences, history, [functions[0]], [functions[1]], [initial]
        )

    def do(self, name, *args):
        builtin(f"kv_state_{name}", self.state, *args)

    def forward(self, numbers, value, count=1):
        """What the sequences had in the first layer."""
        count_of = [count] * len(numbers)
        self.do("begin_forward", ShapeTuple(numbers), ShapeTuple(count_of))
        before = tvm.nd.empty((len(numbers), 2), "float32")
        for layer in (1, 0):
            builtin("rnn_state_get", self.state, layer, 0, before)
            data = tvm.nd.array(np.full((len(numbers), 2), value + layer, "float32"))
            assert builtin("rnn_state_set", self.state, layer, 0, data) is self.state
        self.do("end_forward")
        return before.numpy()[:, 0].tolist()

    def values(self, number):
        return [builtin("rnn_state_debug_get", self.state, i, 0, number).numpy()[0] for i in (0, 1)]


def test_passes_forks_and_steps_back():
    states = States()
    states.do("add_sequence", 5)
    states.do("add_sequence", 9)
    assert states.values(5) == [7, 7]
    assert states.forward([5, 9], 10) == [7, 7]
    assert states.forward([9], 20) == [10]
    assert (states.values(5), states.values(9)) == ([10, 11], [20, 21])
    states.do("fork_sequence", 9, 1, -1)
    assert states.forward([1], 40) == [20]
    assert (states.values(1), states.values(9)) == ([40, 41], [20, 21])
    states.do("popn", 9, 1)
    assert states.values(9) == [10, 11]
    states.do("popn", 9, 1)
    assert states.values(9) == [7, 7]
    with pytest.raises(RuntimeError, match="only has 0 available history"):
        states.do("popn", 9, 1)
    for value in (50, 60, 70):
        states.forward([1], value)
    states.do("popn", 1, 2)
    assert states.values(1) == [50, 51]
    states.do("fork_sequence", 1, 2, -1)
    assert states.values(2) == [50, 51]


def test_several_tokens_at_once_leave_no_history():
    states = States()
    states.do("add_sequence", 5)
    states.forward([5], 10)
    states.forward([5], 80, count=3)
    assert states.values(5) == [80, 81]
    with pytest.raises(RuntimeError, match="only has 0 available history"):
        states.do("popn", 5, 3)
    states.do("remove_sequence", 5)
    states.do("add_sequence", 6)
    assert states.values(6) == [7, 7]
    states.do("clear")
    with pytest.raises(RuntimeError, match='"6" cannot be found'):
        states.do("popn", 6, 0)


def test_what_does_not_fit_is_refused():
    states = States(sequences=1)
    states.do("add_sequence", 0)
    with pytest.raises(RuntimeError, match="slot is full"):
        states.do("add_sequence", 1)
    with pytest.raises(RuntimeError, match='"0" is already'):
        states.do("add_sequence", 0)
    with pytest.raises(RuntimeError, match="call begin_forward first"):
        states.do("end_forward")
    with pytest.raises(RuntimeError, match="no trees"):
        states.do("begin_forward", ShapeTuple([0]), ShapeTuple([1]), ShapeTuple([-1]))
    with pytest.raises(RuntimeError, match="a history of at least one"):
        States(history=0)
