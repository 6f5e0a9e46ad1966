"""Whether a function of TensorIR only gives its input another shape."""

from __future__ import annotations

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.bounds import SIZES
from mlcweb.ir.visitor import walk
from mlcweb.relax import dims
from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, For
from mlcweb.tir.substitute import substitute


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a function copies each element of its first buffer to the position of its last one
    that has the same offset."""
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    if len(buffers) < 2:
        return False
    source, target = buffers[0], buffers[-1]
    nodes = list(walk(func.body))
    stores = [node for node in nodes if isinstance(node, BufferStore)]
    if len(stores) != 1 or any(isinstance(n, Block) and n.init is not None for n in nodes):
        return False
    (store,) = stores
    value = store.value
    if store.buffer is not target or not isinstance(value, BufferLoad):
        return False
    if value.buffer is not source or source.dtype != target.dtype:
        return False
    analyzer = Analyzer()
    for extent in (*source.shape, *target.shape):
        for var in dims.prim_vars(extent):
            analyzer.update(var, SIZES)
    values: dict[Var, PrimExpr] = {}
    for node in nodes:
        if isinstance(node, For):
            analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
        elif isinstance(node, BlockRealize):
            for axis, binding in node.iterators:
                values[axis.var] = binding
    read = substitute(_offset(source, value.indices), values)
    written = substitute(_offset(target, store.indices), values)
    same_size = analyzer.can_prove_equal(_size(source), _size(target))
    return same_size and analyzer.can_prove_equal(read, written)


def _size(buffer: Buffer) -> PrimExpr:
    size = arithmetic.const(1, "int64")
    for extent in buffer.shape:
        size = size * arithmetic.cast("int64", extent)
    return size


def _offset(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    offset = arithmetic.const(0, "int64")
    for index, extent in zip(indices, buffer.shape, strict=True):
        offset = offset * arithmetic.cast("int64", extent) + arithmetic.cast("int64", index)
    return offset
