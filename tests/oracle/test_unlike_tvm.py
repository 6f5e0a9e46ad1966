"""Where TVM 0.27 is wrong, and we differ from it on purpose."""

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.interpreter.support import IndexOutOfBounds
from mlcweb.ir import IRModule
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.oracle.test_walks import Replay

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


@pytest.mark.oracle
def test_tvm_copies_it_too_late(oracle_python):
    mod = IRModule({"main": from_source(READ_BEFORE_IT_IS_OVERWRITTEN)})
    step = ('sch.cache_read(sch.get_sblock("B"), 0, "local")', True)
    question = {"module": mod.script(dialect="s_tir"), "steps": [step], "scripts": True}
    with Replay(oracle_python) as replay:
        (made,) = replay(question)["steps"]
    arrays = [mlcweb.nd.array(np.ones((4, 4), "float32")), mlcweb.nd.empty((4,))]
    with pytest.raises(IndexOutOfBounds, match=r"A_local\[2, 0\].* has shape \(1, 4\)"):
        mlcweb.build(from_source(made["script"]), target="interpreter")["main"](*arrays)
