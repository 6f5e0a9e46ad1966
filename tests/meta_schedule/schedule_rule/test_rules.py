"""Each rule alone: what it does to a program, and that the numbers stay."""

import pytest

from mlcweb.ir import IRModule
from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.postproc import RewriteLayout
from mlcweb.meta_schedule.schedule_rule import (
    AddRFactor,
    ApplyCustomRule,
    AutoInline,
    FuseRows,
    InlineConstantScalars,
    MultiLevelTiling,
    ParallelizeVectorizeUnroll,
    RandomComputeLocation,
    ReduceInLanes,
    RegisterTiling,
    ReuseType,
    ScheduleRule,
    VectorLanes,
)
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from mlcweb.tir.stmt import For, ForKind
from tests.meta_schedule.schedule_rule.small import PROGRAMS, check, drawn, module, spaces, steps

INLINE = {
    "into_producer": False,
    "into_consumer": True,
    "inline_const_tensor": True,
    "disallow_if_then_else": True,
    "require_injective": True,
    "require_ordered": True,
    "disallow_op": ["tir.exp"],
}


def names_of_blocks(sch):
    return [place.block.name_hint for place in sch.state.index.blocks.values()]


def kinds_of_loops(sch, name):
    return [sch.get(loop).kind for loop in sch.get_loops(sch.get_block(name))]


def check_drawn(name, space, seeds=(1, 2)):
    for seed in seeds:
        check(name, drawn(name, space, seed).mod)


def test_inline_constant_scalars():
    (sch,) = spaces("chain", InlineConstantScalars())
    assert names_of_blocks(sch) == ["root", "B", "C"]
    check("chain", sch.mod)


def test_auto_inline():
    (sch,) = spaces("chain", AutoInline(**INLINE))
    assert names_of_blocks(sch) == ["root", "C"]
    check("chain", sch.mod)


def test_auto_inline_leaves_what_is_dear_to_repeat():
    (sch,) = spaces("softmax", AutoInline(**INLINE))
    assert names_of_blocks(sch) == ["root", "largest", "power", "total", "B"]


def test_auto_inline_into_the_producer():
    (sch,) = spaces("matmul_relu", AutoInline(**{**INLINE, "into_producer": True}))
    # A reduction takes nothing in.
    assert names_of_blocks(sch) == ["root", "Y", "C"]


def test_add_rfactor():
    outer, inner, original = reversed(spaces("sum", AddRFactor(max_innermost_factor=8)))
    assert names_of_blocks(original) == ["root", "B"]
    for sch in (outer, inner):
        assert names_of_blocks(sch) == ["root", "B_rf", "B"]
        assert "sample_perfect_tile" in steps(sch)
        check_drawn("sum", sch)


def test_multi_level_tiling():
    rule = MultiLevelTiling(
        "SSRSRS", max_innermost_factor=8, reuse_write=ReuseType("may", [1], "local")
    )
    found = spaces("matmul", rule)
    assert [names_of_blocks(sch) for sch in found] == [["root", "C", "C_local"], ["root", "C"]]
    for sch in found:
        block = sch.get_block("C")
        assert len(sch.get_loops(block)) == 2 * 4 + 2
        assert sch.get(block).annotations["meta_schedule.tiling_structure"] == "SSRSRS"
        check_drawn("matmul", sch)


def test_multi_level_tiling_of_reads():
    rule = MultiLevelTiling("SRS", reuse_read=ReuseType("must", [2], "local"))
    (sch,) = spaces("matmul", rule)
    assert names_of_blocks(sch) == ["root", "A_local", "B_local", "C"]
    check_drawn("matmul", sch)


def test_multi_level_tiling_takes_a_consumer_for_the_copy():
    rule = MultiLevelTiling("SSRSRS", reuse_write=ReuseType("may", [1, 2], "global"))
    found = spaces("linear", rule)
    assert [steps(sch).count("reverse_compute_at") for sch in found] == [0, 1, 1]
    assert all("cache_write" not in steps(sch) for sch in found)


