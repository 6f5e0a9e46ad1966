"""Loop nests: where loops come from, and what a step did to them, in data and in words."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.playground.trace_controls import controls
from mlcweb.playground.trace_nest import nest, vanished
from mlcweb.playground.trace_origins import TIMES
from mlcweb.playground.trace_replay import Replay, replay
from mlcweb.playground.trace_words import words
from mlcweb.schedule import Schedule
from mlcweb.script import tir as T
from tests.random_schedules import EVERY_STEP, random_step
from tests.strategies import examples


@T.prim_func
def matmul(
    A: T.Buffer((128, 128), "float32"),
    B: T.Buffer((128, 128), "float32"),
    D: T.Buffer((128, 128), "float32"),
):
    C = T.alloc_buffer((128, 128), "float32")
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


def entries(nested: list[Any]) -> Iterator[Any]:
    for entry in nested:
        yield entry
        yield from entries(entry.body)


def told(done: Replay, block: str = "C") -> dict[str, Any]:
    """The loops and blocks of a block's nest after the last step, by name."""
    last = done.steps[-1]
    [function] = nest(last.after, last.origins, last.before)
    for top in function.body:
        found = {e.name: e for e in entries([top]) if e.kind in ("loop", "block")}
        if any(name.startswith(block) for name in found):
            return found
    raise AssertionError(f"no block {block}")


def replayed(steps: Callable[[Schedule], object]) -> Replay:
    sch = Schedule(matmul)
    steps(sch)
    done = replay(sch.trace, sch.original)
    assert done.failure is None
    return done


def split_and_fuse(sch: Schedule) -> None:
    i, j, k = sch.get_loops(sch.get_block("C"))
    j_0, j_1 = sch.split(j, factors=[None, 16])
    k_0, k_1, k_2 = sch.split(k, factors=[4, 8, 4])
    sch.reorder(i, j_0, k_0, k_1, j_1, k_2)
    both = sch.fuse(i, j_0)
    sch.parallel(both)
    sch.vectorize(j_1)
    sch.unroll(k_2)


@pytest.mark.parametrize(
    ("name", "extent", "how", "origin"),
    [
        (
            "i_j_0_fused",
            "1024",
            "parallel",
            "i and j_0 fused, 128 · 8 (j_0 is the outer part of j, 8 of 128)",
        ),
        ("k_0", "4", "serial", "outermost of 3 parts of k, 4 of 128"),
        ("k_1", "8", "serial", "2nd of 3 parts of k, 8 of 128"),
        ("j_1", "16", "vectorized", "inner part of j, 16 of 128"),
        ("k_2", "4", "unrolled", "innermost part of k, 4 of 128"),
    ],
)
def test_each_loop_tells_where_it_came_from(name: str, extent: str, how: str, origin: str) -> None:
    loop = told(replayed(split_and_fuse))[name]
    assert (loop.extent, loop.how, loop.origin) == (extent, how, origin)


def test_loops_share_the_colour_of_the_loop_that_they_go_back_to() -> None:
    found = told(replayed(split_and_fuse))
    assert found["k_0"].colours == found["k_1"].colours == found["k_2"].colours == [2]
    assert found["j_1"].colours == [1]
    assert found["i_j_0_fused"].colours == [0, 1]


def test_loops_that_a_step_makes_go_back_to_those_that_drove_the_block() -> None:
    def steps(sch: Schedule) -> None:
        i, _, k = sch.get_loops(sch.get_block("C"))
        sch.reverse_compute_at(sch.get_block("D"), i)
        sch.decompose_reduction(sch.get_block("C"), k)

    found = told(replayed(steps))
    assert found["ax0"].origin == "runs over j; made by step 4, reverse_compute_at"
    assert found["j"].origin == "a loop of the program"
    # No loop inside of k is left to repeat for the init, which j itself is around.
    assert found["C_init"].change == "new"


def test_the_init_of_a_reduction_repeats_its_loops() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.get_loops(sch.get_block("C"))
        sch.reorder(i, k, j)
        sch.decompose_reduction(sch.get_block("C"), k)

    found = told(replayed(steps))
    assert found["j_init"].origin == "repeats j; made by step 5, decompose_reduction"
    assert found["j_init"].colours == found["j"].colours


def test_what_a_step_changed_is_marked() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.get_loops(sch.get_block("C"))
        sch.reorder(k, j)

    done = replayed(steps)
    assert {name: entry.change for name, entry in told(done).items() if entry.change} == {
        "k": "moved",
        "j": "moved",
    }


def test_a_loop_that_runs_otherwise_and_what_is_gone_are_told() -> None:
    done = replayed(split_and_fuse)
    fused, parallel = done.steps[5], done.steps[6]
    assert vanished(fused.before, fused.after) == ["i (128)", "j_0 (8)"]
    after = entries(nest(parallel.after, parallel.origins, parallel.before))
    changes = {e.name: e.change for e in after if getattr(e, "change", None)}
    assert changes == {"i_j_0_fused": "parallel"}


