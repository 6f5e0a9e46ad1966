"""Transactions and bank conflicts, as NVIDIA's guides count them by hand."""

import itertools
import random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.codegen.numpy.evaluate import evaluate
from mlcweb.playground.gpu import counts as counting
from mlcweb.playground.gpu.counts import count, lane_addresses
from mlcweb.playground.gpu.memory import INACTIVE, units
from mlcweb.playground.gpu.names import accesses
from mlcweb.playground.gpu.profile import KernelProfile, profiles
from mlcweb.playground.gpu.sentences import FRAGMENTS, describe
from mlcweb.playground.source_lines import listing
from mlcweb.script import from_source
from mlcweb.tensor_intrin.tensor_cores import get_wmma_intrin_group
from tests.codegen.gpu.test_tensor_cores import product, schedule
from tests.playground.gpu.kernels import costs, kernel


@pytest.mark.parametrize(
    ("index", "sectors"),
    [
        ("x", 4),
        ("x + 1", 5),
        ("x + 8", 4),
        ("x * 2", 8),
        ("x * 32", 32),
        ("31 - x", 4),
        ("0", 1),
        ("x // 2", 2),
        ("x // 8 * 64", 4),
    ],
)
def test_sectors_of_a_warp_that_reads_float32(index: str, sectors: int) -> None:
    load = costs(kernel(f"B[x] = A[{index}]"), "A")
    assert (load.least, load.most, load.sectors, load.requests) == (sectors, sectors, sectors, 1)
    assert load.exact


@pytest.mark.parametrize(
    ("dtype", "sectors"), [("float16", 2), ("int8", 1), ("float32", 4), ("float64", 8)]
)
def test_sectors_by_the_size_of_elements(dtype: str, sectors: int) -> None:
    buffers = f'A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}")'
    profile = kernel("B[x] = A[x]", buffers=buffers)
    assert costs(profile, "A").sectors == costs(profile, "B", "store").sectors == sectors


def test_a_vector_of_four_is_one_access() -> None:
    profile = kernel("for v in T.vectorized(4):\n    B[x * 4 + v] = A[x * 4 + v]")
    load = costs(profile, "A")
    assert (load.requests, load.sectors, load.ideal) == (1, 16, 16)
    # Not aligned: four accesses of one element each, 16 bytes apart; the last begins at byte 16.
    profile = kernel("for v in T.vectorized(4):\n    B[x * 4 + v] = A[x * 4 + v + 1]")
    load = costs(profile, "A")
    assert (load.requests, load.least, load.most, load.sectors) == (4, 16, 17, 65)


def test_lines_of_rows_that_do_not_begin_at_a_sector() -> None:
    """A row of 33 elements: row r begins at byte 132 r, and is aligned for one r in eight."""
    load = costs(kernel("for r in range(16):\n    B[r * 33 + x] = A[r * 33 + x]"), "A")
    assert (load.requests, load.least, load.most) == (16, 4, 5)
    assert load.sectors == 2 * 4 + 14 * 5
    assert load.ideal == 16 * 4


def test_a_warp_that_lies_across_rows_of_threads() -> None:
    """Blocks of 8x4 threads: a warp reads four rows of 8 elements, each one sector."""
    load = costs(kernel("B[y * 128 + x] = A[y * 128 + x]", threads="y=4 x=8"), "A")
    assert (load.requests, load.sectors) == (1, 4)


def test_lanes_that_do_not_exist_or_take_no_part_move_nothing() -> None:
    load = costs(kernel("B[x] = A[x]", threads="x=40"), "A")
    assert (load.requests, load.active, load.sectors, load.least) == (2, 40, 5, 1)
    load = costs(kernel("if x < 8:\n    B[x] = A[x]", threads="x=64"), "A")
    assert (load.requests, load.active, load.sectors) == (1, 8, 1)
    guarded = "if b * 32 + x < 1000:\n    B[b * 32 + x] = A[b * 32 + x]"
    load = costs(kernel(guarded, blocks=32), "A")
    assert (load.requests, load.active, load.sectors) == (32, 1000, 125)


def test_a_padded_load_is_made_where_its_condition_holds() -> None:
    load = costs(kernel("B[x] = T.if_then_else(x > 0, A[x - 1], T.float32(0))"), "A")
    assert (load.active, load.sectors) == (31, 4)


