"""Arithmetic of extents, scales and bases: where constants leave their type, an index is no
iterator map."""

from __future__ import annotations

from typing import Any

from mlcweb.tir import expr as E
from mlcweb.tir import folding


class NotAffine(Exception):
    """An index that is no iterator map; the message says why."""


def _exact(value: int, dtype: str) -> E.IntImm:
    """A constant; NotAffine where it would wrap around."""
    constant = folding.integer(value, dtype)
    if constant.value != value:
        raise NotAffine(f"{value}, which an iterator steps by or covers, exceeds {dtype}")
    return constant


def add(a: Any, b: Any) -> E.PrimExpr:
    if type(a) is type(b) is E.IntImm:
        return _exact(a.value + b.value, a.dtype)
    return folding.add(a, b)


def subtract(a: Any, b: Any) -> E.PrimExpr:
    if type(a) is type(b) is E.IntImm:
        return _exact(a.value - b.value, a.dtype)
    return folding.subtract(a, b)


def multiply(a: Any, b: Any) -> E.PrimExpr:
    if type(a) is type(b) is E.IntImm:
        return _exact(a.value * b.value, a.dtype)
    return folding.multiply(a, b)
