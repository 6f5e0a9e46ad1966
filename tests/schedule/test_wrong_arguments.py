"""Every argument of every primitive, given values of other types: the error names the argument or
the place in the program, and the schedule stays as it is."""

import math
import re

import numpy as np
import pytest

from mlcweb.ir import InternalError
from mlcweb.schedule import ScheduleError
from mlcweb.schedule.instruction import KINDS, BlockRV, LoopRV
from mlcweb.tir import IndexMap, Schedule, Var
from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.case_files import module


class Loop(int):
    """A loop around the block "B", counted from the outermost."""


class Other:
    def __repr__(self):
        return "<other>"


BOOLEAN, INTEGER, TEXT, LOOP, BLOCK, LIST, BUFFER, MAP, DECISION, ANY = (
    "boolean", "integer", "text", "loop", "block", "list", "buffer", "map", "decision", "any",
)  # fmt: skip

ARGUMENTS = {
    "add_unit_loop": {"block_or_loop": ("B", BLOCK)},
    "annotate": {"block_or_loop": ("B", BLOCK), "ann_key": ("k", TEXT), "ann_val": (1, ANY)},
    "annotate_buffer_access": {
        "block": ("B", BLOCK),
        "buffer_index": (0, INTEGER),
        "buf_type": ("read", TEXT),
        "gen_new_ranges": (lambda i, j: [(i, i + 1), (j, j + 1)], MAP),
    },
    "bind": {"loop": (Loop(0), LOOP), "thread_axis": ("threadIdx.x", TEXT)},
    "blockize": {"target": (Loop(0), LIST), "preserve_unit_iters": (True, BOOLEAN)},
    "cache_index": {
        "block": ("B", BLOCK),
        "storage_scope": ("global", TEXT),
        "cse_thresh": (0, INTEGER),
    },
    "cache_inplace": {
        "block": ("E", BLOCK),
        "read_buffer_index": (0, BUFFER),
        "storage_scope": ("global", TEXT),
    },
    "cache_read": {
        "block": ("D", BLOCK),
        "read_buffer_index": (0, BUFFER),
        "storage_scope": ("global", TEXT),
        "consumer_blocks": (["D"], LIST),
    },
    "cache_write": {
        "block": ("D", BLOCK),
        "write_buffer_index": (0, BUFFER),
        "storage_scope": ("global", TEXT),
        "consumer_blocks": (None, LIST),
    },
    "compute_at": {
        "block": ("B", BLOCK),
        "loop": (Loop(0), LOOP),
        "preserve_unit_loops": (False, BOOLEAN),
        "index": (-1, INTEGER),
    },
    "compute_inline": {"block": ("B", BLOCK)},
    "decompose_padding": {"block": ("B", BLOCK), "loop": (Loop(0), LOOP)},
    "decompose_reduction": {"block": ("E", BLOCK), "loop": (Loop(0), LOOP)},
    "enter_postproc": {},
    "fuse": {"loops": ([Loop(0), Loop(1)], LOOP), "preserve_unit_iters": (True, BOOLEAN)},
    "fuse_reduction_epilogue": {"reduction_block": ("E", BLOCK), "epilogue_block": ("D", BLOCK)},
    "get_block": {"name": ("B", TEXT), "func_name": (None, TEXT)},
    "get_child_blocks": {"block_or_loop": ("root", BLOCK)},
    "get_consumers": {"block": ("B", BLOCK)},
    "get_loops": {"block": ("B", BLOCK)},
    "get_output_blocks": {"block": ("root", BLOCK)},
    "get_producers": {"block": ("B", BLOCK)},
    "loop_partition": {
        "loop": (Loop(0), LOOP),
        "factors": ([4, None], LIST),
        "preserve_unit_iters": (True, BOOLEAN),
    },
    "merge": {"loops": ([Loop(0), Loop(1)], LOOP)},
    "pad_einsum": {"block": ("B", BLOCK), "padding": ([16, 16], LIST)},
    "parallel": {"loop": (Loop(0), LOOP)},
    "read_at": {
        "loop": (Loop(0), LOOP),
        "block": ("B", BLOCK),
        "read_buffer_index": (0, BUFFER),
        "storage_scope": ("local", TEXT),
    },
    "reindex": {"block": ("B", BLOCK), "buffer": (("read", 0), BUFFER)},
    "reindex_cache_read": {
        "block": ("B", BLOCK),
        "read_buffer_index": (0, INTEGER),
        "storage_scope": ("local", TEXT),
        "index_map": (lambda i, j: (i, j), MAP),
    },
    "reindex_cache_write": {
        "block": ("B", BLOCK),
        "write_buffer_index": (0, INTEGER),
        "storage_scope": ("local", TEXT),
        "index_map": (lambda i, j: (i, j), MAP),
    },
    "reorder": {"ordered_loops": ([Loop(1), Loop(0)], LOOP)},
    "reorder_block_iter_var": {"block": ("B", BLOCK), "new_order": ([1, 0], LIST)},
    "reverse_compute_at": {
        "block": ("D", BLOCK),
        "loop": (Loop(0), LOOP),
        "preserve_unit_loops": (False, BOOLEAN),
        "index": (-1, INTEGER),
    },
    "reverse_compute_inline": {"block": ("D", BLOCK)},
    "rfactor": {"loop": (Loop(1), LOOP), "factor_axis": (0, INTEGER)},
    "rolling_buffer": {"block": ("B", BLOCK), "write_buffer_index": (0, BUFFER)},
    "sample_categorical": {
        "candidates": ([1, 2], LIST),
        "probs": ([0.5, 0.5], LIST),
        "decision": (None, DECISION),
    },
    "sample_compute_location": {"block": ("B", BLOCK), "decision": (None, DECISION)},
    "sample_partitioned_tile": {
        "loop": (Loop(0), LOOP),
        "n": (2, INTEGER),
        "partition_pos": (0, INTEGER),
        "innerpart_factor": (1, INTEGER),
        "decision": (None, DECISION),
    },
    "sample_perfect_tile": {
        "loop": (Loop(0), LOOP),
        "n": (2, INTEGER),
        "max_innermost_factor": (16, INTEGER),
        "decision": (None, DECISION),
    },
    "set_axis_separator": {
        "block": ("B", BLOCK),
        "buffer": (("write", 0), BUFFER),
        "axis_separators": ([1], LIST),
    },
    "set_scope": {
        "block": ("B", BLOCK),
        "buffer_index": (0, BUFFER),
        "storage_scope": ("local", TEXT),
    },
    "split": {
        "loop": (Loop(0), LOOP),
        "factors": ([None, 4], LIST),
        "preserve_unit_iters": (True, BOOLEAN),
        "disable_predication": (False, BOOLEAN),
    },
    "storage_align": {
        "block": ("B", BLOCK),
        "buffer_index": (0, BUFFER),
        "axis": (0, INTEGER),
        "factor": (32, INTEGER),
        "offset": (8, INTEGER),
    },
    "tensorize": {
        "block_or_loop": (Loop(0), BLOCK),
        "tensor_intrin": ("absent", TEXT),
        "preserve_unit_iters": (True, BOOLEAN),
    },
    "transform_block_layout": {
        "block": ("B", BLOCK),
        "index_map": (lambda i, j: [i * 16 + j], MAP),
    },
    "transform_layout": {
        "block": ("B", BLOCK),
        "buffer": (("write", 0), BUFFER),
        "index_map": (lambda i, j: [j, i], MAP),
        "pad_value": (0.0, MAP),
        "assume_injective_transform": (False, BOOLEAN),
    },
    "unannotate": {"block_or_loop": ("B", BLOCK), "ann_key": ("k", TEXT)},
    "unroll": {"loop": (Loop(0), LOOP)},
    "unsafe_hide_buffer_access": {
        "block": ("B", BLOCK),
        "buf_type": ("read", TEXT),
        "buf_index_array": ([0], LIST),
    },
    "unsafe_set_dtype": {
        "block": ("B", BLOCK),
        "buffer_index": (0, INTEGER),
        "dtype": ("float16", TEXT),
    },
    "vectorize": {"loop": (Loop(1), LOOP)},
    "write_at": {
        "loop": (Loop(0), LOOP),
        "block": ("B", BLOCK),
        "write_buffer_index": (0, BUFFER),
        "storage_scope": ("local", TEXT),
    },
}
"""For each argument of each primitive a right value, and of what kind the right values are."""