TRANSPOSE = """
S = T.alloc_buffer((32, 32), strides=({width}, 1), scope="shared")
for r in range(4):
    S[r * 8 + y, x] = A[(r * 8 + y) * 1024 + b * 32 + x]
for r in range(4):
    B[(b * 32 + r * 8 + y) * 64 + x] = S[x, r * 8 + y]
"""


@pytest.mark.parametrize(("width", "degree"), [(32, 32), (33, 1), (34, 2), (36, 4)])
def test_a_transpose_through_a_tile(width: int, degree: int) -> None:
    profile = kernel(TRANSPOSE.format(width=width), threads="y=8 x=32", blocks=32)
    load, store = costs(profile, "S"), costs(profile, "S", "store")
    assert (load.least, load.most) == (degree, degree)
    assert (load.passes, load.ideal) == (32 * 32 * degree, 32 * 32)
    assert (store.most, store.passes) == (1, 32 * 32)
    assert costs(profile, "A").sectors == costs(profile, "B", "store").sectors == 32 * 32 * 4
    assert [step.kind for step in profile.parts.steps] == ["phase", "barrier", "phase"]


@pytest.mark.parametrize(
    ("dtype", "index", "degree", "passes"),
    [
        ("float32", "x", 1, 1),
        ("float32", "7", 1, 1),
        ("float32", "x % 2", 1, 1),
        ("float32", "x * 2", 2, 2),
        ("float32", "x * 3", 1, 1),
        ("float32", "x * 32", 32, 32),
        ("float16", "x", 1, 1),
        ("float16", "x * 2", 1, 1),
        ("float16", "x * 64", 32, 32),
        ("int8", "x * 4", 1, 1),
        ("float64", "x", 1, 2),
        ("float64", "x * 2", 2, 4),
        ("float64", "x * 16", 16, 32),
    ],
)
def test_banks(dtype: str, index: str, degree: int, passes: int) -> None:
    """Words of 4 bytes in 32 banks; lanes that read one word share it."""
    body = (
        f"S = T.alloc_buffer((2048,), '{dtype}', scope='shared')\n"
        "for r in range(64):\n    S[r * 32 + x] = A[x]\n"
        f"B[x] = S[{index}]"
    )
    buffers = f'A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}")'
    load = costs(kernel(body, buffers=buffers), "S")
    assert (load.most, load.passes) == (degree, passes)


def test_vectors_from_shared_memory_are_served_by_quarters_of_a_warp() -> None:
    body = (
        "S = T.alloc_buffer((128,), scope='shared')\n"
        "for v in T.vectorized(4):\n    S[x * 4 + v] = A[x * 4 + v]\n"
        "for v in T.vectorized(4):\n    B[x * 4 + v] = S[x * 4 + v]"
    )
    load = costs(kernel(body), "S")
    assert (load.requests, load.most, load.passes, load.ideal) == (1, 1, 4, 4)


def test_addresses_that_depend_on_data_are_not_counted() -> None:
    buffers = (
        'A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((64,), "float32")'
    )
    profile = kernel("B[x] = A[I[x]]", buffers=buffers)
    by_name = dict(zip((s.buffer.name for s in profile.sites), profile.counts, strict=True))
    assert by_name["A"] is None
    assert by_name["I"] is not None and by_name["I"].sectors == 4
    (site,) = (site for site in profile.sites if site.buffer.name == "A")
    assert lane_addresses(site, profile.launch, 0) is None


def test_a_loop_that_goes_as_far_as_the_block_says() -> None:
    """Block b makes b + 1 iterations: 36 in all."""
    load = costs(kernel("for k in range(b + 1):\n    B[x] = A[k * 32 + x]", blocks=8), "A")
    assert (load.requests, load.sectors) == (36, 36 * 4)


def test_a_sample_where_too_many_values_hang_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_ADDRESSES", 32 * 64)
    body = "for k in range(1024):\n    if (b + k + x) % 2 == 0:\n        B[x] = A[k * 32 + x]"
    load = costs(kernel(body, blocks=32), "A")
    assert not load.exact
    assert load.requests == 32 * 1024
    assert load.sectors == 32 * 1024 * 4


