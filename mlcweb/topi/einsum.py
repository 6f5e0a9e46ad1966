"""Sums of products by the names of axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags

_DOTS = "..."


def subscripts_of(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The axes of each operand and of the result, a letter each, as "ij,jk->ik" names them.

    Without an arrow the result has the letters that stand once, in the order of the alphabet.
    Dots stand for leading axes, which get the capitals from the end of the alphabet. `ranks` are
    the numbers of dimensions of the operands, -1 where unknown.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise DiagnosticError(
            f'einsum: "{subscripts}" names {len(terms)} operand(s), {len(ranks)} are given'
        )
    hidden = [
        rank - len(term.replace(_DOTS, "")) if _DOTS in term and rank >= 0 else 0
        for term, rank in zip(terms, ranks, strict=True)
    ]
    most = max([0, *hidden])
    dots = "ZYXWVUTS"[:most][::-1]
    terms = [
        term.replace(_DOTS, dots[most - count :]) for term, count in zip(terms, hidden, strict=True)
    ]
    if arrow:
        result = right.replace(_DOTS, dots)
    else:
        letters = sorted(set("".join(terms)) - set(dots))
        result = dots + "".join(c for c in letters if "".join(terms).count(c) == 1)
    for term, rank in zip(terms, ranks, strict=True):
        if rank not in (-1, len(term)) or (term and not term.isalpha()):
            raise DiagnosticError(
                f'einsum: "{term}" in "{subscripts}" names {len(term)} axes of an operand of '
                f"{rank} dimension(s)"
            )
    if len(set(result)) != len(result) or set(result) - set("".join(terms)):
        raise DiagnosticError(
            f'einsum: each axis of the result in "{subscripts}" stands once, and in an operand'
        )
    return terms, result


def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    """The sum of products of elements over the axes that the result does not name."""
    terms, result = subscripts_of(subscripts, [operand.ndim for operand in operands])
    extents: dict[str, PrimExpr] = {}
    for operand, term in zip(operands, terms, strict=True):
        for letter, extent in zip(term, operand.shape, strict=True):
            first = extents.setdefault(letter, extent)
            if shapes.constant(first) == 1:
                extents[letter] = extent
            elif shapes.constant(extent) != 1 and not shapes.same_extent(first, extent):
                raise DiagnosticError(f"einsum: the axis {letter} is both {first!r} and {extent!r}")
    summed = [letter for letter in extents if letter not in result]
    axes = {letter: reduce_axis((0, extents[letter]), letter) for letter in summed}

    def element(*index: PrimExpr) -> PrimExpr:
        place = dict(zip(result, index, strict=True)) | {c: axes[c].var for c in summed}
        factors = []
        for operand, term in zip(operands, terms, strict=True):
            inside = [place[letter] for letter in term]
            wide = [extents[letter] for letter in term]
            factors.append(operand(*shapes.broadcast_index(operand.shape, inside, wide)))
        product = reduce(arithmetic.multiply, factors)
        return reducers.sum(product, list(axes.values())) if axes else product

    names = shapes.axis_names(len(result))
    shape = [extents[letter] for letter in result]
    return compute(shape, element, "T_einsum", tag=tags.EINSUM, varargs_names=names)


def tensordot(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """Sums over pairs of axes of two tensors: the last `axes` of `a` with the first ones of `b`, or
    `axes` = (those of `a`, those of `b`). The other axes of both make the result."""
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = (
            [shapes.axis_of("tensordot", axis, x.ndim) for axis in _listed(side)]
            for x, side in zip((a, b), axes, strict=True)
        )
    fits = len(left) == len(right) and all(
        shapes.same_extent(a.shape[i], b.shape[j]) for i, j in zip(left, right, strict=True)
    )
    if not fits or min(left, default=0) < 0:
        raise DiagnosticError(
            f"tensordot: axes {axes} of {shapes.show(a.shape)} and {shapes.show(b.shape)} do not "
            "have the same extents"
        )
    outer = [i for i in range(a.ndim) if i not in left]
    inner = [i for i in range(b.ndim) if i not in right]
    sums = [reduce_axis((0, a.shape[axis]), f"k{n}") for n, axis in enumerate(left)]

    def element(*index: PrimExpr) -> PrimExpr:
        summed = [axis.var for axis in sums]
        place_a = dict(zip((*outer, *left), (*index[: len(outer)], *summed), strict=True))
        place_b = dict(zip((*inner, *right), (*index[len(outer) :], *summed), strict=True))
        product = a(*(place_a[i] for i in range(a.ndim))) * b(*(place_b[i] for i in range(b.ndim)))
        return reducers.sum(product, sums) if sums else product

    shape = [*(a.shape[i] for i in outer), *(b.shape[i] for i in inner)]
    names = shapes.axis_names(len(shape))
    return compute(shape, element, "T_tensordot", tag="matmul", varargs_names=names)


def _listed(axes: Any) -> list[int]:
    return list(axes) if isinstance(axes, (tuple, list)) else [axes]
