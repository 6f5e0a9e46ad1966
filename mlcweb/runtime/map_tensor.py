"""Arrays in the layout that an `IndexMap` describes."""

from __future__ import annotations

import numpy as np

from mlcweb.arith.index_map import IndexMap
from mlcweb.runtime.build import build
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.expr import BufferLoad, IntImm
from mlcweb.tir.function import PrimFunc


def map_tensor(index_map: IndexMap, source: NDArray) -> NDArray:
    """The elements of an array where the map puts them; what no element goes to is zero."""
    mapped_shape = index_map.map_shape(source.shape)
    shape = [extent.value for extent in mapped_shape if isinstance(extent, IntImm)]
    if len(shape) < len(mapped_shape):
        raise ValueError(f"The extents {mapped_shape} of the mapped array are not all constants")
    before, after = (decl_buffer(list(s), source.dtype) for s in (source.shape, shape))
    loops = index_map.initial_indices
    body: S.Stmt = S.BufferStore(after, BufferLoad(before, loops), index_map.final_indices)
    for var, extent in reversed(list(zip(loops, source.shape, strict=True))):
        low = const(0, var.dtype)
        body = S.For(var, low, IntImm(var.dtype, extent), S.ForKind.SERIAL, body)
    params = before.data, after.data
    function = PrimFunc(params, body, None, dict(zip(params, (before, after), strict=True)))
    mapped = empty(shape, source.dtype, source.device)
    mapped.copyfrom(np.zeros_like(mapped.numpy()))
    build(function.with_attr("global_symbol", "main"), target="numpy")(source, mapped)
    return mapped
