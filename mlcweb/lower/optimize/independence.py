"""Whether the iterations of a loop may run in any order, or side by side."""

from __future__ import annotations

from math import gcd

from mlcweb.lower.optimize.accesses import may_alias
from mlcweb.lower.optimize.rewriter import Rewriter, loops_in
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

SEQUENTIAL = (S.ForKind.SERIAL, S.ForKind.PARALLEL)
"""The kinds of loops whose iterations run one after another, as far as nobody says more."""


def are_independent(rewriter: Rewriter, loop: S.For) -> bool:
    """Whether no iteration touches an element of a buffer that another one writes."""
    accesses = rewriter.accesses.of(loop.body)
    extent = rewriter.indices.interval(loop.extent)[1]
    local = {found.loop_var for found in loops_in(loop.body)}
    for buffer in rewriter.accesses.written(loop.body):
        indices = []
        for access in accesses:
            if access.buffer.data is buffer.data and access.buffer.dtype == buffer.dtype:
                indices.append(access.indices[0])
            elif may_alias(access.buffer, buffer, rewriter.function):
                return False
        if not _are_apart(rewriter, indices, loop.loop_var, int(extent), local):
            return False
    return True


def _are_apart(
    rewriter: Rewriter, indices: list[E.PrimExpr], var: E.Var, extent: int, local: set[E.Var]
) -> bool:
    """Whether places that different iterations touch differ: all indices move with `var` by the
    same step, and else differ only by multiples of what `var` can reach."""
    sums = [rewriter.indices.sum_of(index) for index in indices]
    step = rewriter.indices.scale_of(indices[0], var)
    if not step:
        return False
    stride = 0
    for index, total in zip(indices, sums, strict=True):
        if rewriter.indices.scale_of(index, var) != step:
            return False
        difference = total.plus(sums[0], -1)
        for atom, scale in [*difference.terms.items(), *total.terms.items()]:
            if atom is var:
                continue
            moves = atom in local or (
                not isinstance(atom, E.Var)
                and not local.isdisjoint(rewriter.indices.variables(atom))
            )
            if moves or atom in difference.terms:
                if not moves or not isinstance(atom, E.Var):
                    return False
                stride = gcd(stride, scale)
        stride = gcd(stride, difference.constant)
    return not stride or stride >= extent * abs(step)
