"""The cache simulator, against a plain simulation and against numbers worked out by hand."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import TVMError
from mlcweb.playground.access.cache import Cache, Outcome, simulate


@dataclass
class PlainCache:
    """The same cache, access by access: lists of lines, the least recently used first."""

    cache: Cache
    sets: dict[int, list[int]] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)

    def access(self, address: int, write: bool, site: int) -> tuple[bool, int]:
        line = address // self.cache.line
        held = self.sets.setdefault(line % self.cache.sets, [])
        hit, evicted = line in held, -1
        if hit:
            held.remove(line)
        elif len(held) == self.cache.lines // self.cache.sets:
            evicted = held.pop(0)
            self.drop(evicted)
        held.append(line)
        if write:
            self.changed.setdefault(line, site)
        return hit, evicted

    def drop(self, line: int) -> None:
        if line in self.changed:
            self.written.append(self.changed.pop(line))


def run(addresses: list[int], cache: Cache, writes: list[bool] | None = None) -> Outcome:
    count = len(addresses)
    return simulate(
        np.array(addresses, np.int64),
        np.array(writes or [False] * count, bool),
        np.zeros(count, np.int64),
        1,
        cache,
    )


caches = st.builds(
    lambda line, ways, sets: Cache(line, line * ways * sets, ways),
    st.sampled_from([4, 8, 32]),
    st.integers(1, 4),
    st.integers(1, 5),
)
streams = st.lists(
    st.tuples(st.integers(0, 300), st.booleans(), st.integers(0, 2)), min_size=1, max_size=120
)


@given(streams, caches)
def test_it_does_what_a_plain_simulation_does(
    stream: list[tuple[int, bool, int]], cache: Cache
) -> None:
    addresses, writes, sites = (list(column) for column in zip(*stream, strict=True))
    found = simulate(np.array(addresses), np.array(writes), np.array(sites), 3, cache)
    plain = PlainCache(cache)
    expected = [plain.access(*access) for access in stream]
    for line in list(plain.changed):
        plain.drop(line)
    assert list(zip(found.hit.tolist(), found.evicted.tolist(), strict=True)) == expected
    assert found.written.tolist() == [plain.written.count(site) for site in range(3)]
    lines = [address // cache.line for address in addresses]
    assert found.first.tolist() == [line not in lines[:at] for at, line in enumerate(lines)]


@given(streams, st.sampled_from([4, 8]), st.integers(1, 8))
def test_one_set_of_all_lines_is_never_worse_when_it_is_larger(
    stream: list[tuple[int, bool, int]], line: int, lines: int
) -> None:
    """The inclusion property of stack algorithms."""
    addresses = [address for address, _, _ in stream]
    smaller = run(addresses, Cache(line, line * lines, 0)).hit
    larger = run(addresses, Cache(line, line * (lines + 1), 0)).hit
    assert (larger >= smaller).all()


ROWS = [4 * (16 * i + j) for i in range(16) for j in range(16)]
COLUMNS = [4 * (16 * i + j) for j in range(16) for i in range(16)]


@pytest.mark.parametrize(
    ("walk", "cache", "misses"),
    [
        # A line of 32 bytes holds 8 of the 256 elements of 4 bytes.
        (ROWS, Cache(32, 512, 4), 32),
        (ROWS, Cache(64, 512, 4), 16),
        # Down a column each element is in another line, and 8 lines forget it before the next.
        (COLUMNS, Cache(32, 256, 0), 256),
        # 16 lines hold a column's lines until the next 7 columns have used them, too.
        (COLUMNS, Cache(32, 512, 0), 32),
        # Rows lie 64 bytes apart, every second line: only half of the sets are of use.
        (COLUMNS, Cache(32, 512, 4), 256),
        (COLUMNS, Cache(32, 1024, 4), 32),
    ],
)
def test_walks_over_a_matrix(walk: list[int], cache: Cache, misses: int) -> None:
    outcome = run(walk, cache)
    assert (~outcome.hit).sum() == misses
    assert outcome.first.sum() == 1024 // cache.line


def test_lines_that_were_changed_go_back_once() -> None:
    cache = Cache(8, 8, 1)
    outcome = run([0, 4, 8, 0], cache, [True, True, False, False])
    assert outcome.hit.tolist() == [False, True, False, False]
    assert outcome.evicted.tolist() == [-1, -1, 0, 1]
    assert outcome.written.tolist() == [1]


def test_nothing_touches_nothing() -> None:
    assert run([], Cache(32, 512, 4)).hit.tolist() == []


@pytest.mark.parametrize(
    ("line", "size", "ways", "reason"),
    [
        (24, 512, 4, "no power of two"),
        (32, 16, 1, "no whole number of lines"),
        (32, 100, 1, "no whole number of lines"),
        (32, 512, 3, "16 lines cannot be shared out to sets of 3"),
    ],
)
def test_caches_that_cannot_be_are_refused(line: int, size: int, ways: int, reason: str) -> None:
    with pytest.raises(TVMError, match=reason):
        Cache(line, size, ways)
