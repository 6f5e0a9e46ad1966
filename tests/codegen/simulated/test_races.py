"""The simulated GPU stops where threads race, and only there; it names both threads and lines."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.codegen.simulated.simulation import BarrierDivergence, DataRace, UninitializedRead
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from tests.lower.test_threads import tiled_matmul

RAMP = np.arange(64, dtype="float32")
OWN_BARRIERS = {"disabled_pass": ["tir.ThreadSync"]}


def run(func, *arrays, own_barriers=True):
    """What the last array holds after a function ran with the barriers that it has itself."""
    arrays = [mlcweb.nd.array(np.asarray(array)) for array in arrays]
    with mlcweb.transform.PassContext(**(OWN_BARRIERS if own_barriers else {})):
        kernel = mlcweb.build(func, target="simulated", name="main")
    kernel(*arrays)
    return arrays[-1].numpy()


@T.prim_func
def reverse(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        S[tx] = A[tx]
        B[tx] = S[63 - tx]


def test_a_read_of_what_another_thread_writes_names_threads_and_lines():
    with pytest.raises(DataRace) as raised:
        run(reverse, RAMP, RAMP)
    message = raised.value.message
    assert message.startswith("Threads race for S[32]: thread (threadIdx.x=31) reads it in line ")
    assert "`B[tx] = S[63 - tx]`, and thread (threadIdx.x=32) writes it in line" in message
    assert 'Put T.evaluate(T.tvm_storage_sync("shared")) between them' in message
    first, second = map(int, re.findall(r"in line (\d+)", message))
    assert first == second + 1 and raised.value.span is not None
    assert raised.value.span.line == second


def test_barriers_that_shared_memory_needs_are_put_in_unless_their_pass_is_disabled():
    np.testing.assert_array_equal(run(reverse, RAMP, RAMP, own_barriers=False), RAMP[::-1])


def test_two_threads_that_write_different_values():
    @T.prim_func
    def last(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            if A[tx] > T.float32(7):
                B[0] = A[tx]

    with pytest.raises(DataRace) as raised:
        run(last, RAMP, RAMP[:1])
    assert "thread (threadIdx.x=8) writes it in line" in raised.value.message
    assert "thread (threadIdx.x=9) writes it in line" in raised.value.message
    assert "first 8.0, then 9.0" in raised.value.message
    # One writer is no race, and neither are many of one value.
    assert run(last, np.where(RAMP == 9, RAMP, 0), RAMP[:1])[0] == 9
    assert run(last, np.full(64, 9, "float32"), RAMP[:1])[0] == 9


SCATTER = """
@T.prim_func
def scatter(P: T.Buffer((64,), "int32"), A: T.Buffer((64,), "float32"),
            B: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 16)
    B[P[bx * 16 + tx]] = A[bx * 16 + tx]
