"""Each mutator alone: one decision is another, and what comes out is still right."""

import random
from math import prod

import pytest

from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.mutator import (
    MutateComputeLocation,
    MutateParallel,
    MutateThreadBinding,
    MutateTileSize,
    MutateUnroll,
    Mutator,
)
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.tir import Schedule
from tests.meta_schedule.schedule_rule.small import check, module


def space(name, kind="llvm"):
    made = PostOrderApply(sch_rules=kind, postprocs=kind, mutator_probs=kind)
    context = TuneContext(module(name), target="llvm", space_generator=made, rand_state=3)
    return made, context, made.generate_design_space(module(name))[0].trace


def decisions(trace):
    return [trace.get_decision(inst) for inst in trace.insts if inst.kind.sampling]


def changed(before, after):
    pairs = zip(decisions(before), decisions(after), strict=True)
    return [(a, b) for a, b in pairs if a != b]


def finished(made, trace, name):
    sch = Schedule(module(name))
    trace.apply_to_schedule(sch, remove_postproc=True)
    sch.enter_postproc()
    assert all(each.apply(sch) for each in made.postprocs)
    return sch


@pytest.mark.parametrize("seed", range(10))
def test_tile_size(seed):
    made, _, trace = space("matmul")
    mutated = MutateTileSize().apply(trace, random.Random(seed))
    ((before, after),) = changed(trace, mutated)
    assert prod(before) == prod(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 2
    check("matmul", finished(made, mutated, "matmul").mod, targets=("wasm",))


def test_the_innermost_tile_keeps_its_limit():
    sch = Schedule(module("matmul"))
    _, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(j, sch.sample_perfect_tile(j, 2, 4, decision=[4, 4]))
    for seed in range(20):
        mutated = MutateTileSize().apply(sch.trace, random.Random(seed))
        assert decisions(mutated)[0][-1] < 4


def test_unroll():
    made, _, trace = space("matmul")
    mutated = MutateUnroll().apply(trace, random.Random(0))
    assert len(changed(trace, mutated)) == 1
    check("matmul", finished(made, mutated, "matmul").mod, targets=("wasm",))


@pytest.mark.parametrize("seed", range(4))
def test_compute_location(seed):
    made, context, trace = space("softmax")
    mutator = MutateComputeLocation()
    mutator._initialize_with_tune_context(context)
    mutated = mutator.apply(trace, random.Random(seed))
    assert len(changed(trace, mutated)) == 1
    check("softmax", finished(made, mutated, "softmax").mod, targets=("wasm",))


def test_parallel():
    made, context, trace = space("matmul")
    mutator = MutateParallel(max_jobs_per_core=16)
    mutator._initialize_with_tune_context(context)
    bounds = set()
    for seed in range(20):
        mutated = mutator.apply(trace, random.Random(seed))
        assert not changed(trace, mutated)
        found = [inst for inst in mutated.insts if "meta_schedule.parallel" in inst.attrs]
        bounds.update(inst.inputs[1] for inst in found)
    assert 16 not in bounds
    assert bounds <= set(range(1, 16))
    assert bounds
    last = mutator.apply(trace, random.Random(19))
    check("matmul", finished(made, last, "matmul").mod, targets=("wasm",))


@pytest.mark.parametrize(
    ("present", "jobs", "others"),
    [
        (64, 64, {4, 8, 32}),  # none fuses to 64: it stands for the next, 128
        (32, 256, {4, 8, 128}),
        (1000, 256, {4, 8, 32, 128}),
        (1000, 16, {4, 8}),  # taken for 16, the most, which stands for 32
        (1, 4, None),
    ],
)
def test_parallel_numbers_are_products_of_outer_loops(present, jobs, others):
    sch = Schedule(module("matmul"))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    rows, columns = sch.split(i, [4, 2, 4]), sch.split(j, [8, 4])
    sch.reorder(rows[0], rows[1], rows[2], columns[1], k, columns[0])
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", present)
    mutator = MutateParallel(max_jobs_per_core=jobs)
    TuneContext(
        module("matmul"), target="llvm --num-cores=1",
        space_generator=PostOrderApply([], [], {mutator: 1.0}),
    )  # fmt: skip
    traces = [mutator.apply(sch.trace, random.Random(seed)) for seed in range(40)]
    chosen = {trace.insts[-1].inputs[1] for trace in traces if trace is not None}
    assert chosen == (others or set())


@pytest.mark.parametrize("mutator", [MutateTileSize(), MutateUnroll()])
def test_nothing_to_change(mutator):
    sch = Schedule(module("matmul"))
    sch.get_block("C")
    assert mutator.apply(sch.trace, random.Random(0)) is None


@pytest.mark.parametrize("mutator", [MutateComputeLocation(), MutateParallel(4)])
def test_a_task_is_needed(mutator):
    with pytest.raises(ValueError, match="TuneContext"):
        mutator.apply(Schedule(module("matmul")).trace, random.Random(0))


def test_the_same_seed_mutates_the_same():
    _, _, trace = space("matmul")
    one, two = (MutateTileSize().apply(trace, random.Random(7)) for _ in range(2))
    assert decisions(one) == decisions(two)


def test_defaults_by_name():
    assert sum(Mutator.create("llvm").values()) == pytest.approx(1.0)


def test_thread_binding():
    made = PostOrderApply(sch_rules="cuda", postprocs="cuda", mutator_probs="cuda")
    TuneContext(module("columns"), target="nvidia/tesla-p100", space_generator=made, rand_state=3)
    trace = made.generate_design_space(module("columns"))[1].trace
    for seed in range(4):
        mutated = MutateThreadBinding().apply(trace, random.Random(seed))
        ((before, after),) = changed(trace, mutated)
        assert before != after
        check("columns", finished(made, mutated, "columns").mod, targets=("wasm",))


def test_a_mutator_draws_by_itself_where_it_is_given_no_generator():
    _, _, trace = space("matmul")
    mutated = MutateTileSize().apply(trace)
    ((before, after),) = changed(trace, mutated)
    assert prod(before) == prod(after)
