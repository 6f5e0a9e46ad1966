"""Steps on loops over threads that exchange data: barriers are never lost."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.schedule.errors import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule

TARGETS = ("interpreter", "numpy", "wasm")
RAMP = np.arange(32, dtype="float32")


def reversal(scope="shared", barrier=False):
    """B is A reversed, by threads that each store an element and load that of another."""
    sync = '        T.evaluate(T.tvm_storage_sync("shared"))\n' if barrier else ""
    source = f"""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    S = T.alloc_buffer((32,), scope="{scope}")
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("put"):
            v = T.axis.spatial(32, tx)
            S[v] = A[v]
{sync}        with T.block("get"):
            v = T.axis.spatial(32, tx)
            B[v] = S[31 - v]
"""
    return Schedule(from_source(source))


def results(func, *inputs, shape):
    for target in TARGETS:
        out = mlcweb.nd.empty(shape)
        kernel = mlcweb.build(func, target=target, name="main")
        kernel(*map(mlcweb.nd.array, inputs), out)
        yield out.numpy()


PROGRAMS = {
    "shared": {"scope": "shared"},
    "dynamic": {"scope": "shared.dyn"},
    "warp": {"scope": "warp"},
    "by hand": {"scope": "shared", "barrier": True},
    "global, by hand": {"scope": "global", "barrier": True},
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("step", ["vectorize", "parallel", "unroll", "blockIdx.x"])
def test_loops_of_threads_that_exchange_data_stay_threads(program, step):
    sch = reversal(**PROGRAMS[program])
    tx = sch.get_loops("put")[0]
    with pytest.raises(ScheduleError, match="would no longer wait for each other"):
        sch.bind(tx, step) if "." in step else getattr(sch, step)(tx)
    for result in results(sch.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP[::-1])


@pytest.mark.parametrize("axis", ["threadIdx.y", "vthread.x"])
def test_threads_that_exchange_data_may_go_to_another_axis(axis):
    sch = reversal()
    sch.bind(sch.get_loops("put")[0], axis)
    for result in results(sch.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP[::-1])


@pytest.mark.parametrize("axis", ["threadIdx.y", "vthread.x"])
def test_threads_of_a_warp_stay_on_its_axis(axis):
    sch = reversal("warp")
    with pytest.raises(ScheduleError, match="exchange data"):
        sch.bind(sch.get_loops("put")[0], axis)


@pytest.mark.parametrize("scope", ["local", "warp"])
def test_memory_through_which_threads_exchange_data_stays_shared(scope):
    sch = reversal()
    with pytest.raises(ScheduleError, match="exchange data"):
        sch.set_scope("put", 0, scope)
    for allowed in ("shared.dyn", "global"):
        sch.set_scope("put", 0, allowed)
        for result in results(sch.mod["main"], RAMP, shape=(32,)):
            np.testing.assert_array_equal(result, RAMP[::-1])
    # By way of global memory, too.
    with pytest.raises(ScheduleError, match=r'"get" reads elements of .* other threads may have'):
        sch.set_scope("put", 0, scope)


def test_what_a_thread_reads_of_its_own_may_be_its_own():
    """Each thread makes the four elements and the one before that it reads, a tile at a time."""
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((40,), "float32"), B: T.Buffer((32,), "float32")):
    S = T.alloc_buffer((33,))
    for i in range(33):
        with T.block("put"):
            v = T.axis.spatial(33, i)
            S[v] = A[v] * T.float32(2)
    for i in range(32):
        with T.block("get"):
            v = T.axis.spatial(32, i)
            B[v] = S[v] + S[v + 1]
""")
    )
    tx, _ = sch.split(sch.get_loops("get")[0], [None, 4])
    sch.bind(tx, "threadIdx.x")
    sch.compute_at("put", tx)
    sch.set_scope("put", 0, "local")
    wide = np.arange(40, dtype="float32")
    for result in results(sch.mod["main"], wide, shape=(32,)):
        np.testing.assert_array_equal(result, 2 * (wide[:32] + wide[1:33]))


def test_threads_that_exchange_nothing_may_be_vectorized():
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    S = T.alloc_buffer((32,), scope="local")
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("put"):
            v = T.axis.spatial(32, tx)
            S[v] = A[v]
        with T.block("get"):
            v = T.axis.spatial(32, tx)
            B[v] = S[v]
""")
    )
    sch.vectorize(sch.get_loops("put")[0])
    for result in results(sch.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP)


@pytest.mark.parametrize("scope", ["global", "local", "shared"])
def test_a_sum_of_threads_is_complete_before_they_read_it(scope):
    source = """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    S = T.alloc_buffer((4,))
    for i, k in T.grid(4, 64):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, j in T.grid(4, 64):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + S[vi]
