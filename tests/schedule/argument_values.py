"""Calls of every primitive in which one argument has another value than it should.

They are Python that real TVM 0.27 runs, too: `PRELUDE` defines the names in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

PRELUDE = """
block, reader, reduction = sch.get_sblock("B"), sch.get_sblock("D"), sch.get_sblock("E")
root = sch.get_sblock("root")
i, j = sch.get_loops(block)
di, dj = sch.get_loops(reader)
ei, ek = sch.get_loops(reduction)
removed_block, removed_loop = sch.get_sblock("B"), sch.get_loops(block)[0]
sch.remove_rv(removed_block)
sch.remove_rv(removed_loop)
stale_block = sch.cache_read(block, 0, "global")
stale_loop = sch.get_loops(stale_block)[0]
sch.compute_inline(stale_block)
copied = sch.cache_read(block, 0, "global")
sampled = sch.sample_categorical([4], [1.0], decision=0)
other = s_tir.Schedule(sch.mod)
other_block = other.get_sblock("B")
other_loop = other.get_loops(other_block)[0]
sch.annotate(block, "there", 1)
""".strip().splitlines()

CALLS = {
    "add_unit_loop": {"block_or_loop": "block"},
    "annotate": {"block_or_loop": "block", "ann_key": "'key'", "ann_val": "1"},
    "annotate_buffer_access": {
        "block": "block",
        "buffer_index": "0",
        "buf_type": "'read'",
        "gen_new_ranges": "lambda i, j: [(i, i + 1), (j, j + 1)]",
    },
    "bind": {"loop": "i", "thread_axis": "'threadIdx.x'"},
    "blockize": {"target": "i", "preserve_unit_iters": "True"},
    "cache_index": {"block": "block", "storage_scope": "'global'", "cse_thresh": "0"},
    "cache_inplace": {
        "block": "reduction",
        "read_buffer_index": "0",
        "storage_scope": "'local'",
    },
    "cache_read": {
        "block": "reader",
        "read_buffer_index": "0",
        "storage_scope": "'local'",
        "consumer_blocks": "[reader]",
    },
    "cache_write": {
        "block": "block",
        "write_buffer_index": "0",
        "storage_scope": "'local'",
        "consumer_blocks": "[reader]",
    },
    "can_decompose_padding": {"block": "block", "loop": "i"},
    "compute_at": {
        "block": "copied",
        "loop": "i",
        "preserve_unit_loops": "False",
        "index": "-1",
    },
    "compute_inline": {"block": "block"},
    "decompose_padding": {"block": "block", "loop": "i"},
    "decompose_reduction": {"block": "reduction", "loop": "ei"},
    "fuse": {"*loops": "i, j", "preserve_unit_iters": "True"},
    "fuse_reduction_epilogue": {"reduction_block": "reduction", "epilogue_block": "reader"},
    "get_child_blocks": {"block_or_loop": "root"},
    "get_consumers": {"block": "block"},
    "get_loops": {"block": "block"},
    "get_output_blocks": {"scope_block": "root"},
    "get_producers": {"block": "reader"},
    "get_sblock": {"name": "'B'", "func_name": "None"},
    "loop_partition": {"loop": "i", "factors": "[4, None]", "preserve_unit_iters": "True"},
    "merge": {"*loops": "i, di"},
    "pad_einsum": {"block": "reduction", "padding": "[1, 1]"},
    "parallel": {"loop": "i"},
    "read_at": {
        "loop": "di",
        "block": "reader",
        "read_buffer_index": "0",
        "storage_scope": "'shared'",
    },
    "reindex": {"block": "reader", "buffer": "('read', 0)"},
    "reindex_cache_read": {
        "block": "reader",
        "read_buffer_index": "0",
        "storage_scope": "'local'",
        "index_map": "lambda i, j: (j, i)",
    },
    "reindex_cache_write": {
        "block": "block",
        "write_buffer_index": "0",
        "storage_scope": "'local'",
        "index_map": "lambda i, j: (j, i)",
    },
    "remove_rv": {"rand_var": "block"},
    "reorder": {"*ordered_loops": "j, i"},
    "reorder_block_iter_var": {"block": "block", "new_order": "[1, 0]"},
    "reverse_compute_at": {
        "block": "reader",
        "loop": "i",
        "preserve_unit_loops": "False",
        "index": "-1",
    },
    "reverse_compute_inline": {"block": "reader"},
    "rfactor": {"loop": "ek", "factor_axis": "0"},
    "rolling_buffer": {"block": "block", "write_buffer_index": "0"},
    "sample_categorical": {"candidates": "[1, 2]", "probs": "[0.5, 0.5]", "decision": "0"},
    "sample_compute_location": {"block": "block", "decision": "-1"},
    "sample_partitioned_tile": {
        "loop": "i",
        "n": "2",
        "partition_pos": "1",
        "innerpart_factor": "2",
        "decision": "[4, 4]",
    },
    "sample_perfect_tile": {
        "loop": "i",
        "n": "2",
        "max_innermost_factor": "16",
        "decision": "[4, 4]",
    },
    "set_scope": {"block": "block", "buffer_index": "0", "storage_scope": "'shared'"},
    "split": {
        "loop": "i",
        "factors": "[None, 4]",
        "preserve_unit_iters": "True",
        "disable_predication": "False",
    },
    "storage_align": {
        "block": "block",
        "buffer_index": "0",
        "axis": "0",
        "factor": "32",
        "offset": "8",
    },
    "tensorize": {
        "block_or_loop": "i",
        "tensor_intrin": "'absent'",
        "preserve_unit_iters": "True",
    },
    "transform_block_layout": {"block": "block", "index_map": "lambda i, j: [i * 16 + j]"},
    "transform_layout": {
        "block": "block",
        "buffer": "('write', 0)",
        "index_map": "lambda i, j: [j, i]",
        "pad_value": "None",
        "assume_injective_transform": "False",
    },
    "unannotate": {"block_or_loop": "block", "ann_key": "'there'"},
    "unroll": {"loop": "i"},
    "unsafe_hide_buffer_access": {
        "block": "block",
        "buf_type": "'read'",
        "buf_index_array": "[0]",
    },
    "unsafe_set_dtype": {"block": "block", "buffer_index": "0", "dtype": "'float16'"},
    "vectorize": {"loop": "j"},
    "work_on": {"func_name": "'main'"},
    "write_at": {
        "loop": "i",
        "block": "block",
        "write_buffer_index": "0",
        "storage_scope": "'shared'",
    },
}
"""For each primitive a right call, in which every argument has its name."""

VALUES = [
    "None", "True", "False", "0", "1", "2", "-1", "-2", "3", "4", "16", "100", "-100",
    "2**31", "2**40", "2**62", "2**63", "2**70", "0.0", "1.0", "3.5", "float('nan')",
    "''", "'x'", "'A'", "'B'", "'D'", "'i'", "'root'", "'main'", "'read'", "'write'", "'global'",
    "'local'", "'shared.dyn'", "'local.x'", "'threadIdx.x'", "'threadIdx'", "'vthread.y'",
    "'float64'", "'int32'", "'float32x4'", "'handle'", "b'x'",
    "[]", "()", "[0]", "[1]", "(0,)", "[-1]", "[5]", "[None]", "[None, None]", "[True, None]",
    "[1.0]", "[4.0, None]", "['x']", "[4, 4]", "[2, 2]", "[-4, None]", "[0, None]", "[4, -4]",
    "[0, 0]", "[0, 1]", "[0, 2]", "[1, 2, 8]", "[2, 4, 2]", "[[1, 2]]", "[0.5]", "[-0.5, 1.5]",
    "[0.0, 0.0]", "[1, 1]", "[2, None, 2]", "[None, 3]", "[sampled, None]", "[sampled, sampled]",
    "[i]", "[block]", "[block, reader]", "['B']", "[reader, 3]", "[block, block]",
    "range(2)", "{}", "{'a': 1}", "{1: 2}", "{1, 2}", "object()", "int", "lambda: None",
    "lambda i: i", "lambda i, j: [i, j]", "lambda i, j: i", "lambda i, j: None",
    "lambda i, j: [i, j, 0]", "lambda i, j: ['x', j]", "lambda i, j: [i + j]",
    "lambda i, j: [i.x, j]", "lambda i, j: [i, i]",
    "lambda *a: a", "lambda i, j: [(i, i + 1), (j, j + 1, 3)]", "lambda i, j: [i * 1.5, j]",
    "lambda i, j: 1.0", "lambda i, j: [1.0]", "lambda i, j: T.float32(1)",
    "T.int32(1)", "T.int32(4)", "T.int64(0)", "T.float32(1)", "T.bool(True)", "T.int32()",
    "sampled", "sampled * 2", "T.float32()",
    "('read', 0)", "('write', 0)", "('read', 1)", "('write', 1)", "('write', -1)", "('x', 0)",
    "('read',)", "('read', 'x')", "(0, 'read')", "(0, 0)", "['write', 0]", "(None, None)",
    "i", "j", "di", "ei", "ek", "block", "reader", "reduction", "root", "sch", "sch.mod",
    "sch.get(block)", "sch.get(i)", "sch.get(block).writes[0].buffer",
    "s_tir.schedule.LoopRV()", "BlockRV()",
    "removed_block", "removed_loop", "stale_block", "stale_loop", "copied",
    "other_block", "other_loop",
    "np.int64(1)", "np.float32(1)", "np.bool_(True)", "np.array([4, 4])", "np.zeros(3)", "1j",
]  # fmt: skip


class Call(NamedTuple):
    """A call of a primitive with a value of one argument."""

    primitive: str
    argument: str
    value: str
    text: str


def calls(primitive: str) -> Iterator[Call]:
    """The calls of a primitive with each value as each argument."""
    right = CALLS[primitive]
    for argument in right:
        for value in VALUES:
            yield Call(primitive, argument, value, text_of(primitive, {**right, argument: value}))


def text_of(primitive: str, arguments: dict[str, str]) -> str:
    given = [
        value if name.startswith("*") else f"{name}={value}" for name, value in arguments.items()
    ]
    return f"sch.{primitive}({', '.join(given)})"