def test_multi_level_tiling_leaves_other_blocks():
    (sch,) = spaces("sum", MultiLevelTiling("SSRSRS"))
    assert "split" not in steps(sch)


@pytest.mark.parametrize("structure", ["", "SXS"])
def test_a_structure_has_two_letters(structure):
    with pytest.raises(ValueError, match="letters S and R"):
        MultiLevelTiling(structure)


def test_reads_cannot_be_copied_at_will():
    with pytest.raises(ValueError, match="must"):
        MultiLevelTiling("SRS", reuse_read=ReuseType("may", [1], "local"))


def test_parallelize_vectorize_unroll_notes_on_the_root():
    (sch,) = spaces("matmul", ParallelizeVectorizeUnroll(4, 8, [0, 16]))
    notes = sch.get(sch.get_block("root")).annotations
    assert notes["meta_schedule.parallel"] == 4
    assert notes["meta_schedule.vectorize"] == 8
    assert notes["meta_schedule.unroll_explicit"] in (0, 16)


def test_random_compute_location():
    (sch,) = spaces("softmax", RandomComputeLocation())
    assert steps(sch).count("sample_compute_location") == 3
    check_drawn("softmax", sch, seeds=range(1, 6))


def test_register_tiling_keeps_sums_in_registers():
    found = spaces("matmul", RegisterTiling())
    assert [names_of_blocks(sch)[1:] for sch in found] == [
        ["B_global", "C", "C_local"],
        ["C", "C_local"],
    ]
    for sch in found:
        assert sch.state.blocks_named("C", "main")[0].block.writes[0].buffer.scope() == "local"
        kinds = kinds_of_loops(sch, "C")
        assert kinds[-3:] == [ForKind.UNROLLED, ForKind.UNROLLED, ForKind.VECTORIZED]
        assert sch.get(sch.get_loops(sch.get_block("C"))[-1]).extent.value % 4 == 0
        check_drawn("matmul", sch)


def test_register_tiling_stores_through_a_consumer():
    for sch in spaces("matmul_relu", RegisterTiling()):
        assert "cache_write" not in steps(sch)
        check_drawn("matmul_relu", sch)


def test_register_tiling_packs_what_lies_apart():
    """Of a convolution six pixels wide, the lanes are filters."""
    (sch,) = spaces("conv", RegisterTiling())
    assert steps(sch).count("transform_layout") == 2
    weights = sch.state.blocks_named("W_global", "main")[0].block.writes[0].buffer
    assert [extent.value for extent in weights.shape] == [3, 3, 3, 8]
    check_drawn("conv", sch)


def test_register_tiling_leaves_free_layouts_to_rewrite_layout():
    """Nothing packs the weights, and the results are stored by what reads them."""
    (sch,) = spaces("conv_relu_free", RegisterTiling())
    assert names_of_blocks(sch)[1:] == ["B", "R"]
    assert steps(sch).count("transform_layout") == 1
    check_drawn("conv_relu_free", sch)
    assert RewriteLayout().apply(sch)
    weights = sch.state.blocks_named("W_global", "main")[0].block.writes[0].buffer
    # The lanes are filters, four at a time.
    assert weights.shape[-1].value % 4 == 0 and len(weights.shape) > 4
    check("conv_relu_free", sch.mod)


def test_register_tiling_fills_the_registers_of_its_target():
    """Sixteen lanes and 32 registers: tiles of up to 14 rows. Filters fill whole vectors, so that
    rows of pixels, which fill a quarter, are no lanes."""
    text = PROGRAMS["conv"]
    larger = {"(1, 3, 8, 8": "(1, 3, 30, 30", "(8, 3": "(32, 3"}
    for old, new in {**larger, "1, 8, 6, 6": "1, 32, 28, 28"}.items():
        text = text.replace(old, new)
    text = text.replace("grid(1, 8, 6, 6", "grid(1, 32, 28, 28")
    mod = IRModule({"main": from_source(text)})
    made = PostOrderApply(sch_rules=[RegisterTiling()], postprocs=[], mutator_probs={})
    TuneContext(mod, target="llvm -mcpu=skylake-avx512", space_generator=made, rand_state=1)
    (sch,) = made.generate_design_space(mod)
    limits = [i.attrs[1] for i in sch.trace.insts if i.kind.name == "SamplePerfectTile"]
    assert limits[:2] == [14, 14]
    lanes = sch.get(sch.get_loops("B")[-1]).extent.value
    assert lanes % 16 == 0
    assert sch.get(sch.get_block("B")).annotations["meta_schedule.min_vectors"] == 8


