"""A cache simulator: which accesses find their line in a set-associative cache.

Each set is simulated directly (least recently used line out first). As R. L. Mattson and others
showed for stack algorithms ("Evaluation techniques for storage hierarchies", IBM Systems Journal
9(2), 1970), a reference to the line on top of a set's stack changes nothing, so runs of references
to one line are taken as one, which NumPy finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcweb.ir import TVMError

CLEAN = -1


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache of `size` bytes in lines of `line` bytes; `ways` lines to a set, 0 for one set of
    all. Writes fetch the line that they change, and it is written back when it has to go."""

    line: int
    size: int
    ways: int

    def __post_init__(self) -> None:
        if self.line < 1 or self.line & (self.line - 1):
            raise TVMError(f"a line of {self.line} bytes is no power of two")
        if self.size < self.line or self.size % self.line:
            raise TVMError(f"{self.size} bytes are no whole number of lines of {self.line} bytes")
        if self.ways < 0 or (self.ways and self.lines % self.ways):
            raise TVMError(f"{self.lines} lines cannot be shared out to sets of {self.ways}")

    @property
    def lines(self) -> int:
        return self.size // self.line

    @property
    def sets(self) -> int:
        return self.lines // (self.ways or self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a cache, empty at first, made of a run of accesses.

    Attributes:
        hit: for each access, whether its line was there.
        first: for each access, whether its line was never touched before; these always miss.
        evicted: for each access, the line that had to go for it, or -1.
        written: for each site, how many lines went back that it was the first to change. Lines
            still there at the end count, too.
    """

    hit: np.ndarray
    first: np.ndarray
    evicted: np.ndarray
    written: np.ndarray


def simulate(
    addresses: np.ndarray, writes: np.ndarray, sites: np.ndarray, site_count: int, cache: Cache
) -> Outcome:
    """Run accesses of one element each through a cache.

    Args:
        addresses: the bytes that the accesses begin at; no element lies across two lines.
        writes: whether each is a write.
        sites: which of `site_count` subscripts made each.
    """
    count = len(addresses)
    outcome = Outcome(
        np.ones(count, bool),
        np.zeros(count, bool),
        np.full(count, -1, np.int64),
        np.zeros(site_count, np.int64),
    )
    if not count:
        return outcome
    lines = addresses // cache.line
    outcome.first[np.unique(lines, return_index=True)[1]] = True
    # One set after the other, each in the order of time; a line belongs to one set only.
    order = np.argsort(lines % cache.sets, kind="stable")
    ordered = lines[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    writers = np.where(writes[order], np.arange(count), count)
    first_writes = np.minimum.reduceat(writers, starts)
    changers = np.append(sites[order], CLEAN)[first_writes]

    ways, sets = cache.ways or cache.lines, cache.sets
    # Lines of the present set, the least recently used first: to the site that changed it.
    held: dict[int, int] = {}
    present = -1
    missed: list[int] = []
    evictions: list[tuple[int, int]] = []
    evicted_sites: list[int] = []
    runs = zip(ordered[starts].tolist(), changers.tolist(), order[starts].tolist(), strict=True)
    for line, changer, access in runs:
        if line % sets != present:
            evicted_sites.extend(held.values())
            held, present = {}, line % sets
        if line in held:
            before = held.pop(line)
            held[line] = changer if before == CLEAN else before
            continue
        missed.append(access)
        if len(held) == ways:
            oldest = next(iter(held))
            evicted_sites.append(held.pop(oldest))
            evictions.append((access, oldest))
        held[line] = changer
    evicted_sites.extend(held.values())

    outcome.hit[missed] = False
    if evictions:
        accesses, evicted = np.array(evictions, np.int64).T
        outcome.evicted[accesses] = evicted
    changed = [site for site in evicted_sites if site != CLEAN]
    outcome.written[:] = np.bincount(changed, minlength=site_count) if changed else 0
    return outcome
