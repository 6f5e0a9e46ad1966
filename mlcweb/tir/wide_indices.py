"""Copies of programs whose index arithmetic has 64 bits, as that of programs from graphs has."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, on, walk
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.dtype import is_float
from mlcweb.tir.expr import BinaryExpr, BufferLoad, Cast, PrimExpr, Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import BUILDERS
from mlcweb.tir.operators import Family, keys
from mlcweb.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    IterVar,
    declared_buffers,
    statements_in,
)

WIDE = "int64"

_ARITHMETIC = frozenset(keys(Family.ARITHMETIC, arity=2))
_OF_ONE_TYPE = frozenset(keys(Family.ARITHMETIC, Family.COMPARISON, arity=2))
"""Operations whose operands must be of one type."""


class WideCopy(FreshCopy):
    """A copy in which loops, iterators, indices, shapes, strides and offsets are of int64."""

    def __init__(self, block: Block, buffers: tuple[Buffer, ...]) -> None:
        super().__init__()
        inside = (one for part in statements_in(block) for one in declared_buffers(part))
        for buffer in (*buffers, *inside):
            for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                self._widen(*find_nodes(part, Var))
        for node in walk(block):
            if isinstance(node, For):
                self._widen(node.loop_var)
            elif isinstance(node, IterVar):
                self._widen(node.var)

    def _widen(self, *variables: Var) -> None:
        for var in variables:
            if var.dtype == "int32":
                self._variables[var] = Var(var.name, WIDE, span=var.span)

    def rewrite(self, node: Any) -> Any:
        new = super().rewrite(node)
        if type(new) in _OF_ONE_TYPE and new.a.dtype != new.b.dtype:
            return BUILDERS[type(new)](new.a, new.b)
        return new

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        """The new buffer for a buffer."""
        if buffer not in self._buffers:
            new = self.rewrite_children(buffer)
            self._buffers[buffer] = replace(
                new,
                shape=_wide(*new.shape),
                strides=_wide(*new.strides),
                elem_offset=cast(WIDE, new.elem_offset),
            )
        return self._buffers[buffer]

    @on(Range)
    def range(self, node: Range) -> Range:
        (low,) = _wide(self.rewrite(node.min))
        return Range(low, cast(low.dtype, self.rewrite(node.extent)))

    @on(Cast)
    def conversion(self, node: Cast) -> PrimExpr:
        """Nothing, of what is wide now."""
        return cast(node.dtype, self.rewrite(node.value))

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        new = self.access(node)
        return replace(new, indices=_wide(*new.indices))

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        new = self.access(node)
        value = cast(node.value.dtype, new.value)
        return replace(new, indices=_wide(*new.indices), value=value)

    @on(For)
    def loop(self, node: For) -> For:
        new = super().loop(node)
        low, extent = _wide(new.min, new.extent)
        return replace(new, min=low, extent=extent)

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> BlockRealize:
        new = self.rewrite_children(node)
        return replace(new, iter_values=_wide(*new.iter_values))


def _wide(*values: PrimExpr) -> tuple[PrimExpr, ...]:
    """The values as int64; elements of buffers stay what they are."""
    return tuple(map(_as_wide, values))


def _as_wide(value: PrimExpr) -> PrimExpr:
    """As TVM widens it: what arithmetic is on is wide, rather than what comes of it."""
    if value.dtype != "int32" or isinstance(value, BufferLoad):
        return value
    if isinstance(value, BinaryExpr) and type(value) in _ARITHMETIC:
        return BUILDERS[type(value)](_as_wide(value.a), _as_wide(value.b))
    if isinstance(value, Cast) and is_float(value.value.dtype):
        return cast(WIDE, value.value)
    return cast(WIDE, value)


def with_wide_indices(function: PrimFunc) -> PrimFunc:
    """A copy of a function with a root block, indexed by int64 throughout.

    Scalar parameters of int32 that are used as extents become int64, too.
    """
    assert isinstance(function.body, BlockRealize)
    return WideCopy(function.body.block, function.parameter_buffers).function(function)