def test_lanes_of_strided_convolutions_are_filters():
    """Every other pixel does not come to lie beside the next one in another order of dimensions."""
    text = (
        PROGRAMS["conv"].replace("1, 3, 8, 8", "1, 3, 17, 17").replace("1, 8, 6, 6", "1, 8, 8, 8")
    )
    text = text.replace("vy + vp, vx + vq", "vy * 2 + vp, vx * 2 + vq")
    mod = IRModule({"main": from_source(text)})
    made = PostOrderApply(sch_rules=[RegisterTiling()], postprocs=[], mutator_probs={})
    TuneContext(mod, target="wasm", space_generator=made, rand_state=1)
    for sch in made.generate_design_space(mod):
        block = sch.get(sch.get_block("B"))
        lane = sch.get(sch.get_loops("B")[-1]).loop_var
        (place,) = sch.state.blocks_named("B", "main")
        of_filters = place.realize.iter_values[1]
        assert block.iter_vars[1].var.name == "vf"
        assert lane in set(walk(of_filters))


def test_register_tiling_leaves_what_is_not_worth_packing():
    (sch,) = spaces("linear", RegisterTiling())
    assert "vectorize" not in steps(sch)


@pytest.mark.parametrize("name", ["linear", "softmax", "sum"])
def test_reduce_in_lanes(name):
    (sch,) = spaces(name, ReduceInLanes())
    made = [found for found in names_of_blocks(sch) if found.endswith("_rf")]
    # Of each reduction one block for vectors of sums, and one that adds these up.
    assert len(made) == 2 * {"linear": 1, "softmax": 2, "sum": 1}[name]
    for block in made:
        assert kinds_of_loops(sch, block)[-2:] == [ForKind.UNROLLED, ForKind.VECTORIZED]
        assert sch.get(sch.get_loops(sch.get_block(block))[-1]).extent.value == 4
    check_drawn(name, sch, seeds=(1, 2, 3))


def test_reduce_in_lanes_leaves_what_has_spatial_lanes():
    (sch,) = spaces("matmul", ReduceInLanes())
    assert "rfactor" not in steps(sch)


def test_fuse_rows_puts_a_whole_row_into_one_loop():
    fused, first = spaces("softmax", FuseRows())
    assert set(steps(first)) == {"get_block"}
    root = fused.get(fused.get_block("root"))
    assert isinstance(root.body, For)
    assert {fused.get(fused.get_loops(fused.get_block(name))[0]) for name in ("total", "B")} == {
        root.body
    }
    # A row of the powers is made once and read twice.
    assert "compute_inline" not in steps(fused)
    check_drawn("softmax", fused, seeds=(1, 2, 3))


def test_fuse_rows_keeps_what_is_made_once_for_a_row():
    unfused, fused = spaces("layer_norm", FuseRows(), AutoInline(**INLINE))
    assert not {"mean", "factor"} & set(names_of_blocks(unfused))
    assert {"mean", "factor"} <= set(names_of_blocks(fused))
    check_drawn("layer_norm", fused, seeds=(1, 2, 3))


def test_fuse_rows_computes_rows_together_that_read_the_same():
    fused, _ = spaces("scaled_rows", FuseRows())
    extents = set()
    for seed in range(8):
        sch = drawn("scaled_rows", fused, seed)
        rows = sch.get(sch.get_loops(sch.get_block("B"))[-2])
        assert rows.kind == ForKind.UNROLLED
        extents.add(rows.extent.value)
        check("scaled_rows", sch.mod)
    assert {1, 2} <= extents <= {1, 2, 3}
    alone, _ = spaces("layer_norm", FuseRows())
    assert len(alone.get_loops(alone.get_block("B"))) == 2