"""
    sch = Schedule(from_source(source))
    _, tx = sch.split(sch.get_loops("sum")[1], [None, 16])
    partial = sch.rfactor(tx, 0)
    sch.set_scope("sum", 0, scope)
    i, j = sch.get_loops("add")
    _, tx = sch.split(j, [None, 16])
    sch.bind(tx, "threadIdx.x")
    sch.bind(i, "blockIdx.x")
    sch.compute_at("sum", i)
    sch.bind(sch.get_loops("sum")[-1], "threadIdx.x")
    sch.compute_at(partial, i)
    sch.bind(sch.get_loops(partial)[1], "threadIdx.x")
    a = np.arange(256, dtype="float32").reshape(4, 64)
    for result in results(sch.mod["main"], a, shape=(4, 64)):
        np.testing.assert_array_equal(result, a + a.sum(1, keepdims=True))


def test_barriers_follow_data_to_other_memory():
    """What threads exchanged through shared memory goes through global memory: S is inlined."""
    sch = reversal()
    sch.cache_write("put", 0, "global")
    sch.compute_inline("S_global")
    assert "shared" not in sch.mod.script()
    for result in results(sch.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP[::-1])
    with pytest.raises(ScheduleError, match="would no longer wait for each other"):
        sch.unroll(sch.get_loops("put")[0])


OWN_COPIES = """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    L = T.alloc_buffer((32,), scope="local")
    S = T.alloc_buffer((32,), scope="shared")
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("copy"):
            v = T.axis.spatial(32, tx)
            L[v] = A[v]
        with T.block("put"):
            v = T.axis.spatial(32, tx)
            S[v] = L[v]
        with T.block("get"):
            v = T.axis.spatial(32, tx)
            B[v] = S[31 - v] - L[v]
"""


def test_what_uses_memory_of_a_thread_stays_with_the_thread():
    """In place of S[31 - v], L[31 - v] would be a copy that another thread has."""
    source = from_source(OWN_COPIES)
    for result in results(source, RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP[::-1] - RAMP)
    with pytest.raises(ScheduleError, match=r'other threads have written, so .* their "L"'):
        Schedule(source).compute_inline("put")
    other = Schedule(from_source(OWN_COPIES.replace("S[31 - v] - L[v]", "S[31 - v]")))
    with pytest.raises(ScheduleError, match="other threads have written"):
        other.compute_inline("put")
    own = Schedule(from_source(OWN_COPIES.replace("S[31 - v]", "S[v]")))
    own.compute_inline("put")
    for result in results(own.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, RAMP - RAMP)


def test_each_thread_may_repeat_a_sum_for_itself():
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    Y = T.alloc_buffer((2,))
    S = T.alloc_buffer((32,), scope="shared")
    for i, k in T.grid(2, 16):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + A[vi * 16 + vk]
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("put"):
            v = T.axis.spatial(32, tx)
            S[v] = A[v]
        with T.block("get"):
            v = T.axis.spatial(32, tx)
            B[v] = S[31 - v] + T.if_then_else(v == 4, Y[0], T.float32(0))
""")
    )
    sch.compute_at("sum", sch.get_loops("get")[0])
    wanted = RAMP[::-1].copy()
    wanted[4] += RAMP[:16].sum()
    for result in results(sch.mod["main"], RAMP, shape=(32,)):
        np.testing.assert_array_equal(result, wanted)


def test_shared_memory_of_each_thread_alone_is_refused():
    """A block inside of a loop over threads fills memory of its own, which they would share."""
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [tx, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
""")
    )
    sch.blockize(sch.get_loops("B")[1])
    sch.cache_write("B", 0, "shared")
    with pytest.raises(mlcweb.TVMError, match="write different values to one element"):
        mlcweb.build(sch.mod["main"], target="interpreter")


@pytest.mark.parametrize("scope", ["local", "global"])
def test_memory_between_threads_that_fetch_and_a_copy_by_each(scope):
    source = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.alloc_buffer((16,), scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for f in T.thread_binding(8, thread="threadIdx.x"):
            for g in range(2):
                with T.block("put"):
                    v = T.axis.spatial(16, f * 2 + g)
                    S[v] = A[v]
        for g in range(2):
            with T.block("get"):
                v = T.axis.spatial(16, g * 8 + tx)
                B[v] = S[15 - v]
"""
    sch = Schedule(from_source(source))
    sch.cache_write("put", 0, scope)
    if scope == "local":
        with pytest.raises(mlcweb.TVMError, match="that only others have written"):
            mlcweb.build(sch.mod["main"], target="interpreter")
        return
    for result in results(sch.mod["main"], RAMP[:16], shape=(16,)):
        np.testing.assert_array_equal(result, RAMP[15::-1])
