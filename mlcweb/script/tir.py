"""The `T` of TVMScript: `from mlcweb.script import tir as T`.

`NAMES` is the table by which the parser looks names up; the module has the same names as
attributes, so that `T.exp(x)` also works outside scripts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mlcweb.script.decorators import prim_func
from mlcweb.script.namespace import (
    blocks,
    buffers,
    building,
    expressions,
    loops,
    macros,
    older,
    statements,
)  # fmt: skip
from mlcweb.script.namespace.types import (
    SHORT_NAMES,
    BufferType,
    HandleType,
    ScalarType,
    scalar_types,
)  # fmt: skip
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import expr as E
from mlcweb.tir.builtins import NAMESPACES
from mlcweb.tir.constructors import CONSTRUCTORS, make_broadcast, make_ramp
from mlcweb.tir.op_functions import BUILTIN_FUNCTIONS, ceildiv, infinity
from mlcweb.tir.operators import BINARY_NODES, DIVISIONS, OPERATORS
from mlcweb.tir.target_description import TargetDescription

STATEMENTS: dict[str, Any] = {
    # loops and blocks
    "serial": loops.serial,
    "parallel": loops.parallel,
    "vectorized": loops.vectorized,
    "unroll": loops.unroll,
    "unrolled": loops.unroll,
    "thread_binding": loops.thread_binding,
    "grid": loops.grid,
    "block": blocks.block,
    "sblock": blocks.block,
    "reduce_axis": blocks.reduce_axis,
    "scan_axis": blocks.scan_axis,
    "opaque_axis": blocks.opaque_axis,
    "init": blocks.init,
    "where": blocks.where,
    "reads": blocks.reads,
    "writes": blocks.writes,
    "block_attr": blocks.block_attr,
    "sblock_attr": blocks.block_attr,
    "func_attr": blocks.func_attr,
    "axis": blocks.axis,
    # buffers
    "alloc_buffer": buffers.alloc_buffer,
    "sblock_alloc_buffer": buffers.alloc_buffer,
    "decl_buffer": buffers.decl_buffer,
    "buffer_decl": buffers.decl_buffer,
    "allocate": older.allocate,
    "allocate_const": older.allocate_const,
    "preflattened_buffer": older.preflattened_buffer,
    "load": older.load,
    "store": older.store,
    "alloc_local": partial(buffers.decl_buffer, scope="local"),
    "alloc_shared": partial(buffers.decl_buffer, scope="shared"),
    "match_buffer": buffers.match_buffer,
    # other statements
    "evaluate": statements.evaluate,
    "LetStmt": statements.let_stmt,
    "let": statements.let,
    "Let": statements.let_expression,
    "bind": statements.bind,
    "Bind": statements.let_stmt,
    "attr": statements.attr,
    "Assert": statements.assertion,
    "launch_thread": statements.launch_thread,
    "env_thread": statements.env_thread,
    "iter_var": older.iter_var,
    "buffer_store": statements.buffer_store,
    **{name: building.only_built(name, "`if` and `else`") for name in ("If", "Then", "Else")},
    "While": building.only_built("While", "`while`"),
}
"""What is carried out: a script does so itself, for calls of Python a builder does."""

NAMES: dict[str, Any] = {
    "prim_func": prim_func,
    **scalar_types,
    "boolean": scalar_types["bool"],
    **{short: scalar_types[name] for short, name in SHORT_NAMES.items()},
    "void": ScalarType("void"),
    "handle": HandleType(),
    "ptr": HandleType(),
    "Ptr": older.PointerType(),
    "Buffer": BufferType(),
    "buffer": BufferType(),
    "Range": loops.loop_range,
    "var": lambda dtype="int32", name="": E.Var(name, str(dtype)),
    "Var": expressions.variable,
    "SizeVar": CONSTRUCTORS["SizeVar"],
    # for the time while the script is read
    "macro": macros.macro,
    "inline": macros.inline,
    "meta_var": macros.meta_var,
    "static_assert": macros.static_assert,
    "range": loops.python_range,
    "index_map": expressions.index_map,
    "comm_reducer": expressions.comm_reducer,
    "target": TargetDescription,
    **STATEMENTS,
    # expressions
    **{name: expressions.MachineNamespace(name) for name in NAMESPACES},
    **BUILTIN_FUNCTIONS,
    **{cls.__name__: expressions.node_builder(cls) for cls in BINARY_NODES},
    **{
        key: expressions.typed(build)
        for key, build in intrinsics.BUILDERS.items()
        if isinstance(key, str)
    },
    **{OPERATORS[key].name: expressions.typed(intrinsics.BUILDERS[key]) for key in DIVISIONS},
    "ceildiv": ceildiv,
    "isfinite": intrinsics.isfinite,
    "power": expressions.typed(intrinsics.power),
    "max": expressions.fold_left(arithmetic.maximum),
    "min": expressions.fold_left(arithmetic.minimum),
    "Not": expressions.not_node,
    "Select": expressions.select_node,
    "Cast": expressions.cast_node,
    "cast": expressions.cast,
    "Ramp": make_ramp,
    "ramp": make_ramp,
    "Broadcast": make_broadcast,
    "Shuffle": expressions.shuffle,
    "broadcast": make_broadcast,
    "infinity": infinity,
    "min_value": expressions.min_value,
    "max_value": expressions.max_value,
    "Call": expressions.call,
    "call_intrin": expressions.call_intrin,
    "call_packed": expressions.typed(intrinsics.call_packed),
    "reinterpret": expressions.reinterpret,
    "call_ffi_kernel": expressions.call_ffi_kernel,
    "BufferLoad": expressions.buffer_load,
    "IntImm": E.IntImm,
    "FloatImm": E.FloatImm,
    "StringImm": E.StringImm,
}

if not TYPE_CHECKING:
    globals().update(NAMES)
    globals().update({name: building.building(name, item) for name, item in STATEMENTS.items()})
    axis = building.BuildingAxes()
