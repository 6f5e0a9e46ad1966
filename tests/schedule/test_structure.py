"""add_unit_loop, merge, reorder_block_iter_var and unsafe_set_dtype."""

import numpy as np
import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.programs import matmul_relu
from tests.schedule.case_files import cases, check, module, outputs
from tests.schedule.test_loops import body_of


@pytest.mark.parametrize("case", cases("structure.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_casts_at_every_access():
    sch = Schedule(matmul_relu())
    sch.unsafe_set_dtype("Y", 0, "float16")
    text = body_of(sch)
    assert 'Y = T.alloc_buffer((30, 30), "float16")' in text
    assert 'Y[vi, vj] = T.Cast("float16", T.float32(0))' in text
    assert 'T.Cast("float16", T.Cast("float32", Y[vi, vj]) + A[vi, vk] * B[vk, vj])' in text
    assert 'T.max(T.Cast("float32", Y[vi, vj]), T.float32(0))' in text


VIEWED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    with T.block("C"):
        T.reads(B[0:16])
        T.writes(C[0:16])
        V = T.match_buffer(B[0:16], (16,))
        for i in range(16):
            C[i] = V[i]
"""


def test_the_views_of_a_buffer_get_its_type():
    sch = Schedule(module(VIEWED))
    sch.unsafe_set_dtype("B", 0, "float16")
    assert 'V = T.match_buffer(B[0:16], (16,), "float16")' in sch.mod.script()
    a = np.linspace(0, 1, 16, dtype="float32")
    want = a.astype("float16").astype("float32")
    np.testing.assert_array_equal(outputs(sch.mod, [a, np.zeros_like(a)])[1], want)


@pytest.mark.parametrize("buffer", ["B", "V"])
def test_a_buffer_whose_address_is_used_keeps_its_type(buffer):
    used = f"            C[i] = T.call_extern('float32', 'first', {buffer}.data)"
    sch = Schedule(module(VIEWED.replace("            C[i] = V[i]", used)))
    with pytest.raises(ScheduleError, match=f'"{buffer}" must keep its type float32: its address'):
        sch.unsafe_set_dtype("B", 0, "float16")


PARTIAL_SUM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for k, i in T.grid(16, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]
"""


def test_a_partial_sum_is_not_used():
    sch = Schedule(module(PARTIAL_SUM))
    with pytest.raises(
        ScheduleError, match=r'"B" writes in a later iteration .at the distance .-15.'
    ):
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])


THREE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    C = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi] + C[vi]
"""


def test_nothing_moves_past_what_depends_on_it():
    sch = Schedule(module(THREE))
    b, c, d = (sch.get_loops(name)[0] for name in "BCD")
    with pytest.raises(ScheduleError, match='"i" would move past the block "C"'):
        sch.merge(b, d)
    with pytest.raises(ScheduleError, match='"i" would move past the block "C"'):
        sch.merge(d, c)
    merged = sch.merge(c, d)
    assert sch.get(merged).loop_var.name == "i_m"
    assert sch.trace.as_python()[-1].endswith("= sch.merge(l3, l5)")


REPEATED = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    B = T.alloc_buffer((8,))
    for f in range(32):
        with T.block("B"):
            vi = T.axis.spatial(8, f // 4)
            B[vi] = A[vi, 0]
    for f in range(32):
        with T.block("C"):
            vi = T.axis.spatial(8, f // 4)
            vj = T.axis.spatial(4, f % 4)
            C[vi, vj] = B[vi] + A[vi, vj]
"""


def test_a_repeated_result_is_not_used_between():
    sch = Schedule(module(REPEATED))
    with pytest.raises(
        ScheduleError, match=r'"B" writes in a later iteration .at the distance .-3.'
    ):
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
