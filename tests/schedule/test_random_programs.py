"""Long random schedules of the operators that deep learning is made of.

Whatever sequence of fifteen and more steps is accepted, the program computes what it did before,
interpreted and compiled; its trace gives the same module again, by way of Python and of JSON, and
simplified; and the module prints as text that reads back. `make test` tries 150 of them,
`make test-all` 300.
"""

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import assert_structural_equal
from mlcweb.ir.transform import PassContext
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.testing import verify_trace_roundtrip
from mlcweb.tir import Schedule
from mlcweb.tir.buffer import constant_shape
from tests.random_schedules import EVERY_STEP, RARE_STEPS, random_step
from tests.schedule.case_files import module, outputs, programs
from tests.strategies import examples

PROGRAMS = programs("base_programs.txt")
STEPS = 15
ATTEMPTS = 120
INEXACT = ("softmax", "layer_norm")
"""Programs whose numbers are rounded, and so depend on the order of a sum."""


@cache
def before(name):
    """A program, its inputs, and what it computes unscheduled.

    The inputs are distinct small integers: sums of them are exact, and an argmax has one answer.
    """
    mod = module(PROGRAMS[name])
    rng = np.random.default_rng(7)
    arrays = []
    for buffer in mod["main"].parameter_buffers:
        shape = constant_shape(buffer)
        numbers = rng.permutation(int(np.prod(shape))).reshape(shape)
        arrays.append((numbers - numbers.size // 2).astype(buffer.dtype))
    return mod, arrays, outputs(mod, arrays, "interpreter")


def walk(seed, mod):
    """A schedule of `STEPS` accepted steps (fewer only where hardly anything can be done).

    One number stands for all choices: drawn one by one they take longer than the steps do.
    """
    random = Random(seed)
    sch = Schedule(mod, seed=seed + 1, error_render_level="none")
    accepted = 0

    def choose(options):
        if not options:
            raise IndexError("nothing to choose from")
        return random.choice(options)

    for attempt in range(ATTEMPTS):
        accepted += random_step(sch, choose, EVERY_STEP if attempt > 2 else RARE_STEPS)
        if accepted == STEPS:
            break
    return sch


@pytest.mark.parametrize("name", PROGRAMS)
@examples(-(-150 // len(PROGRAMS)), -(-300 // len(PROGRAMS)))
@given(seed=st.integers(0, 2**30))
def test_long_schedules_are_right(name, seed):
    mod, arrays, wanted = before(name)
    sch = walk(seed, mod)
    tolerance = 2e-4 if name in INEXACT else 0
    script = sch.mod.script()
    for target in ("interpreter", "numpy", "wasm"):
        message = f"{target}\n{script}\n{sch.trace}"
        try:
            results = outputs(sch.mod, arrays, target)
        except ThreadError:
            # Whether loops can be bound to threads together is known when the program is built.
            break
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=message)

    with PassContext():  # Each step is verified where the schedule was made.
        verify_trace_roundtrip(sch, mod)
        simplified = Schedule(mod)
        sch.trace.simplified(remove_postproc=False).apply_to_schedule(simplified)
    assert_structural_equal(simplified.mod, sch.mod)
    assert_structural_equal(from_source(script), sch.mod)


MIXED_LANES = """
@T.prim_func
def main(A: T.Buffer((9, 9), "int32"), C: T.Buffer((5, 5), "int32")):
    P = T.alloc_buffer((11, 11), "int64")
    for i, j in T.grid(5, 5):
        for ax in range(3):
            with T.block("P"):
                vi = T.axis.spatial(11, i * 2)
                vj = T.axis.spatial(11, j * 2 + ax)
                P[vi, vj] = T.Cast("int64", T.if_then_else(1 <= vi and 1 <= vj and vj < 10,
                                                           A[vi - 1, vj - 1], -1000))
        for dj in range(3):
            with T.block("C"):
                vi, vj, vdj = T.axis.remap("SSR", [i, j, dj])
                C[vi, vj] = T.max(C[vi, vj], T.Cast("int32", P[vi * 2, vj * 2 + vdj]))
"""


@pytest.mark.parametrize("target", ["numpy", "wasm"])
def test_found_vectors_with_a_condition_of_one_lane(target):
    mod = module(MIXED_LANES)
    arrays = [np.arange(81, dtype="int32").reshape(9, 9), np.zeros((5, 5), "int32")]
    wanted = outputs(mod, arrays)[1]
    np.testing.assert_array_equal(outputs(mod, arrays, target)[1], wanted)


FLAGS = """
@T.prim_func
def main(A: T.Buffer((8, 9), "int32"), C: T.Buffer((8, 9), "int32")):
    B = T.alloc_buffer((8,), "bool")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = vi < 5
    for i, j in T.grid(8, 9):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(B[vi], A[vi, vj], 0)
"""


@pytest.mark.parametrize("target", ["numpy", "wasm"])
def test_found_conditions_that_stay_in_a_vector(target):
    a = np.arange(72, dtype="int32").reshape(8, 9)
    wanted = np.where(np.arange(8)[:, None] < 5, a, 0)
    np.testing.assert_array_equal(outputs(module(FLAGS), [a, a], target)[1], wanted)


def test_found_reindex_of_what_the_block_also_writes():
    sch = Schedule(before("matmul")[0])
    update = sch.get_block("C")
    sch.decompose_reduction(update, sch.get_loops(update)[0])
    with pytest.raises(ScheduleError, match='also writes "C", and the copy that it would write'):
        sch.reindex(update, ("read", 0))


@pytest.mark.parametrize("step", ["transform_layout", "reindex"])
def test_found_indices_in_the_regions_of_other_buffers(step):
    """B is read at the elements of J: where J's place changes, so does that region of B."""
    mod, arrays, wanted = before("gather")
    sch = Schedule(mod)
    if step == "reindex":
        sch.reindex("C", ("read", 1))
    else:
        sch.transform_layout("J", ("write", 0), lambda i: [i // 7, i % 7])
    read = sch.get(sch.get_block("C")).reads[0]
    index = read.region[0].min
    assert index.buffer in [region.buffer for region in sch.get(sch.get_block("C")).reads]
    for got, want in zip(outputs(sch.mod, arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_found_copy_of_what_memory_tells():
    """The copy is made after the indices that it needs."""
    mod, arrays, wanted = before("gather")
    sch = Schedule(mod)
    sch.compute_inline("B")
    sch.compute_inline("J")
    sch.reindex("C", ("read", 0))
    copy = sch.reindex_cache_read("C", 1, "local", lambda i, j: (i, j))
    assert {region.buffer.name for region in sch.get(copy).reads} == {"A", "I_reindex"}
    for got, want in zip(outputs(sch.mod, arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_found_widened_reads_of_a_part_in_scripts():
    """A region that is declared larger may hold elements that nothing writes."""
    sch = Schedule(before("diamond")[0])
    sch.pad_einsum("C", [1, 4])
    sch.compute_at("A_pad", sch.get_loops("C")[0])
    sch.annotate_buffer_access("C", 1, "read", lambda i, j: [(0, 8), (0, 8)])
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)


def test_found_predicates_of_blocks_around_in_scripts():
    """A block in another block runs where the outer one does."""
    sch = Schedule(before("matmul")[0])
    i, j, _ = sch.get_loops("C")
    sch.fuse(*sch.split(i, [4, 2]), preserve_unit_iters=True)
    sch.loop_partition(j, [4, None])
    assert "T.where" in sch.mod.script()
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)


def test_found_value_of_padding_in_a_replayed_trace():
    """It gets the buffer's type, whatever that of the indices is."""
    sch = Schedule(before("reshape")[0])
    sch.unsafe_set_dtype("C", 0, "float64")
    sch.transform_layout("C", ("write", 0), lambda i: [i // 7, i % 7], pad_value=0.0)
    verify_trace_roundtrip(sch, before("reshape")[0])


def test_found_bounds_of_loops_before_conditions_that_read_memory():
    """A row beyond the last has no element of J, by which a condition on B's block asks."""
    mod, arrays, wanted = before("gather")
    sch = Schedule(mod)
    sch.loop_partition(sch.get_loops("J")[0], [2, None, 1])
    row, _ = sch.get_loops("C")
    sch.compute_at("B", row)
    sch.split(row, [4, 2])
    for got, want in zip(outputs(sch.mod, arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
