"""The long trace that chapter 4 of the course prints comes out of the default rules of "llvm", with
the course's decisions."""

import json
import re
from pathlib import Path

from mlcweb.ir import assert_structural_equal
from mlcweb.meta_schedule.postproc import (
    DisallowDynamicLoop,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
)
from mlcweb.meta_schedule.space_generator import PostOrderApply, ScheduleFn
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.programs import matmul

COURSE = Path(__file__).parents[2] / "course"
PRINTED = (COURSE / "traces" / "auto_scheduled.txt").read_text().strip().splitlines()
DECISION = r"decision=(\[[^\]]*\]|\d+)"

# TVM left the bound of unrolling on blocks without reductions in 2022.
POSTPROCS = (
    DisallowDynamicLoop(),
    RewriteParallelVectorizeUnroll(unroll_spatial=True),
    RewriteReductionBlock(),
)


def space_with_a_copy_at(level):
    """One of the three spaces: the copy of the result is made at a level of tiles, or nowhere."""
    made = PostOrderApply(sch_rules="llvm", postprocs="llvm", mutator_probs="llvm")
    spaces = made.generate_design_space(matmul())
    return spaces[{2: 0, 1: 1, None: 2}[level]]


def with_the_decisions_of_the_course(space):
    chosen = iter([json.loads(found) for found in re.findall(DECISION, "\n".join(PRINTED))])
    sch = Schedule(matmul())
    space.trace.apply_to_schedule(sch, decision_provider=lambda *_: next(chosen))
    sch.enter_postproc()
    assert all(each.apply(sch) for each in POSTPROCS)
    return sch


def as_of_2022(trace):
    """Lines without the arguments that TVM prints since, and without queries nobody uses."""
    for line in trace.simplified(remove_postproc=False).as_python():
        line = line.replace(", disable_predication=False", "").replace(", index=-1", "")
        yield line


def test_the_printed_trace():
    sch = with_the_decisions_of_the_course(space_with_a_copy_at(2))
    printed = Schedule(matmul())
    exec("\n".join(PRINTED), {"sch": printed})
    assert list(as_of_2022(sch.trace)) == list(as_of_2022(printed.trace))


def test_the_printed_module():
    sch = with_the_decisions_of_the_course(space_with_a_copy_at(2))
    listing = from_source((COURSE / "listings" / "auto_scheduled.txt").read_text())
    assert_structural_equal(sch.mod, listing)


def test_a_schedule_function_keeps_its_schedule():
    """Post-processing adds to the trace of a function no more than the course prints."""

    def stochastic_schedule_mm(sch):
        block_C = sch.get_block("C", "main")
        i, j, k = sch.get_loops(block=block_C)
        j_0, j_1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2))
        sch.reorder(i, j_0, k, j_1)
        sch.decompose_reduction(block_C, k)
        return sch

    from mlcweb.meta_schedule import TuneContext

    space = ScheduleFn(stochastic_schedule_mm)
    context = TuneContext(matmul(), target="llvm", space_generator=space)
    (sch,) = context.generate_design_space()
    sch.enter_postproc()
    assert all(each.apply(sch) for each in context.postprocs)
    assert sch.trace.as_python()[-1] == "sch.enter_postproc()"