VALUES = [
    3.5, math.nan, 2**70, "x", b"x", ["x"], [[1]], [None], [Var("n")], {}, {1: 2}, {1, 2}, Other(),
    Other, LoopRV(), BlockRV(), Var("n", "float32"), ("read",), ("read", "x"), (None, None),
    np.zeros(3), 1j,
]  # fmt: skip


MODULE = module(PROGRAM)


def is_right(value, kind, name):
    """Whether one of `VALUES` is right for an argument, or wrong only in this program."""
    if kind == ANY:
        is_recordable = isinstance(value, (float, int, str, list, dict, tuple, Var))
        return is_recordable and repr(value) != "(None, None)"
    if kind == LIST:
        return name in ("split", "loop_partition") and repr(value) == "[None]"
    return type(value) is {TEXT: str, MAP: float}.get(kind)


def call(name, wrong, value):
    sch = Schedule(MODULE, error_render_level="fast")

    def resolved(item):
        if isinstance(item, Loop):
            return sch.get_loops("B")[item]
        return [resolved(one) for one in item] if isinstance(item, list) else item

    arguments = {key: resolved(right) for key, (right, _) in ARGUMENTS[name].items()}
    starred = next((kind.starred for kind in KINDS.values() if kind.method == name), None)
    if wrong == starred:
        arguments[starred][0] = value
    else:
        arguments[wrong] = value
    before = sch.mod
    try:
        getattr(sch, name)(*arguments.pop(starred, ()), **arguments)
    except BaseException:
        assert sch.mod is before
        raise


