"""Threads that exchange data: barriers where they are needed, and the same answers as a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlcweb
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import walk
from mlcweb.lower import lower
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.thread_sync import thread_sync
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import stmt as S
from tests.gpu import assert_kernels_give

TARGETS = ("interpreter", "numpy", "simulated", "wasm", "wasm -bounds_check=1", "llvm -mcpu=host")

RAMP = np.arange(64, dtype="float32")
SQUARE = np.arange(64 * 64, dtype="float32").reshape(64, 64)


def assert_gives(func, inputs, expected, has_kernels=True):
    """On every target, for the lowered function too, and as source on what devices there are."""
    expected = np.asarray(expected)
    for program, target in [(func, t) for t in TARGETS] + [(lower(func), "interpreter")]:
        out = mlcweb.nd.array(np.full_like(expected, -7))
        kernel = mlcweb.build(program, target=target, name="main")
        kernel(*(mlcweb.nd.array(x) for x in inputs), out)
        np.testing.assert_array_equal(out.numpy(), expected, target)
    if has_kernels:
        assert_kernels_give(func, inputs, expected)


@T.prim_func
def reverse(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        S[tx] = A[tx]
        B[tx] = S[63 - tx]


@T.prim_func
def reverse_launched(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), scope="shared.dyn")
    L = T.alloc_buffer((1,), scope="local")
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    L[0] = A[bx * 64 + tx]
    S[tx] = L[0]
    T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = S[63 - tx] + L[0] * T.float32(2)


def test_reversal_by_shared_memory():
    assert_gives(reverse, [RAMP], RAMP[::-1])
    assert_gives(reverse_launched, [RAMP], RAMP[::-1] + 2 * RAMP)


def test_a_barrier_stands_between_write_and_read():
    text = thread_sync(convert_blocks_to_loops(reverse)).script()
    body = [line.strip() for line in text.splitlines() if "[" in line or "sync" in line]
    assert body[-3:] == [
        "S[tx] = A[tx]",
        'T.tvm_storage_sync("shared")',
        "B[tx] = S[63 - tx]",
    ]


def test_an_explicit_barrier_orders_global_memory_too():
    @T.prim_func
    def exchange(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        W = T.alloc_buffer((64,))
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            W[tx] = A[tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[tx] = W[63 - tx]

    assert_gives(exchange, [RAMP], RAMP[::-1])


def test_no_barrier_where_each_thread_reads_its_own():
    @T.prim_func
    def own(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((128,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[tx * 2] = A[tx]
            B[tx] = S[tx * 2]

    assert "storage_sync" not in thread_sync(convert_blocks_to_loops(own)).script()
    assert_gives(own, [RAMP], RAMP)


def test_tree_reduction():
    @T.prim_func
    def tree(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        S = T.alloc_buffer((64,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[tx] = A[tx]
            for s in range(6):
                if tx < T.shift_right(32, s):
                    S[tx] = S[tx] + S[tx + T.shift_right(32, s)]
            if tx == 0:
                B[0] = S[0]

    assert_gives(tree, [RAMP], [np.float32(2016)])


def test_prefix_sum_with_a_local_value_across_barriers():
    @T.prim_func
    def scan(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), scope="shared")
        L = T.alloc_buffer((1,), scope="local")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[tx] = A[tx]
            for s in range(6):
                L[0] = S[tx]
                if tx >= T.shift_left(1, s):
                    L[0] = L[0] + S[tx - T.shift_left(1, s)]
                S[tx] = L[0]
            B[tx] = S[tx]

    assert_gives(scan, [RAMP], np.cumsum(RAMP))


def test_transposition_through_a_padded_tile():
    @T.prim_func
    def transpose(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        S = T.alloc_buffer((16, 17), scope="shared")
        for by in T.thread_binding(4, thread="blockIdx.y"):
            for bx in T.thread_binding(4, thread="blockIdx.x"):
                for ty in T.thread_binding(16, thread="threadIdx.y"):
                    for tx in T.thread_binding(16, thread="threadIdx.x"):
                        S[ty, tx] = A[by * 16 + ty, bx * 16 + tx]
                        B[bx * 16 + ty, by * 16 + tx] = S[tx, ty]

    assert_gives(transpose, [SQUARE], SQUARE.T)


def test_three_axes():
    @T.prim_func
    def turn(A: T.Buffer((4, 4, 4), "float32"), B: T.Buffer((4, 4, 4), "float32")):
        S = T.alloc_buffer((4, 4, 4), scope="shared")
        for tz in T.thread_binding(4, thread="threadIdx.z"):
            for ty in T.thread_binding(4, thread="threadIdx.y"):
                for tx in T.thread_binding(4, thread="threadIdx.x"):
                    S[tz, ty, tx] = A[tz, ty, tx]
                    B[tz, ty, tx] = S[tx, tz, ty]

    cube = RAMP.reshape(4, 4, 4)
    assert_gives(turn, [cube], cube.transpose(1, 2, 0))


def test_virtual_threads_share_memory():
    @T.prim_func
    def virtual(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), scope="shared")
        for vx in T.thread_binding(4, thread="vthread.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                S[vx * 16 + tx] = A[vx * 16 + tx]
                B[vx * 16 + tx] = S[63 - vx * 16 - tx]

    assert_gives(virtual, [RAMP], RAMP[::-1])


def test_a_name_lives_across_a_barrier():
    @T.prim_func
    def named(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[tx] = A[tx]
            x: T.float32 = S[63 - tx]
            S[tx] = x + T.float32(1)
            B[tx] = S[63 - tx] + x

    assert_gives(named, [RAMP], RAMP + 1 + RAMP[::-1])


def test_uniform_conditions_and_loops_hold_barriers():
    @T.prim_func
    def rounds(A: T.Buffer((64,), "float32"), n: T.int32, B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[tx] = A[tx]
            B[tx] = A[tx]
            for i in range(3):
                if i < n:
                    B[tx] = S[63 - tx] + T.float32(1)
                    S[tx] = B[tx]

    once, twice = RAMP[::-1] + 1, RAMP + 2
    for n, expected in ((0, RAMP), (1, once), (2, twice), (3, twice[::-1] + 1)):
        for target in TARGETS:
            out = mlcweb.nd.empty((64,))
            mlcweb.build(rounds, target=target, name="main")(mlcweb.nd.array(RAMP), n, out)
            np.testing.assert_array_equal(out.numpy(), expected)


def test_threads_reduce_together_before_they_read():
    @T.prim_func
    def add_sum(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
        S = T.alloc_buffer((4,), scope="shared")
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                for k in range(4):
                    with T.block("sum"):
                        vi = T.axis.spatial(4, bx)
                        vk = T.axis.reduce(64, k * 16 + tx)
                        with T.init():
                            S[vi] = 0.0
                        S[vi] = S[vi] + A[vi, vk]
                for j in range(4):
                    with T.block("add"):
                        vi = T.axis.spatial(4, bx)
                        vj = T.axis.spatial(64, j * 16 + tx)
                        B[vi, vj] = A[vi, vj] + S[vi]

    x = np.arange(256, dtype="float32").reshape(4, 64)
    assert_gives(add_sum, [x], x + x.sum(1, keepdims=True))


def test_rfactor_across_threads():
    @T.prim_func
    def total(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 64):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    sch = mlcweb.tir.Schedule(total)
    i, k = sch.get_loops("total")
    _, tx = sch.split(k, [None, 16])
    factored = sch.rfactor(tx, 0)
    sch.set_scope(factored, 0, "shared")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.get_loops("total")[-1], "threadIdx.x")
    sch.bind(sch.get_loops("total_rf")[0], "threadIdx.x")
    x = np.arange(256, dtype="float32").reshape(4, 64)
    assert_gives(sch.mod["main"], [x], x.sum(1), has_kernels=False)


def tiled_matmul(size, block, thread, depth, vectors):
    """The schedule of the course's chapter 6, cooperative fetch included."""
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer(({size}, {size}), "float32"), B: T.Buffer(({size}, {size}), "float32"),
         C: T.Buffer(({size}, {size}), "float32")):
    for i, j, k in T.grid({size}, {size}, {size}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
    )
    sch = mlcweb.tir.Schedule(func)
    c = sch.get_block("C")
    local = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    i0, i1, i2 = sch.split(i, [None, block // thread, thread])
    j0, j1, j2 = sch.split(j, [None, block // thread, thread])
    k0, k1 = sch.split(k, [None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    tx = sch.fuse(i1, j1)
    sch.bind(tx, "threadIdx.x")
    threads = (block // thread) ** 2
    for operand in (0, 1):
        copy = sch.cache_read(c, operand, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, lane, vector = sch.split(fused, [None, threads, vectors])
        sch.vectorize(vector)
        sch.bind(lane, "threadIdx.x")
    sch.decompose_reduction(c, k0)
    return sch.mod["main"]


def test_tiled_matmul_with_cooperative_fetch():
    func = tiled_matmul(32, 16, 4, 8, 2)
    rng = np.random.default_rng(5)
    a, b = rng.integers(-8, 8, (2, 32, 32)).astype("float32")
    assert_gives(func, [a, b], a @ b)
    # Each tile is fetched once for all threads, not once for each of them.
    text = lower(func).script()
    fetch = [line for line in text.splitlines() if line.strip().startswith("A_shared[")]
    assert len(fetch) == 1
    assert "thread=" not in text.split("k_0", 1)[1]


def test_a_tile_that_all_threads_fetch_is_fetched_by_one():
    @T.prim_func
    def window(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((66,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            for j in range(66):
                S[j] = A[j]
            B[tx] = S[tx] + S[tx + 2]

    a = np.arange(66, dtype="float32")
    assert_gives(window, [a], a[:-2] + a[2:])
    first = lower(window).script().split("S[", 1)[0]
    assert "range(66)" in first
    assert "range(64)" not in first


def test_all_threads_add_up_the_same_sum():
    @T.prim_func
    def same_sum(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((1,), scope="shared")
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            S[0] = T.float32(0)
            for k in range(64):
                S[0] = S[0] + A[k]
            B[tx] = S[0] - A[tx]

    assert_gives(same_sum, [RAMP], 2016 - RAMP)


def test_each_thread_has_the_sum_that_it_reads_where_the_last_ones_do_nothing():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((7,), "float32")):
        total = T.alloc_buffer((4,))
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for i in range(2):
                for k in range(8):
                    with T.block("total"):
                        vi = T.axis.spatial(4, 3)
                        vk = T.axis.reduce(8, k)
                        T.where(tx * 2 + i < 7)
                        with T.init():
                            total[vi] = T.float32(0)
                        total[vi] = total[vi] + A[vk]
                with T.block("B"):
                    v = T.axis.spatial(7, tx * 2 + i)
                    T.where(tx * 2 + i < 7)
                    B[v] = total[3] * T.Cast("float32", v)

    assert_gives(func, [RAMP[:8]], 28 * RAMP[:7])


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([(16, 1), (8, 2), (4, 4)]),
    st.lists(st.tuples(st.sampled_from([1, 3, 5, 7, -1]), st.integers(0, 15)), min_size=2,
             max_size=2),
    st.integers(1, 3),
)  # fmt: skip
def test_random_affine_exchanges(shape, maps, rounds):
    """Each round stores at f(t) and loads at g(t), which are permutations of the threads."""
    (f, f0), (g, g0) = maps
    x, y = shape
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    S = T.alloc_buffer((16,), "int32", scope="shared")
    L = T.alloc_buffer((1,), "int32", scope="local")
    for ty in T.thread_binding({y}, thread="threadIdx.y"):
        for tx in T.thread_binding({x}, thread="threadIdx.x"):
            L[0] = A[ty * {x} + tx]
            for r in range({rounds}):
                S[((ty * {x} + tx) * {f} + {f0}) % 16] = L[0] * 3 + r
                L[0] = S[((ty * {x} + tx) * {g} + {g0}) % 16] + L[0]
            B[ty * {x} + tx] = L[0]
"""
    )
    a = np.arange(16, dtype="int32") ** 2
    threads, local, shared = np.arange(16), a.copy(), np.zeros(16, "int32")
    for number in range(rounds):
        shared[(threads * f + f0) % 16] = local * 3 + number
        local = shared[(threads * g + g0) % 16] + local
    assert_gives(func, [a], local)


def refused(source):
    with pytest.raises(TVMError) as caught:
        lower(from_source(source))
    return caught.value.message


HEADER = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    S = T.alloc_buffer((64,), "int32", scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
"""


def test_a_histogram_without_atomics_is_refused():
    message = refused(
        HEADER
        + """
        S[tx] = 0
        S[A[tx]] = S[A[tx]] + 1
        B[tx] = S[tx]
"""
    )
    assert 'reads an element of "S" that another may write in the same statement' in message


def test_an_exchange_in_one_statement_is_refused():
    message = refused(HEADER + "        S[tx] = A[tx]\n        S[tx] = S[63 - tx]\n")
    assert "no barrier can stand between the two" in message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "        if tx < 32:\n            S[tx] = A[tx]\n            B[tx] = S[31 - tx]\n",
            'the condition "tx < 32" depends on threadIdx.x',
        ),
        (
            "        for i in range(tx):\n            S[tx] = A[i]\n"
            '            T.evaluate(T.tvm_storage_sync("shared"))\n',
            'the number of iterations of loop "i" depends on threadIdx.x',
        ),
        (
            "        if A[tx] > 0:\n            S[tx] = 1\n        else:\n"
            "            B[tx] = S[63 - tx]\n",
            'the condition "A[tx] > 0" depends on threadIdx.x',
        ),
    ],
)
def test_barriers_in_divergent_flow_are_refused(body, reason):
    assert reason in refused(HEADER + body)


def test_one_axis_has_one_extent():
    message = refused(
        HEADER
        + """
        for t2 in T.thread_binding(32, thread="threadIdx.x"):
            S[t2] = A[t2]
        B[tx] = S[tx]
"""
    )
    assert '"threadIdx.x" has extent 64 at loop "tx" and 32 at loop "t2"' in message


def test_a_fetched_tile_is_shared_and_no_larger_than_one_step_needs():
    kernel = lower(tiled_matmul(64, 16, 4, 8, 4))
    tiles = [
        part.buffer.shape[0].value
        for part in walk(kernel.body)
        if isinstance(part, S.AllocBuffer) and part.buffer.scope() == "shared"
    ]
    assert tiles == [16 * 8, 8 * 16]


CONDITIONAL_BARRIER = """
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32"), n: T.int32):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for k in range(4):
            S = T.decl_buffer((32,), "float32", scope="shared")
            S[tx] = A[k, tx]
            {condition}:
                T.tvm_storage_sync("shared")
                T.evaluate(0)
            B[k, tx] = S[31 - tx]
"""


@pytest.mark.parametrize("condition", ["if k < n", "for i in range(n)", "while n < 0"])
@pytest.mark.parametrize("n", [0, 2])
def test_a_barrier_that_may_not_run_is_none(condition, n):
    func = from_source(CONDITIONAL_BARRIER.format(condition=condition))
    x = np.random.default_rng(0).random((4, 32), "float32")
    for target in ("simulated", "wasm"):
        arrays = [mlcweb.nd.array(x), mlcweb.nd.array(np.zeros_like(x))]
        mlcweb.build(func, target=target)(*arrays, n)
        np.testing.assert_array_equal(arrays[1].numpy(), x[:, ::-1])


def test_halves_of_a_buffer_need_one_barrier_in_an_iteration():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((9, 32), "float32"), B: T.Buffer((9, 32), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        S = T.alloc_buffer((2, 32), "float32", scope="shared")
        S[0, tx] = A[0, tx]
        for k in range(8):
            T.tvm_storage_sync("shared")
            S[(k + 1) % 2, tx] = A[k + 1, tx]
            B[k, tx] = S[k % 2, 31 - tx]
"""
    )
    text = mlcweb.build(func, target="cuda").imported_modules[0].get_source()
    assert text.count("__syncthreads();") == 1
    x = np.random.default_rng(0).random((9, 32), "float32")
    arrays = [mlcweb.nd.array(x), mlcweb.nd.array(np.zeros_like(x))]
    mlcweb.build(func, target="simulated")(*arrays)
    np.testing.assert_array_equal(arrays[1].numpy()[:8], x[:8, ::-1])


OWN_THROUGH_TWO_LOOPS = """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), O: T.Buffer((4, 64), "float32")):
    own = T.alloc_buffer((4,), scope="local")
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(16, "threadIdx.x"):
            for i in range(4):
                with T.block("double"):
                    b = T.axis.spatial(4, bx)
                    h = T.axis.spatial(64, i * 16 + tx)
                    own[h // 16] = A[b, h] * T.float32(2)
        for i in range(4):
            for tx in T.thread_binding(16, "threadIdx.x"):
                with T.block("store"):
                    b = T.axis.spatial(4, bx)
                    h = T.axis.spatial(64, i * 16 + tx)
                    O[b, h] = own[h // 16] + T.float32(1)
"""


@pytest.mark.parametrize("target", ["interpreter", "wasm", "cuda"])
def test_local_memory_is_a_threads_own_through_several_loops(target):
    lib = mlcweb.build(from_source(OWN_THROUGH_TWO_LOOPS), target=target)
    device = mlcweb.device(target) if target == "cuda" else mlcweb.cpu()
    a = np.random.default_rng(0).random((4, 64)).astype("float32")
    out = mlcweb.nd.empty((4, 64), device=device)
    lib["main"](mlcweb.nd.array(a, device), out)
    np.testing.assert_array_equal(out.numpy(), a * 2 + 1)


FILLED_BY_NO_THREAD = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), O: T.Buffer((8,), "int32")):
    kept = T.alloc_buffer((8,), "int32", scope="local")
    for i in range(8):
        with T.block("keep"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] + 1
            kept[v] = A[v]
    for tx in T.thread_binding(8, "threadIdx.x"):
        with T.block("first"):
            v = T.axis.spatial(8, tx)
            O[v] = kept[7 - v]
    for tx in T.thread_binding(8, "threadIdx.x"):
        with T.block("second"):
            v = T.axis.spatial(8, tx)
            O[v] = O[v] + kept[v]
"""


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
def test_what_no_thread_does_is_done_once(target):
    """Beside loops over threads that use one local buffer."""
    a, out = mlcweb.nd.array(np.arange(8, dtype="int32")), mlcweb.nd.empty((8,), "int32")
    mlcweb.build(from_source(FILLED_BY_NO_THREAD), target=target)["main"](a, out)
    expected = np.arange(1, 9)
    np.testing.assert_array_equal(a.numpy(), expected)
    np.testing.assert_array_equal(out.numpy(), expected[::-1] + expected)
