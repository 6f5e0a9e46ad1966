"""The new tokens of a forward pass through a paged cache, as arrays that functions are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.relax_vm.cached_sequences import CachedSequence
from mlcweb.runtime.ndarray import NDArray

if TYPE_CHECKING:
    from mlcweb.relax_vm.paged_kv_cache import PagedKVCache


class Batch:
    """See the module."""

    def __init__(
        self, cache: PagedKVCache, sequences: list[CachedSequence], counts: list[int],
        slots: list[int], positions: list[int],
    ) -> None:  # fmt: skip
        self.cache, self.sequences, self.counts = cache, sequences, counts
        self.is_decode = all(count == 1 for count in counts)
        self.rows = sum(counts)
        self.indptr = cache.integers(running_sums(counts))
        self.slots = cache.integers(slots)
        self.positions = cache.integers(positions)
        self.no_offset = cache.integers([0] * len(counts))
        self.in_tree = any(sequence.tree for sequence in sequences)
        self.keys = self.pages_of([sequence.pages for sequence in sequences])
        if self.in_tree:
            self.tree_indptr = cache.integers(running_sums([len(s.tree) for s in sequences]))
            self.tree_order = cache.integers([list(node) for s in sequences for node in s.walk()])

    def pages_of(
        self, pages: list[list[int]], used: list[int] | None = None
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Pages of each sequence, and how much of them is used."""
        cache = self.cache
        values = [page for own in pages for page in own]
        last = [s.last_page_length for s in self.sequences] if used is None else used
        info: list[Any] = last
        if cache.has_windows:
            slid = [s.gap > 0 for s in self.sequences]
            starts = [s.sinks + s.gap if s.gap else 0 for s in self.sequences]
            sinks = [s.sinks if own else 0 for s, own in zip(self.sequences, slid, strict=True)]
            info = [last, starts, sinks]
        return (
            cache.integers(running_sums(list(map(len, pages)))),
            cache.integers(values or [0]),
            cache.integers(info),
        )

    def past(self) -> tuple[NDArray, NDArray, NDArray]:
        """The pages of the tokens before this pass."""
        size = self.cache.page_size
        pages: list[list[int]] = []
        lengths: list[int] = []
        for sequence, count in zip(self.sequences, self.counts, strict=True):
            used = sequence.used - count if sequence.length > count else 0
            pages.append(sequence.pages[: -(-used // size)])
            lengths.append(used - (len(pages[-1]) - 1) * size if used else 0)
        return self.pages_of(pages, lengths)


def running_sums(counts: list[int]) -> list[int]:
    total, sums = 0, [0]
    for count in counts:
        total += count
        sums.append(total)
    return sums
