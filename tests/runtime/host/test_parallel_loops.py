"""Parallel loops on threads: the numbers of serial ones, errors that come back, and calls from
several threads at once."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("wasmtime")

from mlcweb.codegen import interpreter
from mlcweb.ir import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower import outline_parallel
from mlcweb.runtime import build, config_threadpool, nd, register_func, remove_global_func
from mlcweb.runtime.host.engine import has_llvm
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from mlcweb.tir import stmt as S
from tests.codegen.corpus import PROGRAMS, inputs
from tests.random_schedules import random_step
from tests.strategies import examples, prim_funcs

TARGETS = ["wasm", *(["llvm -mcpu=host"] if has_llvm() else [])]
WAIT = 20


@pytest.fixture(params=TARGETS)
def target(request):
    return request.param


@pytest.fixture(autouse=True, scope="module")
def _three_threads_for_all_loops():
    smallest, outline_parallel.MIN_OPERATIONS = outline_parallel.MIN_OPERATIONS, 0
    config_threadpool(1, 3)
    yield
    config_threadpool()
    outline_parallel.MIN_OPERATIONS = smallest


@pytest.fixture
def packed():
    """A function that registers Python functions for one test."""
    names = []

    def register(name, function):
        names.append(name)
        register_func(name, function, override=True)

    yield register
    for name in names:
        remove_global_func(name)


def program(text):
    return from_source("@T.prim_func\n" + text)


class OutermostParallel(Mutator):
    """Marks outermost loops. Where iterations are seen to touch the same element, they stay in
    order."""

    @on(S.For)
    def loop(self, loop):
        serial = loop.kind == S.ForKind.SERIAL
        return replace(loop, kind=S.ForKind.PARALLEL) if serial else loop


def in_parallel(func):
    return func.with_body(OutermostParallel().rewrite(func.body))


def check(func, target):
    """Threads compute what the interpreter does."""
    expected, actual = inputs(func), inputs(func)
    interpreter.build({"main": func}, lambda name: None)["main"].run(*expected)
    build({"main": func}, target)["main"].kernel.run(*actual)
    for one, other in zip(expected, actual, strict=True):
        if one.dtype.kind != "f":
            np.testing.assert_array_equal(other, one)
        else:
            tolerance = 2e-3 if one.dtype == "float16" else 1e-5
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_try_every_path(target, name):
    check(in_parallel(PROGRAMS[name]), target)


@examples(60)
@given(prim_funcs(), st.sampled_from(TARGETS), st.data())
def test_scheduled_programs(func, target, data):
    schedule = Schedule(in_parallel(func), seed=1)

    def choose(items):
        if not items:
            raise IndexError("nothing to choose from")
        return data.draw(st.sampled_from(list(items)))

    for _ in range(data.draw(st.integers(0, 5))):
        random_step(schedule, choose)
    check(in_parallel(schedule.mod["main"]), target)


ROWS = """
def main(A: T.Buffer((6, 640), "float32"), B: T.Buffer((6, 640), "float32")):
    for i in T.parallel(6):
        T.evaluate(T.call_packed("test.row", i))
        for j in range(640):
            B[i, j] = A[i, j] * 2.0