"""


def test_a_scatter_races_where_its_indices_repeat_which_only_a_run_can_tell():
    scatter = from_source(SCATTER)
    order = np.random.default_rng(1).permutation(64).astype("int32")
    expected = np.empty(64, "float32")
    expected[order] = RAMP
    np.testing.assert_array_equal(run(scatter, order, RAMP, RAMP), expected)
    order[50] = order[2]
    with pytest.raises(DataRace, match=rf"Threads race for B\[{order[2]}\]") as raised:
        run(scatter, order, RAMP, RAMP)
    blocks = re.findall(r"\(threadIdx.x=\d+\) of block \(blockIdx.x=(\d)\)", raised.value.message)
    assert blocks == ["0", "3"]
    assert "blocks do not wait for each other" in raised.value.message


def test_a_block_that_reads_what_another_has_written():
    @T.prim_func
    def flip(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        W = T.alloc_buffer((64,))
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                W[bx * 16 + tx] = A[bx * 16 + tx]
                T.evaluate(T.tvm_storage_sync("shared"))
                B[bx * 16 + tx] = W[63 - (bx * 16 + tx)]

    for own_barriers in (False, True):
        with pytest.raises(DataRace, match="blocks do not wait for each other"):
            run(flip, RAMP, RAMP, own_barriers=own_barriers)


def test_two_kernels_wait_for_each_other():
    @T.prim_func
    def flip(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        W = T.alloc_buffer((64,))
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                W[bx * 16 + tx] = A[bx * 16 + tx]
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                B[bx * 16 + tx] = W[63 - (bx * 16 + tx)]

    np.testing.assert_array_equal(run(flip, RAMP, RAMP), RAMP[::-1])


@pytest.mark.parametrize("own_barriers", [True, False])
def test_a_barrier_that_not_all_threads_reach(own_barriers):
    @T.prim_func
    def half(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        bx = T.launch_thread("blockIdx.x", 1)
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.alloc_buffer((64,), scope="shared")
        S[tx] = A[bx * 64 + tx]
        if tx < 32:
            T.evaluate(T.tvm_storage_sync("shared"))
            B[tx] = S[63 - tx]

    with pytest.raises(BarrierDivergence) as raised:
        run(half, RAMP, RAMP, own_barriers=own_barriers)
    message = raised.value.message
    assert "Thread (threadIdx.x=0) of block (blockIdx.x=0) waits at the barrier in line" in message
    assert "and thread (threadIdx.x=32) of block (blockIdx.x=0) ends" in message


def test_threads_that_wait_at_different_barriers():
    @T.prim_func
    def either(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            if A[tx] > T.float32(1):
                T.evaluate(T.tvm_storage_sync("shared"))
            else:
                T.evaluate(T.tvm_storage_sync("shared"))
            B[tx] = A[tx]

    with pytest.raises(BarrierDivergence, match="waits at another one, in line"):
        run(either, RAMP[:4], RAMP[:4])
    # All threads take one branch: nothing is wrong, and no analysis could have told.
    np.testing.assert_array_equal(run(either, RAMP[4:8], RAMP[:4]), RAMP[4:8])


def test_threads_that_wait_a_different_number_of_times():
    @T.prim_func
    def rounds(N: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for _i in range(N[tx]):
                T.evaluate(T.tvm_storage_sync("shared"))
            B[tx] = N[tx]

    np.testing.assert_array_equal(run(rounds, np.full(4, 3, "int32"), np.zeros(4, "int32")), 3)
    with pytest.raises(BarrierDivergence, match=r"and thread \(threadIdx.x=2\) ends"):
        run(rounds, np.array([3, 3, 2, 3], "int32"), np.zeros(4, "int32"))


@pytest.mark.parametrize("place", ["A", "S", "L"])
def test_an_index_out_of_bounds_names_the_thread(place):
    index = {name: f"tx + {int(name == place)}" for name in "ASL"}
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        L = T.alloc_buffer((64,), scope="local")
        S[{index["S"]}] = A[{index["A"]}]
        L[{index["L"]}] = S[tx]
        B[tx] = A[tx]
""")
    with pytest.raises(IndexOutOfBounds) as raised:
        run(func, RAMP, RAMP, own_barriers=False)
    assert raised.value.message.startswith("Thread (threadIdx.x=63): ")
    assert f"{place}[64] is out of bounds" in raised.value.message
    line, text = (
        (8, "L[tx + 1] = S[tx]") if place == "L" else (7, f"S[{index['S']}] = A[{index['A']}]")
    )
    assert raised.value.message.endswith(f", in line {line}, `{text}`")
    access = "A[tx + 1]" if place == "A" else text
    _, *excerpt = str(raised.value).splitlines()[1:]
    start = excerpt[0].index(access)
    assert excerpt[0].startswith(f"{line:>5} |")
    assert excerpt[1] == f"      |{' ' * (start - 7)}{'^' * len(access)}"


