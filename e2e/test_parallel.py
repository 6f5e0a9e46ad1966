"""Parallel loops in the page: on threads that share memory where it is isolated, else serial."""

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground

KERNELS = """\
import js
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def matmul(
    A: T.Buffer((130, 128), "float32"),
    B: T.Buffer((128, 128), "float32"),
    C: T.Buffer((130, 128), "float32"),
):
    for i in T.parallel(130):
        for j, k in T.grid(128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def rows(A: T.Buffer((4, 500000), "int32"), B: T.Buffer((4, 500000), "int32")):
    for i in T.parallel(4):
        t = T.alloc_buffer((500000,), "int32")
        for j in range(500000):
            t[j] = T.truncdiv(1000, A[i, j])
        for j in range(500000):
            B[i, j] = t[499999 - j]
        assert A[i, 1] < 7, "too large"
        for k in range(A[i, 2]):
            B[i, 3] = T.max(B[i, 3], A[i, k % 7])
        while A[i, 0] > 5:
            B[i, 0] = B[i, 0] + 1


a, b = np.random.rand(130, 128).astype("float32"), np.random.rand(128, 128).astype("float32")
A, B, C = (tvm.nd.array(x) for x in (a, b, np.zeros_like(a)))
whole = np.ones((4, 500000), "int32")
"""

THREADS = (
    KERNELS
    + """
def runs():
    return js.mlcwebThreads.runs.to_py()


def until_all_run(call, count):
    # What a thread has not begun in time, its caller does.
    before = runs()
    while not all(now > then for now, then in zip(runs()[:count], before)):
        call()
"""
)


def test_threads_compute_what_numpy_computes(playground: Playground):
    # The threads are none that programs before have left.
    printed = playground.run_to_good_end(
        THREADS
        + """
import os
product, each = tvm.build(matmul), tvm.build(rows)
for count in (2, 3, 5):
    os.environ["TVM_NUM_THREADS"] = str(count)
    tvm.runtime.config_threadpool()
    until_all_run(lambda: product(A, B, C), count)
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-5)
    C.copyfrom(np.zeros_like(a))
    assert runs()[count] == 0, runs()
    print(count, "threads")

X, Y = tvm.nd.array(np.random.randint(1, 5, whole.shape, "int32")), tvm.nd.array(whole)
until_all_run(lambda: each(X, Y), 4)
np.testing.assert_array_equal(Y.numpy(), 1000 // X.numpy()[:, ::-1])

tvm.runtime.config_threadpool(1, 1)
before = runs()
product(A, B, C)
assert runs() == before
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-5)


# Threads run no Python.
@T.prim_func
def calls(A: T.Buffer((4, 500000), "int32"), B: T.Buffer((4, 500000), "int32")):
    for i in T.parallel(4):
        T.evaluate(T.call_packed("test.row", i))
        for j in range(500000):
            B[i, j] = A[i, j] * 2 + j


seen = []
tvm.register_func("test.row", lambda i: seen.append(int(i)), override=True)
before = runs()
Y = tvm.nd.array(whole)
tvm.build(calls)(tvm.nd.array(whole), Y)
np.testing.assert_array_equal(Y.numpy(), whole * 2 + np.arange(500000))
assert seen == [0, 1, 2, 3]
assert runs() == before
"""
    )
    assert "5 threads" in printed
    assert "one thread" not in printed


def test_what_goes_wrong_in_a_thread_ends_its_call(run):
    run(
        THREADS
        + """
tvm.runtime.config_threadpool(1, 2)
each, Y = tvm.build(rows), tvm.nd.array(whole)


def fails_with(expected, row, column, value):
    X = tvm.nd.array(whole)
    each(X, Y)
    wrong = whole.copy()
    wrong[row, column] = value
    wrong = tvm.nd.array(wrong)
    for row in range(2):
        try:
            each(wrong, Y)
        except tvm.TVMError as error:
            assert expected in str(error), error
        else:
            raise AssertionError("no error")
    each(X, Y)
    assert Y.numpy().min() == Y.numpy().max() == 1000


until_all_run(lambda: fails_with("divided an integer by zero", 3, 499999, 0), 2)
until_all_run(lambda: fails_with("too large", 3, 1, 8), 2)
until_all_run(lambda: fails_with("too large", 0, 1, 8), 2)
tvm.runtime.config_threadpool()
"""
    )


def test_stop_ends_a_thread_and_others_take_its_place(playground):
    playground.run(
        THREADS
        + """
tvm.runtime.config_threadpool(1, 2)
each, Y = tvm.build(rows), tvm.nd.array(whole)
until_all_run(lambda: each(tvm.nd.array(whole), Y), 2)
endless = whole.copy()
# The caller is busy until the thread has begun. On a slow machine it may run the thread's part
# itself; then Stop ends Python.
endless[0, 2] = 20_000_000
endless[3, 0] = 9
endless = tvm.nd.array(endless)
print("it begins")
each(endless, Y)
"""
    )
    console = playground["console"]
    expect(console).to_contain_text("it begins")
    playground.stop()
    playground.run_to_end(
        THREADS
        + """
tvm.runtime.config_threadpool(1, 2)
product = tvm.build(matmul)
until_all_run(lambda: product(A, B, C), 2)
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-5)
print("the " + "end")
"""
    )
    expect(console).to_contain_text("the end")


@pytest.mark.thorough
def test_stop_ends_what_the_caller_runs_itself(playground):
    endless = "whole[:, 0] = 9\neach(tvm.nd.array(whole), tvm.nd.array(whole))"
    set_up = THREADS + "tvm.runtime.config_threadpool(1, 2)\n"
    playground.run(set_up + f"each = tvm.build(rows)\nprint('it begins')\n{endless}")
    console = playground["console"]
    expect(console).to_contain_text("it begins")
    playground.stop()
    expect(console).to_contain_text("Python was restarted")
    playground.run_to_end(
        set_up
        + "product = tvm.build(matmul)\nuntil_all_run(lambda: product(A, B, C), 2)\n"
        + "np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-5)\nprint('the end')"
    )
    expect(console).to_contain_text("the end")


def test_a_page_that_is_not_isolated_says_once_that_loops_are_serial(open_playground):
    playground = open_playground(isolated=False)
    playground.run_to_end(
        KERNELS
        + """
tvm.runtime.config_threadpool(1, 4)
product, each, Y = tvm.build(matmul), tvm.build(rows), tvm.nd.array(whole)
product(A, B, C)
each(tvm.nd.array(whole), Y)
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-5)
assert Y.numpy().min() == Y.numpy().max() == 1000
print("the end")
"""
    )
    console = playground["console"]
    expect(console).to_contain_text("the end")
    assert console.inner_text().count("Parallel loops run on one thread here") == 1