def test_the_table_has_all_primitives():
    assert set(ARGUMENTS) == {kind.method for kind in KINDS.values()}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_values_of_other_types_are_refused(name):
    for argument, (_, kind) in ARGUMENTS[name].items():
        for value in VALUES:
            if is_right(value, kind, name):
                continue
            with pytest.raises((TypeError, ValueError, IndexError, ScheduleError)) as caught:
                call(name, argument, value)
            error, where = caught.value, f"{name}({argument}={value!r}): {caught.value!r}"
            if not isinstance(error, ScheduleError):
                assert type(error) in (TypeError, ValueError, IndexError), where
            if type(error) is TypeError:
                assert str(error).startswith(f"Schedule.{name}, {argument}: "), where
            assert "object is not" not in str(error), where


def test_a_name_is_no_list_of_blocks():
    sch = Schedule(MODULE)
    with pytest.raises(TypeError, match=r"'B' is not a loop \(.*\) or a list"):
        sch.blockize("B")


def test_an_unknown_thread_axis_says_which_there_are():
    sch = Schedule(MODULE)
    with pytest.raises(ScheduleError, match="What would work: blockIdx, threadIdx or") as caught:
        sch.bind(sch.get_loops("B")[0], "x")
    assert isinstance(caught.value, InternalError)  # TVM's class


def test_remove_rv_of_what_is_no_random_variable():
    sch = Schedule(MODULE)
    loop = sch.get_loops("B")[0]
    sch.remove_rv(loop)
    for value in (loop, LoopRV(), Var("n")):
        with pytest.raises(IndexError, match="is no random variable of this schedule"):
            sch.remove_rv(value)
    for value in (3, [loop], "B"):
        with pytest.raises(TypeError, match=r"Schedule\.remove_rv, rand_var: "):
            sch.remove_rv(value)


def test_a_map_has_no_variables_without_a_value():
    sch = Schedule(MODULE)
    n = Var("n")
    message = re.escape('The map uses "n", which is neither an index, nor')
    with pytest.raises(ValueError, match=message):
        sch.transform_layout("B", ("write", 0), lambda i, j: [i, j + n])
    with pytest.raises(ValueError, match=message):
        sch.transform_layout("B", ("write", 0), IndexMap.from_func(lambda i, j: [i // n, i % n, j]))
    with pytest.raises(ValueError, match=message):
        sch.transform_layout("B", ("write", 0), lambda i, j: [i // 5, i % 5, j], pad_value=n)


def test_probabilities_may_be_integers():
    sch = Schedule(MODULE, seed=1)
    assert sch.get(sch.sample_categorical([3, 4], [0, 1])) == 4
    with pytest.raises(TypeError, match="sample_categorical, probs: 'x' is not a number"):
        sch.sample_categorical([3, 4], ["x", 1.0])