def test_what_follows_from_a_missing_barrier_is_not_what_is_told():
    """An index that comes out of a race, or a race behind a barrier that some threads miss."""

    @T.prim_func
    def chain(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        S = T.alloc_buffer((4,), "int32", scope="shared")
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            S[tx] = A[tx]
            B[tx] = A[S[3 - tx]]

    with pytest.raises(DataRace, match=r"race for S\["):
        run(chain, np.arange(4, dtype="int32"), np.zeros(4, "int32"))


@pytest.mark.parametrize("own_barriers", [True, False])
def test_a_tree_of_sums_with_barriers_of_its_own(own_barriers):
    def tree(barrier):
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.alloc_buffer((64,), scope="shared")
    S[tx] = A[bx * 64 + tx]
    for step in range(6):
        {barrier}
        if tx < T.shift_left(1, 5 - step):
            S[tx] = S[tx] + S[tx + T.shift_left(1, 5 - step)]
    if tx == 0:
        B[0] = S[0]
""")

    whole = tree('T.evaluate(T.tvm_storage_sync("shared"))')
    assert run(whole, RAMP, RAMP[:1], own_barriers=own_barriers)[0] == RAMP.sum()
    if own_barriers:
        with pytest.raises(DataRace, match=r"race for S\["):
            run(tree("T.evaluate(0)"), RAMP, RAMP[:1])


HISTOGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), H: T.Buffer((4,), "int32")):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            {update}
"""


ADD = 'T.evaluate(T.atomic_add("int32", T.address_of(H[A[bx * 16 + tx]]), 1))'


@pytest.mark.parametrize("own_barriers", [True, False])
def test_atomic_updates_do_not_race_and_others_do(own_barriers):
    data = (np.arange(64) ** 2 % 7 % 4).astype("int32")
    counts = np.bincount(data, minlength=4)
    atomic = from_source(HISTOGRAM.format(update=ADD))
    np.testing.assert_array_equal(
        run(atomic, data, np.zeros(4, "int32"), own_barriers=own_barriers), counts
    )
    plain = from_source(HISTOGRAM.format(update="H[A[bx * 16 + tx]] = H[A[bx * 16 + tx]] + 1"))
    with pytest.raises(DataRace, match=r"race for H\[.*keep the value in a local buffer"):
        run(plain, data, np.zeros(4, "int32"), own_barriers=own_barriers)


def test_an_atomic_update_races_with_a_plain_read():
    func = from_source(HISTOGRAM.format(update=ADD + "\n            H[bx] = 2"))
    with pytest.raises(DataRace, match=r"race for H\[1\]"):
        run(func, np.ones(64, "int32"), np.zeros(4, "int32"))
    func = from_source(HISTOGRAM.format(update=ADD + "\n            A[bx * 16 + tx] = H[1]"))
    with pytest.raises(DataRace, match=r"reads it in line .* atomically updates it in line"):
        run(func, np.ones(64, "int32"), np.zeros(4, "int32"))


@pytest.mark.parametrize("own_barriers", [True, False])
def test_a_reduction_across_threads_brings_its_barriers_along(own_barriers):
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
    sch.bind(i, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    x = np.arange(256, dtype="float32").reshape(4, 64)
    out = run(sch.mod["main"], x, np.zeros(4, "float32"), own_barriers=own_barriers)
    np.testing.assert_array_equal(out, x.sum(1))


def test_the_matrix_product_of_the_course_with_and_without_its_barriers():
    func = tiled_matmul(16, 8, 2, 4, 2)
    rng = np.random.default_rng(5)
    a, b = rng.random((16, 16), "float32"), rng.random((16, 16), "float32")
    np.testing.assert_allclose(run(func, a, b, a * 0, own_barriers=False), a @ b, rtol=1e-5)
    with pytest.raises(DataRace, match=r"race for [AB]_shared\["):
        run(func, a, b, a * 0)


def test_a_block_has_as_many_threads_as_gpus_have_at_most():
    func = from_source(HISTOGRAM.format(update="H[0] = 1").replace("(16,", "(1025,"))
    with pytest.raises(TVMError, match=r"1025 \(threadIdx.x\) threads, and GPUs have 1024 at most"):
        run(func, np.zeros(64, "int32"), np.zeros(4, "int32"))


def test_a_barrier_below_more_loops_than_python_nests():
    loops = "".join(f"{'    ' * (n + 2)}for i{n} in range(1):\n" for n in range(20))
    end = "    " * 22
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
{loops}{end}B[tx] = A[tx]
{end}T.evaluate(T.tvm_storage_sync("shared"))
{end}A[3 - tx] = B[tx]
""")
    arrays = RAMP[:4], RAMP[:4] * 0
    np.testing.assert_array_equal(run(func, *arrays), RAMP[:4])


OWN_MEMORY = {
    "local": """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for t in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("all"):
            vt = T.axis.spatial(16, t)
            S = T.alloc_buffer((16,), scope="local")
            S[vt] = A[vt]
            B[vt] = S[15 - vt]
""",
    "warp": """
@T.prim_func
def main(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    S = T.alloc_buffer((2, 32), scope="warp")
    for y in T.thread_binding(2, thread="threadIdx.y"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S[y, t] = A[y, t]
            B[y, t] = S[1 - y, t]
""",
    "halo": """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((34,), scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S[t] = A[b * 32 + t]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[b * 32 + t] = S[t] + S[t + 2]
""",
}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("local", r"Thread \(threadIdx.x=0\) reads S\[15\] in line \d+, `B\[vt\] = S\[15 - vt\]`, "
         r"and thread \(threadIdx.x=15\) writes its own in line \d+, `S\[vt\] = A\[vt\]`: each "
         'thread has a "S" of its own. Use "shared" memory'),
        ("warp", r"Thread \(threadIdx.y=0, threadIdx.x=0\) reads S\[0, 1, 0\] in line \d+, .* "
         'which no thread of its warp has written before.*Each warp has a "S" of its own'),
        ("halo", r"Thread \(threadIdx.x=30\) of block \(blockIdx.x=0\) reads S\[32\] in line \d+, "
         "`B.*, which no thread of its block has written before. Write it first"),
    ],
)  # fmt: skip
def test_a_read_of_what_nobody_has_written(name, message):
    func = from_source(OWN_MEMORY[name])
    arrays = [np.zeros([int(n) for n in b.shape], b.dtype) for b in func.parameter_buffers]
    with pytest.raises(UninitializedRead, match=message) as raised:
        run(func, *arrays)
    assert raised.value.span is not None
    # Once more: nothing is left of the call before.
    with pytest.raises(UninitializedRead, match=message):
        run(func, *arrays)


@pytest.mark.parametrize("own_barriers", [True, False])
def test_what_is_never_read_need_not_be_written(own_barriers):
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((48,), "float32"), B: T.Buffer((48,), "float32")):
    S = T.alloc_buffer((20,), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            if b * 16 + t < 48:
                S[t] = A[b * 16 + t]
            T.evaluate(T.tvm_storage_sync("shared"))
            if b * 16 + t < 48:
                B[b * 16 + t] = T.if_then_else(t < 15, S[t + 1], T.float32(0))
"""
    )
    a = np.arange(48, dtype="float32")
    expected = np.where(np.arange(48) % 16 < 15, a + 1, 0)
    np.testing.assert_array_equal(run(func, a, a, own_barriers=own_barriers), expected)


def test_slices_that_threads_read_and_write_as_vectors():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("C"):
                T.reads(A[0:256])
                T.writes(C[0:256])
                v = T.alloc_buffer((4,), "float32", scope="local")
                v[0:4] = A[bx * 128 + tx * 4 : bx * 128 + tx * 4 + 4]
                C[bx * 128 + tx * 4 : bx * 128 + tx * 4 + 4] = v[0:4] * T.Broadcast(T.float32(3), 4)
""")
    a = np.arange(256, dtype="float32")
    c = mlcweb.nd.array(np.zeros_like(a))
    mlcweb.build(func, target="simulated")(mlcweb.nd.array(a), c)
    np.testing.assert_array_equal(c.numpy(), 3 * a)
