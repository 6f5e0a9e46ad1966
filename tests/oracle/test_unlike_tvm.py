"""Where TVM 0.27 is wrong, and we differ from it on purpose."""

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.ir import IRModule
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule

CHAIN = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 30), "float32"), C: T.Buffer((30, 30), "float32")):
        B = T.alloc_buffer((30, 30))
        for i, j in T.grid(30, 30):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(30, 30):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_a_consumer_of_parts_of_rows():
    """64 of the elements of fused loops are no whole rows of 30. TVM moves the consumer there as if
    they were, and it reads elements that are written only later; its own verification, which a
    schedule does not ask for by default, reports the module."""
    sch = Schedule(from_source(CHAIN))
    outer, _ = sch.split(sch.fuse(*sch.get_loops("B")), [None, 64])
    with pytest.raises(ScheduleError):
        sch.reverse_compute_at("C", outer)
    a = np.arange(900, dtype="float32").reshape(30, 30)
    arrays = [mlcweb.nd.array(a), mlcweb.nd.empty((30, 30))]
    mlcweb.build(sch.mod, target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), a * 2 + 1)


READ_BEFORE_IT_IS_OVERWRITTEN = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[2, vi] + T.float32(1)
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[0, vi] = T.float32(7)
"""


def test_a_copy_of_what_a_later_block_overwrites_in_part():
    """TVM copies the row that block "A" writes, after it has, and block "B" reads row 2 of a copy
    of one row."""
    sch = Schedule(from_source(READ_BEFORE_IT_IS_OVERWRITTEN))
    copy = sch.cache_read("B", 0, "local")
    assert sch.get(sch.get_child_blocks(sch.get_block("root"))[0]) is sch.get(copy)
    a = np.arange(16, dtype="float32").reshape(4, 4)
    arrays = [mlcweb.nd.array(a), mlcweb.nd.empty((4,))]
    mlcweb.build(sch.mod, target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), a[2] + 1)


def made_by_tvm(program, step, replay):
    """What a real TVM makes of a program by one step, as a module of ours."""
    mod = IRModule({"main": from_source(program)})
    question = {"module": mod.script(dialect="s_tir"), "steps": [(step, True)], "scripts": True}
    (answer,) = replay(question)["steps"]
    return from_source(answer["script"])


def run(mod, *arrays):
    given = [mlcweb.nd.array(array) for array in arrays]
    mlcweb.build(mod, target="interpreter")["main"](*given)
    return [array.numpy() for array in given]


@pytest.mark.oracle
def test_tvm_copies_it_too_late(replay):
    step = 'sch.cache_read(sch.get_sblock("B"), 0, "local")'
    mod = made_by_tvm(READ_BEFORE_IT_IS_OVERWRITTEN, step, replay)
    with pytest.raises(IndexOutOfBounds, match=r"A_local\[2, 0\].* has shape \(1, 4\)"):
        run(mod, np.ones((4, 4), "float32"), np.zeros(4, "float32"))


READ_BEFORE_IT_IS_WRITTEN = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        A[i] = B[i] + 1
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v] * 2
"""
COUNT = np.arange(4, dtype="int32")


def test_a_copy_is_not_read_before_it_is_written():
    """TVM's statement in front of the block reads the copy, too, before anything is in it."""
    sch = Schedule(from_source(READ_BEFORE_IT_IS_WRITTEN))
    sch.cache_write("B", 0, "local")
    a, b = run(sch.mod, COUNT, COUNT)
    assert a.tolist() == [1, 2, 3, 4]
    assert b.tolist() == [2, 4, 6, 8]


@pytest.mark.oracle
def test_tvm_reads_a_copy_before_it_is_written(replay):
    step = 'sch.cache_write(sch.get_sblock("B"), 0, "local")'
    mod = made_by_tvm(READ_BEFORE_IT_IS_WRITTEN, step, replay)
    assert "A[i] = B_local[i] + 1" in mod.script()
    assert run(mod, COUNT, COUNT)[1].tolist() != [2, 4, 6, 8]


COUNTED_DOWN = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[15 - v] = A[v]
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[v]
"""
SIXTEEN = np.arange(16, dtype="int32")


def test_the_digits_of_an_index_that_counts_down():
    """TVM has -v // 4 for v // -4, and -v % 4 for -(v % -4): both are other numbers."""
    sch = Schedule(from_source(COUNTED_DOWN))
    sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4])
    assert "B[v // 4 * -1 + 3, v % 4 * -1 + 3] = A[v]" in sch.mod.script()
    assert run(sch.mod, SIXTEEN, SIXTEEN)[1].tolist() == SIXTEEN[::-1].tolist()


@pytest.mark.oracle
def test_tvm_divides_an_index_that_counts_down_by_a_negative_number(replay):
    step = 'sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4])'
    mod = made_by_tvm(COUNTED_DOWN, step, replay)
    assert "B[v // -4 + 3, v % -4 * -1] = A[v]" in mod.script()
    with pytest.raises(IndexOutOfBounds, match=r"B\[-1, 3\]"):
        run(mod, SIXTEEN, SIXTEEN)
