"""Where TVM 0.27 is wrong, and we differ from it on purpose."""

import numpy as np
import pytest

import mlcweb
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
