"""Trace: naming, editing, replaying."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import Trace
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu


def test_an_empty_trace_prints_pass():
    assert str(Schedule(matmul()).trace).splitlines() == [
        "# from tvm import tir",
        "def apply_trace(sch: tir.Schedule) -> None:",
        "  pass",
    ]


def test_names_share_one_count_and_single_lists_have_a_comma():
    sch = Schedule(matmul_relu())
    root = sch.get_block("root")
    sch.get_child_blocks(root)
    (output,) = sch.get_output_blocks(root)
    sch.get_producers(output)
    sch.get_consumers("Y")
    assert sch.trace.as_python() == [
        'b0 = sch.get_block(name="root", func_name="main")',
        "b1, b2 = sch.get_child_blocks(b0)",
        "b3, = sch.get_output_blocks(block=b0)",
        "b4, = sch.get_producers(block=b3)",
        'b5 = sch.get_block(name="Y", func_name="main")',
        "b6, = sch.get_consumers(block=b5)",
    ]


def test_a_printed_trace_runs_as_a_function():
    sch = Schedule(matmul_relu(), seed=3)
    root = sch.get_block("root")
    (output,) = sch.get_output_blocks(root)
    i, j = sch.get_loops(output)
    sch.split(i, sch.sample_perfect_tile(i, n=2))
    sch.annotate(j, "note", [1, "two"])
    sch.cache_read(output, "Y", "local")
    names = {}
    exec(str(sch.trace).replace(": tir.Schedule", ""), names)
    again = Schedule(matmul_relu())
    names["apply_trace"](again)
    assert_structural_equal(again.mod, sch.mod)
    assert str(again.trace) == str(sch.trace)


def test_arithmetic_on_sampled_values_replays():
    sch = Schedule(matmul())
    i = sch.get_loops("C")[0]
    outer, inner = sch.sample_perfect_tile(i, n=2, decision=[32, 4])
    sch.split(i, [outer // 2, inner * 2])
    assert "factors=[v4 // 2, v5 * 2]" in sch.trace.as_python()[-1]
    again = Schedule(matmul())
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)


def test_a_decision_provider_decides_anew():
    sch = Schedule(matmul())
    i = sch.get_loops("C")[0]
    sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[32, 4]))
    again = Schedule(matmul())
    sch.trace.apply_to_schedule(again, decision_provider=lambda inst, inputs, attrs, old: old[::-1])
    assert "decision=[4, 32]" in str(again.trace)


def test_simplified_drops_queries_that_nothing_uses():
    sch = Schedule(matmul())
    sch.get_block("root")
    i, j, k = sch.get_loops("C")
    sch.parallel(i)
    sch.enter_postproc()
    sch.unroll(k)
    simple = sch.trace.simplified(remove_postproc=True)
    assert [inst.kind.name for inst in simple.insts] == ["GetBlock", "GetLoops", "Parallel"]
    assert len(sch.trace.insts) == 6


def test_append_and_pop():
    sch = Schedule(matmul())
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)
    trace = sch.trace.copy()
    inst = trace.pop()
    assert inst is not None
    assert trace.pop() is None
    trace.append(inst, 0)
    assert trace.get_decision(inst) == 0
    assert sch.trace.get_decision(inst) == 1


def test_a_record_of_tvm_replays():
    record = [
        [
            ["GetSBlock", [], ["C", "main"], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
            ["Split", ["l2", "None", 4], [True, False], ["l4", "l5"]],
            ["SampleCategorical", [], [[0, 16], ["T.float32(0.5)", "T.float32(0.5)"]], ["v6"]],
            ["Annotate", ["b0", "v6"], ["unroll"], []],
            ["Annotate", ["b0", '"SSRSRS"'], ["tiling"], []],
        ],
        [[3, 1]],
    ]
    sch = Schedule(matmul())
    Trace.apply_json_to_schedule(record, sch)
    assert sch.get(sch.get_block("C")).annotations == {"unroll": 16, "tiling": "SSRSRS"}
    written = sch.trace.as_json()[0]
    assert written[2] == ["Split", ["l2", "None", 4], [True, False], ["l4", "l5"]]
    assert written[5] == ["Annotate", ["b0", '"SSRSRS"'], ["tiling"], []]


def test_an_unknown_instruction_is_named():
    with pytest.raises(ValueError, match='Unknown schedule instruction "Twist"'):
        Trace.apply_json_to_schedule([[["Twist", [], [], []]], []], Schedule(matmul()))


def test_copies_go_their_own_ways():
    sch = Schedule(matmul(), seed=9)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    other = sch.copy()
    other.parallel(i)
    sch.unroll(k)
    assert "T.parallel" in other.mod.script()
    assert "T.parallel" not in sch.mod.script()
    assert len(sch.trace.insts) == len(other.trace.insts) == 3


def test_foreign_variables_are_refused():
    sch, other = Schedule(matmul()), Schedule(matmul())
    loop = other.get_loops("C")[0]
    with pytest.raises(IndexError, match="is not a loop of this schedule"):
        sch.unroll(loop)
    with pytest.raises(TypeError, match="is not a block"):
        sch.compute_inline(loop)


def test_references_to_statements_and_what_is_around_them():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    reference = sch.get_sref(block)
    assert reference.stmt is sch.get(block) is sch.get(reference)
    names = []
    while reference.parent is not None:
        reference = reference.parent
        names.append(getattr(reference.stmt, "name_hint", None) or reference.stmt.loop_var.name)
    assert names == ["k", "j", "i", "root"]
    assert sch.get_sref(sch.get(block)) == sch.get_sref(block)


def test_booleans_in_annotations_print_as_integers():
    sch = Schedule(matmul())
    loop = sch.get_loops("C")[0]
    sch.annotate(loop, "a", [True, 1, False])
    sch.annotate(loop, "b", {"x": True, "y": [False, 2]})
    # Both lines as TVM 0.26 and 0.27 print them; the program and the record keep the booleans.
    assert [line.partition("ann_val=")[2] for line in sch.trace.as_python()[-2:]] == [
        "[1, 1, 0])",
        '{"x": 1, "y": [0, 2]})',
    ]
    assert sch.trace.as_json()[0][-2][1] == ["l1", [True, 1, False]]
    assert '"a": [True, 1, False]' in sch.mod.script()


def test_a_simplified_trace_has_only_samples_that_are_used():
    sch = Schedule(matmul())
    i, _, k = sch.get_loops("C")
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=0)
    sch.sample_perfect_tile(k, n=2, decision=[4, 32])
    sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[16, 8]))
    # The text is TVM 0.27's, where get_block is called get_sblock.
    assert sch.trace.simplified(remove_postproc=True).as_python() == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        "v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=16, decision=[16, 8])",
        "l6, l7 = sch.split(loop=l1, factors=[v4, v5], preserve_unit_iters=True, "
        "disable_predication=False)",
    ]


def test_a_level_of_errors_that_there_is_not():
    with pytest.raises(ValueError, match="'brief', and not one of 'detail'"):
        Schedule(matmul(), error_render_level="brief")


def test_no_loops_to_fuse():
    with pytest.raises(ValueError, match="no loops to fuse"):
        Schedule(matmul()).fuse()
