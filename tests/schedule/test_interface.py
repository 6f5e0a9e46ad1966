"""The methods that `Schedule` gets from the primitives, as Python, editors and TVM see them."""

import inspect

import pytest

from mlcweb.schedule.instruction import KINDS
from mlcweb.schedule.registry import primitive
from mlcweb.tir import Schedule
from tests.programs import matmul
from tests.schedule import stub

SIGNATURES = """
add_unit_loop(block_or_loop)
annotate(block_or_loop, ann_key, ann_val)
annotate_buffer_access(block, buffer_index, buf_type, gen_new_ranges)
bind(loop, thread_axis)
blockize(target, preserve_unit_iters=True)
cache_index(block, storage_scope, cse_thresh=0)
cache_inplace(block, read_buffer_index, storage_scope)
cache_read(block, read_buffer_index, storage_scope, consumer_blocks=None)
cache_write(block, write_buffer_index, storage_scope, consumer_blocks=None)
compute_at(block, loop, preserve_unit_loops=False, index=-1)
compute_inline(block)
decompose_padding(block, loop)
decompose_reduction(block, loop)
enter_postproc()
fuse(*loops, preserve_unit_iters=True)
fuse_reduction_epilogue(reduction_block, epilogue_block)
get_block(name, func_name=None)
get_child_blocks(block_or_loop)
get_consumers(block)
get_loops(block)
get_output_blocks(scope_block=None, *, block=None)
get_producers(block)
get_sblock(name, func_name=None)
loop_partition(loop, factors, preserve_unit_iters=True)
merge(*loops)
pad_einsum(block, padding)
parallel(loop)
read_at(loop, block, read_buffer_index, storage_scope)
reindex(block, buffer)
reindex_cache_read(block, read_buffer_index, storage_scope, index_map)
reindex_cache_write(block, write_buffer_index, storage_scope, index_map)
reorder(*ordered_loops)
reorder_block_iter_var(block, new_order)
reverse_compute_at(block, loop, preserve_unit_loops=False, index=-1)
reverse_compute_inline(block)
rfactor(loop, factor_axis)
rolling_buffer(block, write_buffer_index)
sample_categorical(candidates, probs, decision=None)
sample_compute_location(block, decision=None)
sample_partitioned_tile(loop, n, partition_pos=0, innerpart_factor=1, decision=None)
sample_perfect_tile(loop, n, max_innermost_factor=16, decision=None)
set_axis_separator(block, buffer, axis_separators)
set_scope(block, buffer_index, storage_scope)
split(loop, factors, preserve_unit_iters=True, disable_predication=False)
storage_align(block, buffer_index, axis, factor, offset)
tensorize(block_or_loop, tensor_intrin, preserve_unit_iters=True)
transform_block_layout(block, index_map)
transform_layout(block, buffer, index_map, pad_value=None, *, assume_injective_transform=False)
unannotate(block_or_loop, ann_key)
unroll(loop)
unsafe_hide_buffer_access(block, buf_type, buf_index_array)
unsafe_set_dtype(block, buffer_index, dtype)
vectorize(loop)
write_at(loop, block, write_buffer_index, storage_scope)
"""
"""Names, parameters and defaults as in TVM 0.27 (and the name that it has printed for the argument
of get_output_blocks)."""


@pytest.mark.parametrize("row", SIGNATURES.split("\n")[1:-1], ids=lambda row: row.split("(")[0])
def test_names_and_defaults_are_those_of_tvm(row):
    method = getattr(Schedule, row.split("(")[0])
    signature = inspect.signature(method)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    assert f"{row.split('(')[0]}{inspect.Signature(plain)}" == row
    assert all(p.annotation != p.empty for p in signature.parameters.values() if p.name != "self")
    assert signature.return_annotation != signature.empty


def test_every_primitive_is_a_documented_method():
    assert {row.split("(")[0] for row in SIGNATURES.split("\n")} >= {
        kind.method for kind in KINDS.values()
    }
    for kind in KINDS.values():
        method = getattr(Schedule, kind.method)
        assert inspect.isfunction(method)
        assert method.__doc__, kind.method
        assert method.__qualname__ == f"Schedule.{kind.method}"
        assert f"def {kind.method}(" in inspect.getsource(method)


def test_the_stub_is_up_to_date():
    assert stub.STUB.read_text("utf8") == stub.text(), "run `python -m tests.schedule.stub`"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, l: s.split(l), "missing 1 required positional argument: 'factors'"),
        (lambda s, l: s.split(l, factor=4), r"no factor, which TE had: write factors=\[None, 4\]"),
        (lambda s, l: s.split(l, nparts=4), r"no nparts, which TE had: write factors=\[4, None\]"),
        (lambda s, l: s.reorder(l, random=1), "unexpected keyword argument 'random'"),
        (lambda s, l: s.sample_perfect_tile(l, 2, random=1), "unexpected keyword argument"),
        (lambda s, l: s.compute_inline(l), "is not a block"),
        (lambda s, l: s.rfactor(l, "0"), "'0' is not an integer"),
        (lambda s, l: s.storage_align("C", 0, 0, 1.5, 0), "1.5 is not an integer"),
        (lambda s, l: s.bind(l, 3), "3 is not a string"),
        (lambda s, l: s.cache_read("C", 0, None), "None is not a string"),
        (lambda s, l: s.pad_einsum("C", [16, "x", 16]), "'x' is not an integer"),
    ],
)
def test_wrong_arguments_are_type_errors_and_change_nothing(call, message):
    sch = Schedule(matmul())
    loop = sch.get_loops("C")[0]
    before = sch.mod
    with pytest.raises(TypeError, match=message):
        call(sch, loop)
    assert sch.mod is before
    assert {inst.kind.name for inst in sch.trace.insts} <= {"GetBlock", "GetLoops"}


def test_a_result_of_an_unknown_type_is_refused_where_it_is_declared():
    def turn(state, loop: "Var") -> "tuple[ScheduleState, Buffer]": ...

    with pytest.raises(TypeError, match=r"returns tuple\[ScheduleState, Buffer\]"):
        primitive("Turn")(turn)
    assert "Turn" not in KINDS


def test_a_parameter_of_an_unknown_type_is_refused_where_it_is_declared():
    def turn(state, loop: "Loop") -> "ScheduleState": ...

    with pytest.raises(TypeError, match='"loop: Loop" of the primitive "turn"'):
        primitive("Turn")(turn)
    assert "Turn" not in KINDS