"""


def arrays(shape=(6, 640)):
    values = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    return nd.array(values), nd.array(np.zeros_like(values))


def test_several_threads_run_parts_of_a_loop(target, packed):
    meeting, threads = threading.Barrier(3), {}

    def row(i):
        threads[i] = threading.get_ident()
        if i % 2 == 0:
            meeting.wait(WAIT)

    packed("test.row", row)
    a, b = arrays()
    build(program(ROWS), target)(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)
    assert len(set(threads.values())) == 3
    assert [threads[i] == threads[i + 1] for i in (0, 2, 4)] == [True] * 3


def test_the_number_of_threads_changes_for_kernels_that_are_there(target, packed):
    threads = set()
    packed("test.row", lambda i: threads.add(threading.get_ident()))
    kernel, (a, b) = build(program(ROWS), target), arrays()
    config_threadpool(1, 1)
    try:
        kernel(a, b)
        assert threads == {threading.get_ident()}
    finally:
        config_threadpool(1, 3)
    np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)


def test_an_exception_comes_back_to_the_caller(target, packed):
    class Refusal(Exception):
        pass

    def row(i):
        if i == 5:
            raise Refusal(i)

    packed("test.row", row)
    kernel, (a, b) = build(program(ROWS), target), arrays()
    with pytest.raises(Refusal, match="5"):
        kernel(a, b)
    packed("test.row", lambda i: None)
    kernel(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)


DIVISIONS = """
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        B[i] = T.truncdiv(100, A[i])
"""


def test_a_trap_takes_only_its_call(target):
    kernel = build(program(DIVISIONS), target)
    values = np.arange(1, 65, dtype="int32")
    a, b = nd.array(values), nd.array(np.zeros_like(values))
    zero = values.copy()
    zero[60] = 0
    with pytest.raises(KernelTrap, match="divided an integer by zero"):
        kernel(nd.array(zero), b)
    kernel(a, b)
    np.testing.assert_array_equal(b.numpy(), 100 // values)


def test_an_assertion_says_what_failed(target):
    kernel = build(
        program(
            'def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):\n'
            "    for i in T.parallel(64):\n"
            '        assert A[i] < 7, "too large"\n'
            "        B[i] = A[i]\n"
        ),
        target,
    )
    values = np.zeros(64, "int32")
    b = nd.array(values)
    values[62] = 9
    with pytest.raises(TVMError, match="too large"):
        kernel(nd.array(values), b)


LOCALS = """
def main(A: T.Buffer((12, 64), "float32"), B: T.Buffer((12, 64), "float32"), n: T.int32):
    T.func_attr({"tir.noalias": True})
    S = T.alloc_buffer((64,))
    for j in range(64):
        S[j] = A[0, j] * T.Cast("float32", n)
    for k in range(2):
        for i in T.parallel(6):
            t = T.alloc_buffer((64,))
            for j in range(64):
                t[j] = A[k * 6 + i, 63 - j] + S[j]
            for j in range(64):
                B[k * 6 + i, j] = t[63 - j] * 2.0
"""


def test_threads_have_scratch_memory_of_their_own(target):
    kernel = build(program(LOCALS), target)
    a, b = arrays((12, 64))
    for number in range(20):
        kernel(a, b, number)
        whole = a.numpy()
        expected = (whole + whole[0, ::-1] * np.float32(number)) * 2
        np.testing.assert_array_equal(b.numpy(), expected)


def test_loops_of_64_bits(target):
    kernel = build(
        program(
            'def main(A: T.Buffer((6, 640), "float32"), B: T.Buffer((6, 640), "float32")):\n'
            "    for i in T.parallel(T.int64(6)):\n"
            "        for j in range(T.int64(640)):\n"
            "            B[i, j] = A[i, j] + 1.0\n"
        ),
        target,
    )
    a, b = arrays()
    kernel(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() + 1)


def test_arrays_that_share_memory_are_computed_in_order(target):
    kernel = build(
        program(
            'def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):\n'
            "    for i in T.parallel(64):\n"
            "        B[i] = A[63 - i] + 1.0\n"
        ),
        target,
    )
    values = np.arange(64, dtype="float32")
    expected = values.copy()
    for i in range(64):
        expected[i] = expected[63 - i] + 1
    array = nd.array(values)
    kernel(array, array)
    np.testing.assert_array_equal(array.numpy(), expected)


def test_two_python_threads_call_at_once(target):
    texts = [LOCALS.replace("2.0", f"{factor}.0") for factor in (2, 3)]
    kernels = [build(program(text), target) for text in texts]
    failures = []

    def work(kernel, factor):
        try:
            a, b = arrays((12, 64))
            for number in range(50):
                kernel(a, b, number)
                whole = a.numpy()
                expected = (whole + whole[0, ::-1] * np.float32(number)) * np.float32(factor)
                np.testing.assert_array_equal(b.numpy(), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(kernels[n % 2], n % 2 + 2)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_a_kernel_that_a_loop_calls_runs_in_its_thread(target, packed):
    inner, (a, b) = build(program(LOCALS), target), arrays((12, 64))
    packed("test.row", lambda i: inner(a, b, 1))
    c, d = arrays()
    build(program(ROWS), target)(c, d)
    np.testing.assert_array_equal(d.numpy(), c.numpy() * 2)


def test_a_kernel_that_calls_itself_from_a_loop_is_refused(packed):
    a, b = arrays()
    kernel = build(program(ROWS), "wasm")
    meeting = threading.Barrier(3)

    def row(i):
        if i % 2 == 0:
            meeting.wait(WAIT)
            if i == 4:
                kernel(a, b)

    packed("test.row", row)
    with pytest.raises(TVMError, match="parallel loop"):
        kernel(a, b)


def test_time_evaluator_counts_launches(target):
    a, b = arrays((12, 64))
    result = build(program(LOCALS), target).time_evaluator("main", nd.cpu(), number=3)(a, b, 1)
    assert result.mean > 0
    np.testing.assert_array_equal(b.numpy(), (a.numpy() + a.numpy()[0, ::-1]) * 2)
