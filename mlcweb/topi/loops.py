"""Statements of operators that no expression of an element describes."""

from __future__ import annotations

from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BufferStore, For, ForKind, Stmt
from mlcweb.topi.shapes import Scalar


def loop(var: Var, extent: PrimExpr, body: Stmt) -> Stmt:
    """The loop of a variable from 0."""
    extent = arithmetic.cast(var.dtype, extent)
    return For(var, arithmetic.const(0, var.dtype), extent, ForKind.SERIAL, body)


def load(buffer: Buffer, *indices: Scalar) -> PrimExpr:
    """An element of a buffer."""
    return BufferLoad(buffer, tuple(arithmetic.convert(index) for index in indices))


def store(buffer: Buffer, value: Scalar, *indices: Scalar) -> Stmt:
    """The store of a value, cast to the type of the buffer."""
    places = tuple(arithmetic.convert(index) for index in indices)
    return BufferStore(buffer, arithmetic.cast(buffer.dtype, arithmetic.convert(value)), places)
