"""Which loops to split where conditions in them change, so that a function does not grow too much.

A split copies what is in a loop, and so does each split around it. So the copies are counted before
any is made, for one loop more at a time: first those whose conditions keep loops from becoming
vectors, then those whose split frees the largest share of the iterations, as long as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mlcweb.ir.visitor import children
from mlcweb.lower.optimize.indices import Indices, Sum
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.contents import variables_used

MAX_PARTS = 4
"""A loop is not split into more parts."""

Range = tuple[int | float, int | float]


@dataclass(frozen=True, slots=True)
class Change:
    """A comparison changes where `terms`, and what lies between `low` and `high`, add up to one of
    the `limits`. Of the `hidden` variables, in products and quotients, that says nothing."""

    limits: Sequence[int]
    terms: dict[E.Var, int]
    low: int | float
    high: int | float
    hidden: frozenset[E.Var]

    @staticmethod
    def of(indices: Indices, difference: Sum, limits: Sequence[int]) -> Change:
        """Where a difference passes limits."""
        terms = {term: n for term, n in difference.terms.items() if isinstance(term, E.Var)}
        others = {term: n for term, n in difference.terms.items() if term not in terms}
        hidden = frozenset[E.Var]().union(*map(variables_used, others))
        rest = type(difference)(others, difference.constant, difference.dtype)
        return Change(limits, terms, *indices.sum_interval(rest), hidden)

    def thresholds(self, var: E.Var, ranges: Callable[[E.Var], Range]) -> Iterator[int]:
        """The values of `var` from which on the comparison surely holds, or surely fails, where the
        other variables are in `ranges`."""
        scale = self.terms.get(var, 0)
        if scale == 0 or var in self.hidden:
            return
        low, high = self.low, self.high
        for term, factor in self.terms.items():
            if term is not var:
                ends = [end * factor for end in ranges(term)]
                low, high = low + min(ends), high + max(ends)
        if high - low >= abs(scale) * 2**20:
            return
        for limit in self.limits:
            # The least var with scale * var + low >= limit, and with scale * var + high >= limit;
            # for a negative scale, the least var for which the opposite holds.
            for bound in (low, high):
                if scale > 0:
                    yield -int((bound - limit) // scale)
                else:
                    yield -int((limit - bound - 1) // -scale)


def breakpoints(
    changes: Iterable[Change], loop: S.For, ranges: Callable[[E.Var], Range]
) -> list[int]:
    """Where a loop of constant bounds may be split, in order; nothing where that is too often."""
    if not (isinstance(loop.min, E.IntImm) and isinstance(loop.extent, E.IntImm)):
        return []
    first, end = loop.min.value, loop.min.value + loop.extent.value
    if end - first <= 1 or loop.kind == S.ForKind.THREAD_BINDING:
        return []
    places = {n for change in changes for n in change.thresholds(loop.loop_var, ranges)}
    inside = sorted(place for place in places if first < place < end)
    return inside if len(inside) < MAX_PARTS else []


class SplitChoice:
    """Chooses the loops of a statement that are split.

    Args:
        indices: has the ranges of variables.
        changes: the comparisons in each loop that change with it, by the loop's variable.
        size_of: the operations of a statement in which there are no others.
        copies: how often the body of a loop of so many iterations is written out.
    """

    def __init__(
        self,
        indices: Indices,
        changes: Mapping[E.Var, Sequence[Change]],
        size_of: Callable[[S.Stmt], int],
        copies: Callable[[S.For, int], int],
    ) -> None:
        self.indices = indices
        self.changes = changes
        self.size_of = size_of
        self.copies = copies
        self.narrow: dict[E.Var, Range] = {}
        self.chosen: set[E.Var] = set()
        self.left = 0

    def choose(self, statement: S.Stmt, limit: int, least: float) -> frozenset[E.Var]:
        """The variables of loops with which a statement has up to so many operations. The split of
        each frees at least such a share of its iterations."""
        loops = list(S.find_statements(statement, S.For))
        vectors = {loop.loop_var for loop in loops if loop.kind == S.ForKind.VECTORIZED}
        shares: dict[E.Var, float] = {}
        for loop in reversed(loops):
            share = self.share(loop, vectors)
            if loop.loop_var in self.changes and share >= least:
                shares[loop.loop_var] = share
        for var in sorted(shares, key=shares.__getitem__, reverse=True):
            self.chosen.add(var)
            self.left = limit
            self.count(statement, 1)
            if self.left < 0:
                self.chosen.discard(var)
        return frozenset(self.chosen)

    def share(self, loop: S.For, vectors: set[E.Var]) -> float:
        """Which part of a loop's iterations its longest part has. Conditions that keep this or
        another loop from becoming vectors come first."""
        changes = self.changes.get(loop.loop_var, ())
        places = breakpoints(changes, loop, self.indices.interval)
        if not places:
            return 0.0
        assert isinstance(loop.min, E.IntImm) and isinstance(loop.extent, E.IntImm)
        first, extent = loop.min.value, loop.extent.value
        longest = max(stop - start for start, stop in pairwise([first, *places, first + extent]))
        return longest / extent + any(not vectors.isdisjoint(change.terms) for change in changes)

    def count(self, statement: S.Stmt, times: int) -> None:
        """Take so many copies of a statement from what is left."""
        if self.left < 0:
            return
        if isinstance(statement, S.For):
            self.count_loop(statement, times)
            return
        inner = [child for child in children(statement) if isinstance(child, S.Stmt)]
        if not inner:
            self.left -= times * self.size_of(statement)
        for part in inner:
            self.count(part, times)

    def count_loop(self, loop: S.For, times: int) -> None:
        if not isinstance(loop.extent, E.IntImm):
            self.count(loop.body, times)
            return
        var, extent = loop.loop_var, loop.extent.value
        places: Sequence[int] = ()
        if var in self.chosen:
            places = breakpoints(self.changes[var], loop, self.range_of)
        if not places:
            self.count(loop.body, times * self.copies(loop, extent))
            return
        assert isinstance(loop.min, E.IntImm)
        first = loop.min.value
        for start, stop in pairwise([first, *places, first + extent]):
            self.narrow[var] = start, stop - 1
            self.count(loop.body, times * self.copies(loop, stop - start))
        del self.narrow[var]

    def range_of(self, var: E.Var) -> Range:
        return self.narrow.get(var) or self.indices.interval(var)
