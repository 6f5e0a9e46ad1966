"""The short way of a call: it is taken, it is left where it must be, and it holds nothing."""

import gc
import threading
import weakref

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.runtime import build, from_dlpack, nd
from mlcweb.runtime.direct_call import MAX_BOUND
from mlcweb.runtime.host.wasmtime_host import WasmtimeHost
from mlcweb.runtime.ndarray import NDArray
from mlcweb.script import from_source

ADD = from_source("""
@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(4):
        C[i] = A[i] + B[i]
""")


@pytest.fixture
def add(monkeypatch):
    """The function, and the calls of it that take the long way."""
    lib = build(ADD, "wasm")
    long_calls = []
    kernel = lib["add"].kernel
    run = type(kernel).run
    monkeypatch.setattr(
        type(kernel), "run", lambda self, *a: (long_calls.append(a), run(self, *a))[1]
    )
    return lib["add"], long_calls


def four(value=1.0):
    return nd.array(np.full(4, value, "float32"))


def test_arrays_that_fit_go_straight_to_the_kernel(add):
    function, long_calls = add
    a, b = four(1), four(2)
    for _ in range(3):
        c = nd.empty((4,))
        function(a, b, c)
        assert c.numpy().tolist() == [3] * 4
        function(c, b, a)
        assert a.numpy().tolist() == [5] * 4
        function(four(1), four(0), a)
    assert long_calls == []


def test_more_arrays_than_are_remembered(add):
    function, long_calls = add
    arrays = [four(i) for i in range(2 * MAX_BOUND)]
    c = nd.empty((4,))
    for _ in range(2):
        for value, array in enumerate(arrays[1:], 1):
            function(array, arrays[0], c)
            assert c.numpy()[0] == value
    assert long_calls == []


def test_borrowed_arrays_and_those_of_another_memory_take_the_long_way(add):
    function, long_calls = add
    a, c = four(), nd.empty((4,))
    function(from_dlpack(np.full(4, 2, "float32")), a, c)
    assert c.numpy().tolist() == [3] * 4
    host = WasmtimeHost()
    foreign = NDArray((4,), "float32", a.device, host.allocate(16)).copyfrom(np.full(4, 5.0))
    function(foreign, a, c)
    assert c.numpy().tolist() == [6] * 4
    function(a, a, foreign)
    assert foreign.numpy().tolist() == [2] * 4
    assert len(long_calls) == 3


def test_the_same_array_twice_takes_the_long_way(add):
    function, long_calls = add
    a, c = four(), nd.empty((4,))
    function(a, a, c)
    assert c.numpy().tolist() == [2] * 4
    assert len(long_calls) == 1
    with pytest.raises(ValueError, match="A and C are the same array"):
        function(a, four(), a)


def test_memory_that_grew_and_arrays_that_were_freed(add):
    function, _ = add
    a, b, c = four(1), four(2), nd.empty((4,))
    function(a, b, c)
    held = [nd.array(np.zeros(1 << 18, "float32")) for _ in range(40)]
    function(a, b, c)
    assert c.numpy().tolist() == [3] * 4
    del held, a
    for value in range(5):
        function(four(value), b, c)
        assert c.numpy().tolist() == [value + 2] * 4


def test_a_module_and_its_arrays_go_with_their_last_user():
    gc.collect()
    gc.disable()
    try:
        lib = build(ADD, "wasm")
        a, b, c = four(), four(), four()
        lib["add"](a, b, c)
        lib["add"](a, a, c)
        seen = [
            weakref.ref(part)
            for part in (lib["add"].kernel.variant(()).instance.store, a.storage, c.storage)
        ]
        del a, b, c
        assert [ref() is None for ref in seen] == [False, True, True]
        del lib
        assert seen[0]() is None
    finally:
        gc.enable()


def test_threads_may_share_a_module(add):
    function, _ = add
    wrong = []

    def work(value):
        a, b, c = four(value), four(1), nd.empty((4,))
        for _ in range(300):
            function(a, b, c)
            if c.numpy()[0] != value + 1:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
