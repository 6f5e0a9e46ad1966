"""Blocks that read what they write: an accumulator that the init sets, elements that the same
iteration has filled, and elements that other iterations write."""

import numpy as np
import pytest

import mlcweb
from mlcweb import meta_schedule as ms
from tests.schedule.case_files import cases, check, module, outputs, random_inputs

# As TVM printed a matmul in 2021 and 2022.
MATMUL = """
@T.prim_func
def main(A: T.Buffer[(64, 64), "float32"], B: T.Buffer[(64, 64), "float32"],
         C: T.Buffer[(64, 64), "float32"]):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads([C[vi, vj], A[vi, vk], B[vk, vj]])
            T.writes([C[vi, vj]])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("case", cases("self_reads.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_a_search_space_does_not_take_the_output_for_an_input():
    """The spaces have the steps of those for a program that does not list the output."""
    spaces = []
    for text in (MATMUL, MATMUL.replace("C[vi, vj], A[vi, vk]", "A[vi, vk]")):
        context = ms.TuneContext(
            module(text), target=mlcweb.target.Target("wasm --num-cores=1"),
            space_generator="post-order-apply",
        )  # fmt: skip
        spaces.append(context.generate_design_space())
    kinds = [[[inst.kind.name for inst in sch.trace.insts] for sch in space] for space in spaces]
    assert kinds[0] == kinds[1]
    before = module(MATMUL)
    arrays = random_inputs(before)
    want = arrays[0] @ arrays[1]
    for sch in spaces[0]:
        np.testing.assert_array_equal(outputs(sch.mod, arrays, "numpy")[2], want)