@pytest.mark.parametrize("name", ["matmul", "matmul_relu", "linear", "sum", "columns", "chain"])
def test_fuse_rows_leaves_what_has_no_rows(name):
    (sch,) = spaces(name, FuseRows())
    assert set(steps(sch)) == {"get_block"}


def test_vector_lanes():
    (sch,) = spaces("chain", VectorLanes([8]))
    for name in ("root", "B", "C"):
        assert sch.get(sch.get_block(name)).annotations["meta_schedule.lanes"] == 8
    (sch,) = spaces("matmul", VectorLanes([8]))
    assert "meta_schedule.lanes" not in sch.get(sch.get_block("C")).annotations


def test_apply_custom_rule():
    sch = Schedule(module("chain"))
    block = sch.get_block("C")
    sch.annotate(block, "schedule_rule", "halve")

    def halve(sch, block):
        sch.split(sch.get_loops(block)[0], [2, None])
        return [sch]

    register_func("meta_schedule.cpu.halve", halve)
    try:
        (made,) = ApplyCustomRule().apply(sch, block)
    finally:
        remove_global_func("meta_schedule.cpu.halve")
    assert len(made.get_loops(block)) == 3


def test_a_custom_rule_that_fails_is_named():
    sch = Schedule(module("chain"))
    block = sch.get_block("C")
    sch.annotate(block, "schedule_rule", "broken")

    def broken(sch, block):
        raise ValueError("no such loop")

    register_func("meta_schedule.cpu.broken", broken)
    try:
        with pytest.raises(
            ValueError, match=r'"meta_schedule\.cpu\.broken" failed: ValueError: no'
        ):
            ApplyCustomRule().apply(sch, block)
    finally:
        remove_global_func("meta_schedule.cpu.broken")


def test_a_custom_rule_that_nobody_knows_leaves_the_block_to_others():
    sch = Schedule(module("chain"))
    block = sch.get_block("C")
    sch.annotate(block, "schedule_rule", "unheard of")
    assert ApplyCustomRule().apply(sch, block) == [sch]
    assert not sch.get(block).annotations


def test_register_tiling_of_sums_of_columns():
    """Nothing is read twice, but neighbouring columns make vectors."""
    (sch,) = spaces("columns", RegisterTiling())
    assert kinds_of_loops(sch, "B")[-1] == ForKind.VECTORIZED
    check_drawn("columns", sch)


@pytest.mark.parametrize("kind", ["llvm", "wasm"])
def test_defaults_by_name(kind):
    assert isinstance(ScheduleRule.create(kind)[0], ApplyCustomRule)


def test_no_defaults_for_other_names():
    with pytest.raises(ValueError, match='"llvm"'):
        ScheduleRule.create("abacus")


def test_defaults_are_those_of_what_generates_the_code():
    def rules(target):
        space = PostOrderApply()
        TuneContext(module("matmul"), target=target, space_generator=space, rand_state=1)
        return [type(rule) for rule in space.sch_rules or ()]

    kinds = {
        kind: [type(rule) for rule in ScheduleRule.create(kind)]
        for kind in ("llvm", "wasm", "cuda")
    }
    assert rules("wasm") == kinds["wasm"] != kinds["llvm"]
    assert rules("numpy") == rules("interpreter") == kinds["llvm"]
    with pytest.raises(ValueError, match=r'no default rules, .* for "hexagon".*sch_rules='):
        rules("hexagon")
    assert rules("nvidia/tesla-p100") == rules("opencl") == kinds["cuda"]
    # Who brings all of it needs no defaults.
    own = PostOrderApply(sch_rules=[], postprocs=[], mutator_probs={})
    context = TuneContext(module("matmul"), target="hexagon", space_generator=own)
    assert not context.postprocs


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_leave_the_root_block_in_peace(name):
    for kind in ("llvm", "wasm"):
        for rule in ScheduleRule.create(kind):
            sch = Schedule(module(name))
            # What goes over all blocks at once offers a copy besides.
            assert rule.apply(sch, sch.get_block("root"))[0] is sch
