"""Whether the iterations of a loop may run in any order, or side by side."""

from __future__ import annotations

from math import gcd, inf

from mlcweb.lower.optimize.rewriter import Rewriter, variables_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.contents import accesses_in, buffers_written, variables_used

SEQUENTIAL = (S.ForKind.SERIAL, S.ForKind.PARALLEL)
"""The kinds of loops whose iterations run one after another, as far as nobody says more."""


def are_independent(rewriter: Rewriter, loop: S.For) -> bool:
    """Whether no iteration touches an element of a buffer that another one writes."""
    accesses = accesses_in(loop.body)
    extent = rewriter.indices.interval(loop.extent)[1]
    local = variables_of(loop) - {loop.loop_var}
    for buffer in buffers_written(loop.body):
        indices = []
        for access in accesses:
            if access.buffer.data is buffer.data and access.buffer.dtype == buffer.dtype:
                indices.append(access.indices[0])
            elif rewriter.may_alias(access.buffer, buffer):
                return False
        if not _are_apart(rewriter, indices, loop.loop_var, int(extent), local):
            return False
    return True


def _are_apart(
    rewriter: Rewriter, indices: list[E.PrimExpr], var: E.Var, extent: int, local: set[E.Var]
) -> bool:
    """Whether places that different iterations touch differ: all indices move with `var` by the
    same step, and else differ by less than that, or only by multiples of what `var` can reach."""
    indices = [_of_any_lane(rewriter, index, local) for index in indices]
    sums = [rewriter.indices.sum_of(index) for index in indices]
    step = rewriter.indices.scale_of(indices[0], var)
    if not step:
        return False
    stride = 0
    lowest, highest = inf, -inf
    for index, total in zip(indices, sums, strict=True):
        if rewriter.indices.scale_of(index, var) != step:
            return False
        difference = total.plus(sums[0], -1)
        low = high = total.constant
        for atom, scale in [*difference.terms.items(), *total.terms.items()]:
            if atom is var:
                continue
            moves = atom in local or (
                not isinstance(atom, E.Var) and not local.isdisjoint(variables_used(atom))
            )
            if moves or atom in difference.terms:
                if not moves or not isinstance(atom, E.Var):
                    return False
                stride = gcd(stride, scale)
        for atom, scale in total.terms.items():
            if atom in local:
                ends = [scale * end for end in rewriter.indices.interval(atom)]
                low, high = low + min(ends), high + max(ends)
        lowest, highest = min(lowest, low), max(highest, high)
        stride = gcd(stride, difference.constant)
    return highest - lowest < abs(step) or not stride or stride >= extent * abs(step)


def _of_any_lane(rewriter: Rewriter, index: E.PrimExpr, local: set[E.Var]) -> E.PrimExpr:
    """The index of a vector as that of one lane, whose number is one of the `local` variables."""
    if not isinstance(index, E.Ramp):
        return index
    lane = E.Var("lane", index.base.dtype)
    rewriter.indices.bind(lane, 0, dtypes.lanes(index.dtype) - 1)
    local.add(lane)
    return index.base + index.stride * lane
