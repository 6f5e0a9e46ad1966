"""Changing the element type."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def _infer_astype(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    assert call.attrs is not None
    return TensorStructInfo(info.shape, call.attrs.dtype, ndim=info.ndim)


_ASTYPE = register("relax.astype", ("x",), _infer_astype)


def astype(x: Any, dtype: Any) -> Call:
    """The elements of a tensor, converted."""
    return call(_ASTYPE, x, dtype=str(dtype))