def test_large_launches_are_counted_exactly() -> None:
    body = (
        "for k in range(4096):\n"
        "    B[b * 256 + y * 16 + x] = A[b % 64 * 1024 + y * 1024 + k] + A[k * 1024 + b // 64 + x]"
    )
    buffers = 'A: T.Buffer((8388608,), "float32"), B: T.Buffer((1048576,), "float32")'
    profile = kernel(body, threads="y=16 x=16", blocks=4096, buffers=buffers)
    assert all(counts is not None and counts.exact for counts in profile.counts)
    assert [counts.requests for counts in profile.counts if counts] == [8 * 4096 * 4096] * 3
    # Two rows of threads read one element each, 4 KiB apart.
    assert profile.counts[0] is not None and profile.counts[0].sectors == 2 * 8 * 4096 * 4096


def test_counts_agree_with_a_walk_through_every_thread() -> None:
    """Random sums of terms, with conditions and divisions, address by address."""
    rng = random.Random(7)
    pieces = ["x", "y", "b", "k", "m"]
    for _ in range(25):
        terms = [f"{name} * {rng.choice([0, 1, 2, 3, 4, 8, 33, 36])}" for name in pieces]
        together = f"({' + '.join(rng.sample(pieces, 2))})"
        division = f"{rng.choice(['//', '%'])} {rng.choice([2, 3, 8])}"
        terms.append(f"{together} {division} * {rng.choice([1, 5, 32])}")
        condition = f"{' + '.join(rng.sample(pieces, 2))} < {rng.choice([2, 5, 9, 100])}"
        body = (
            f"for k, m in T.grid(5, 3):\n    if {condition}:\n        B[x] = A[{' + '.join(terms)}]"
        )
        profile = kernel(body, threads="y=3 x=16", blocks=4)
        _assert_as_walked(profile)