def test_blocks_tell_what_they_read_and_write() -> None:
    found = told(replayed(split_and_fuse))
    block = found["C"]
    assert [region.text for region in block.reads] == ["A[vi, vk]", "B[vk, vj]"]
    assert [region.text for region in block.writes] == ["C[vi, vj]"]
    assert block.init == "C[vi, vj] = T.float32(0)"
    assert [(each.name, each.type) for each in block.iterators] == [
        ("vi", "spatial"),
        ("vj", "spatial"),
        ("vk", "reduce"),
    ]
    assert block.iterators[2].value == "k_0 * 32 + k_1 * 4 + k_2"


def test_a_blockized_block_reads_whole_regions() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("D"))
        j_0, j_1 = sch.split(j, factors=[None, 32])
        sch.blockize(j_1)

    outer = told(replayed(steps), "D")["D_o"]
    assert [region.elements for region in outer.reads] == [32]
    assert outer.change == "new"


def test_a_split_that_does_not_divide_has_a_predicate() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("D"))
        sch.split(j, factors=[None, 48])

    assert told(replayed(steps), "D")["D"].where == "j_0 * 48 + j_1 < 128"


def test_threads_are_told_by_their_axis() -> None:
    def steps(sch: Schedule) -> None:
        sch.bind(sch.get_loops(sch.get_block("D"))[0], "blockIdx.x")

    loop = told(replayed(steps), "D")["i"]
    assert (loop.how, loop.thread, loop.change) == ("thread", "blockIdx.x", "thread")


def all_words(steps: Callable[[Schedule], object]) -> list[str]:
    return [words(step) for step in replayed(steps).steps]


def test_steps_are_told_in_words() -> None:
    assert all_words(split_and_fuse) == [
        "finds block C",
        "finds the loops i, j, k of block C",
        f"splits j (128) into j_0{TIMES}j_1 = 8{TIMES}16",
        f"splits k (128) into k_0{TIMES}k_1{TIMES}k_2 = 4{TIMES}8{TIMES}4",
        "orders the loops i, j_0, k_0, k_1, j_1, k_2; they were i, j_0, j_1, k_0, k_1, k_2",
        "fuses i (128) and j_0 (8) into i_j_0_fused (1024)",
        "runs i_j_0_fused (1024) in parallel",
        "turns j_1 (16) into vector lanes",
        "unrolls k_2 (4)",
    ]


def test_steps_on_blocks_are_told_in_words() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.get_block("C")
        cache = sch.cache_read(block, 1, "local")
        i, j, k = sch.get_loops(block)
        sch.compute_at(cache, j)
        sch.annotate(k, "unroll_explicit", 1)
        factors = sch.sample_perfect_tile(i, 2, decision=[8, 16])
        sch.sample_categorical([1, 2, 4], [0.5, 0.25, 0.25], decision=1)
        sch.split(i, factors)

    assert all_words(steps)[1:] == [
        "lets block C read B through a copy in local memory, made by block B_local",
        "finds the loops i, j, k of block C",
        "computes block B_local inside loop j",
        "annotates k with unroll_explicit = 1",
        f"decides the tiles of i (128): 8{TIMES}16",
        "decides for 2 among 1, 2, 4",
        f"splits i (128) into i_0{TIMES}i_1 = 8{TIMES}16",
    ]


def test_steps_on_reductions_are_told_in_words() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.get_block("C")
        k = sch.get_loops(block)[2]
        outer, _ = sch.split(k, [4, None])
        partial = sch.rfactor(outer, 0)
        sch.decompose_reduction(partial, sch.get_loops(partial)[3])

    assert all_words(steps)[3::2] == [
        "computes partial results over k_0 (4) in block C_rf (rfactor)",
        "moves the initialization of block C_rf into a new block, C_rf_init, before loop k_1",
    ]


@examples(25)
@given(seed=st.integers(0, 2**30))
def test_every_schedule_can_be_told(seed: int) -> None:
    random = Random(seed)
    sch = Schedule(matmul, seed=seed, error_render_level="none")
    for _ in range(25):
        random_step(sch, random.choice, EVERY_STEP)
    done = replay(sch.trace, sch.original)
    assert done.failure is None
    assert len(done.steps) == len(sch.trace.insts)
    for step in done.steps:
        assert words(step)
        functions = nest(step.after, step.origins, step.before)
        drawn = [entry for entry in entries(functions) if entry.kind == "loop"]
        # A block's init is no part of what can be scheduled; its loops, if any, are not drawn.
        assert len(drawn) == len(step.after.index.loops)
        assert all(entry.origin and entry.colours for entry in drawn)
    controls(sch.trace, done, {})
