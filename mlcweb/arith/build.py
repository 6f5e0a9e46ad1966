"""Builders for operands that are expressions of one type already: quicker than `tir.arithmetic`,
which has to match types first. Constants are folded in the same way, and shared."""

from __future__ import annotations

from functools import lru_cache

from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E


@lru_cache(maxsize=4096)
def integer(value: int, dtype: str) -> E.IntImm:
    """An integer constant; the same object for the same constant."""
    made = arithmetic.const(value, dtype)
    assert isinstance(made, E.IntImm)
    return made


def add(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if b.value == 0:
            return a
        if type(a) is E.IntImm:
            return integer(a.value + b.value, a.dtype)
    elif type(a) is E.IntImm and a.value == 0:
        return b
    return E.Add(a, b)


def subtract(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if b.value == 0:
            return a
        if type(a) is E.IntImm:
            return integer(a.value - b.value, a.dtype)
    return E.Sub(a, b)


def multiply(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if b.value == 1:
            return a
        if type(a) is E.IntImm:
            return integer(a.value * b.value, a.dtype)
        if b.value == 0:
            return b
    elif type(a) is E.IntImm:
        if a.value == 1:
            return b
        if a.value == 0:
            return a
    return E.Mul(a, b)


def floordiv(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(b) is E.IntImm and b.value != 0:
        if b.value == 1:
            return a
        if type(a) is E.IntImm:
            return integer(a.value // b.value, a.dtype)
        return E.FloorDiv(a, b)
    return arithmetic.floordiv(a, b)


def floormod(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(b) is E.IntImm and b.value != 0:
        if b.value == 1:
            return integer(0, b.dtype)
        if type(a) is E.IntImm:
            return integer(a.value % b.value, a.dtype)
        return E.FloorMod(a, b)
    return arithmetic.floormod(a, b)