def _assert_as_walked(profile: KernelProfile) -> None:
    for site in profile.sites:
        launch = profile.launch
        found = count(site, launch)
        assert found is not None and found.exact
        requests = sectors = active = 0
        loops = {loop.var: range(loop.low, loop.low + loop.extent) for loop in site.loops}
        loops |= {var: range(axis.extent) for var, axis in launch.axes.items()}
        for point in itertools.product(*loops.values()):
            values = dict(zip(loops, map(np.int64, point), strict=True))
            values |= {var: value[0] for var, value in launch.thread_values.items()}
            shape = (launch.warps, 32)
            index = np.broadcast_to(evaluate(site.index, values), shape)
            taken = launch.exists.copy()
            for condition in site.conditions:
                taken &= np.broadcast_to(evaluate(condition, values), shape)
            for warp in range(launch.warps):
                mine = index[warp][taken[warp]] * 4
                requests += bool(len(mine))
                active += len(mine)
                sectors += len(set((mine // 32).tolist()))
        assert (found.requests, found.active, found.sectors) == (requests, active, sectors)


@pytest.mark.parametrize(("stride", "passes"), [(16, 8), (24, 4), (32, 16), (40, 4), (64, 32)])
def test_rows_that_ldmatrix_takes(stride: int, passes: int) -> None:
    """Of each of four matrices eight lanes tell a row of 16 bytes; eight rows are one pass where
    they are in different banks."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((16, {stride}), "float16"), B: T.Buffer((32, 8), "float16")):
    for x in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(A[0:16, 0:{stride}])
            T.writes(B[0:32, 0:8])
            S = T.alloc_buffer((16, {stride}), "float16", scope="shared")
            R = T.alloc_buffer((8,), "float16", scope="local")
            for i in range({stride // 2}):
                S[x // 2, x % 2 * {stride // 2} + i] = A[x // 2, x % 2 * {stride // 2} + i]
            T.ptx_ldmatrix(False, 4, ".b16", R.data, 0, S.data,
                {stride} * (x % 16) + 8 * (x // 16), dtype="float16")
            for i in range(8):
                B[x, i] = R[i]
"""
    [profile] = profiles(from_source(text), "main")
    found = costs(profile, "S")
    assert (found.requests, found.passes, found.ideal) == (1, passes, 4)


def test_the_lanes_of_a_warp() -> None:
    profile = kernel("if x % 2 == 0:\n    B[x] = A[x * 2 + 1]", threads="x=48")
    site = profile.sites[0]
    assert lane_addresses(site, profile.launch, 0) == [
        None if lane % 2 else 8 * lane + 4 for lane in range(32)
    ]
    second = lane_addresses(site, profile.launch, 1)
    assert second is not None and second[16:] == [None] * 16 and second[0] == 260


def test_addresses_count_in_64_bits_whatever_numpy_counts_in() -> None:
    """In a browser NumPy's integers have 32 bits unless told otherwise."""
    row = np.array([[4 * lane for lane in range(32)]], np.int32)
    assert units(row, 32).tolist() == [4]
    half = np.where(np.arange(32) < 16, row, INACTIVE)
    assert units(half, 32).tolist() == [2]
    launch = kernel("B[x] = A[x]").launch
    assert {value.dtype for value in launch.thread_values.values()} == {np.dtype("int64")}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("padding", "passes"), [(0, 16), (8, 4)])
def test_fragments_are_counted_as_rows_of_ldmatrix(
    transposed: bool, padding: int, passes: int
) -> None:
    """16 x 16 of float16 are four times eight rows of 16 bytes. Rows of 64 bytes begin in two
    banks, so that four of eight meet in one; rows of 80 bytes are all in different ones."""
    func = tensor_core_product(transposed, padding)
    [profile] = profiles(func, "main")
    fragments = [
        counts
        for site, counts in zip(profile.sites, profile.counts, strict=True)
        if site.tile and site.shared
    ]
    assert len(fragments) == 2
    sentences = describe(accesses(profile, listing(func)))
    assert FRAGMENTS in sentences
    for counts in fragments:
        assert counts is not None
        assert counts.passes == passes * counts.requests
        assert counts.ideal == 4 * counts.requests
        assert counts.most == passes // 4


@pytest.mark.parametrize(("stride", "passes"), [(16, 16), (24, 8), (32, 32)])
def test_accumulators_are_counted_as_pairs_of_mma(stride: int, passes: int) -> None:
    """Half a warp stores four rows of four pairs, 32 bytes of each; 16 x 16 are eight of them."""
    text = f"""
@T.prim_func
def main(B: T.Buffer((16, {stride}), "float32")):
    for x in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("root"):
            T.reads()
            T.writes(B[0:16, 0:{stride}])
            C = T.alloc_buffer((16, 16), "float32", scope="wmma.accumulator")
            S = T.alloc_buffer((16, {stride}), "float32", scope="shared")
            T.tvm_fill_fragment(C.data, 16, 16, 16, 0, T.float32(1))
            T.tvm_store_matrix_sync(
                C.data, 16, 16, 16, 0, S.access_ptr("w"), {stride}, "row_major")
            for i in range({stride // 2}):
                B[x // 2, x % 2 * {stride // 2} + i] = S[x // 2, x % 2 * {stride // 2} + i]
"""
    [profile] = profiles(from_source(text), "main")
    found = costs(profile, "S", "store")
    assert (found.requests, found.passes, found.ideal) == (1, passes, 8)


def tensor_core_product(transposed: bool, padding: int):
    group = get_wmma_intrin_group("shared", "global", "float16", "float32", transposed)
    sch = tvm.tir.Schedule(schedule(product(64, 96, 64, transposed), group))
    for name in "AB":
        sch.storage_align(sch.get_block(f"{name}_shared"), 0, axis=-2, factor=32, offset=padding)
    return sch.mod["main"]


def test_fragments_that_lie_otherwise_are_not_counted() -> None:
    """Rows of B with 8 elements of int8 are no rows of 16 bytes."""
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((16, 8), "int8")):
    for x in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(B[0:16, 0:8])
            T.writes()
            S = T.alloc_buffer((16, 8), "int8", scope="shared")
            b = T.alloc_buffer((16, 8), "int8", scope="wmma.matrix_b")
            for i in range(4):
                S[x // 2, x % 2 * 4 + i] = B[x // 2, x % 2 * 4 + i]
            T.tvm_load_matrix_sync(b.data, 32, 8, 16, 0, S.access_ptr("r"), 8, "row_major")
""")
    [profile] = profiles(func, "main")
    sites = zip(profile.sites, profile.counts, strict=True)
    assert [counts for site, counts in sites if site.tile] == [None]
    sentences = describe(accesses(profile, listing(func)))
    assert any("how a warp moves a fragment that lies so: " in line for line in sentences)
