"""Builtins of the graph level, `R.builtin.…`: what lowering makes of calls of TensorIR."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call, convert_to_expr
from mlcweb.relax.op.base import given_sinfo_args
from mlcweb.relax.op.memory import allocated
from mlcweb.relax.op.registry import as_shape, register

_TENSOR = register(
    "relax.builtin.alloc_tensor",
    ("shape", "dtype", "runtime_device_index", "storage_scope"),
    allocated,
    pure=False,
)


def alloc_tensor(
    shape: Any,
    dtype: Any,
    runtime_device_index: Any = 0,
    storage_scope: Any = "global",
    *,
    sinfo_args: Any = None,
    ty_args: Any = None,
) -> Call:
    """A new tensor, whose memory is planned later."""
    arguments = (as_shape(shape), dtype, runtime_device_index, storage_scope)
    infos = given_sinfo_args(sinfo_args if ty_args is None else ty_args)
    return Call(_TENSOR, [convert_to_expr(arg) for arg in arguments], None, infos)
