"""Design spaces compared with expected programs, and parts of a search that measure nothing."""

import pytest

from mlcweb import te
from mlcweb.meta_schedule.schedule_rule import (
    AutoInline,
    MultiLevelTilingTensorCore,
    ReuseType,
)
from mlcweb.meta_schedule.space.tensor_core_tiling import wmma_groups
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule, Trace
from mlcweb.testing import te_workload
from mlcweb.testing.dummy_object import DummyMutator, DummyRunner
from mlcweb.testing.space_generation import (
    check_sketches,
    generate_design_space,
    get_rules,
    print_sketches,
)

INLINED = te.create_prim_func(te_workload.matmul_relu(8, 8, 8))


def test_expected_programs_are_found_among_the_sketches(capsys):
    found = generate_design_space("llvm", INLINED, Target("llvm -num-cores=4"), AutoInline)
    check_sketches(INLINED, found, [sch.mod for sch in found], [[] for _ in found])
    with pytest.raises(AssertionError, match="No sketch becomes the expected program 0"):
        check_sketches(INLINED, found, [te.create_prim_func(te_workload.matmul(8, 8, 8))], [[]])
    with pytest.raises(AssertionError, match="1 sketches, 0 expected"):
        check_sketches(INLINED, found, [], [])
    print_sketches(found)
    assert "Sketch 0" in capsys.readouterr().out


def test_rules_are_chosen_by_class_or_given():
    assert [type(rule) for rule in get_rules("llvm", AutoInline)] == [AutoInline] * len(
        get_rules("llvm", AutoInline)
    )
    with pytest.raises(ValueError, match="types or sch_rules"):
        generate_design_space("llvm", INLINED, Target("llvm"), None)


@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_on_tensor_cores(kernel):
    conv = te_workload.conv2d_nhwc(
        1, 16, 16, 32, 32, kernel, 1, kernel // 2, in_dtype="float16", out_dtype="float32"
    )
    program = te.create_prim_func(conv)
    rule = MultiLevelTilingTensorCore(
        wmma_groups(),
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 4],
        reuse_read=ReuseType(req="must", levels=[4], scope="shared"),
        reuse_write=ReuseType(req="must", levels=[2], scope="shared"),
    )
    rules = [rule, *get_rules("cuda", AutoInline)]
    target = Target("nvidia/geforce-rtx-3090")
    found, *_ = generate_design_space("cuda", program, target, None, rules)
    steps = [inst for inst in found.trace.insts if inst.kind.name == "SamplePerfectTile"]
    rows, columns, depth = 256 // 16, 32 // 16, 32 * kernel * kernel // 16
    tiles = [(rows, 5), (columns, 5), (depth, 3)]
    decided = [("SamplePerfectTile", [size] + [1] * (n - 1)) for size, n in tiles]
    sch = Schedule(program)
    chosen = {inst: made for inst, (_, made) in zip(steps, decided, strict=True)}
    Trace(found.trace.insts, {**found.trace.decisions, **chosen}).apply_to_schedule(sch)
    assert sch.mod.script().count("wmma_sync_16x16x16_f16f16f32") == 1


def test_parts_that_do_nothing():
    (future,) = DummyRunner().run([None])
    assert future.done()
    assert all(5 <= seconds <= 30 for seconds in future.result().run_secs)
    sch = Schedule(INLINED)
    sch.sample_categorical([1, 2], [0.5, 0.5])
    assert DummyMutator().clone().apply(sch.trace, 0).decisions == {}
