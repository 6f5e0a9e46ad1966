"""Ranges of addresses that overlap become one."""

from hypothesis import given
from hypothesis import strategies as st

from mlcweb.runtime.host.ranges import merged, piece_of


def test_overlapping_ranges_are_one_and_neighbours_are_not():
    assert merged([(10, 5), (0, 4), (4, 4), (14, 1), (12, 10), (30, 0)]) == [
        (0, 4),
        (4, 4),
        (10, 12),
    ]
    assert piece_of(15, [(0, 4), (10, 12)]) == (10, 12)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9))))
def test_the_same_addresses_in_disjoint_pieces(ranges):
    pieces = merged(ranges)
    covered = [address for start, length in pieces for address in range(start, start + length)]
    assert len(covered) == len(set(covered))
    assert set(covered) == {a for start, length in ranges for a in range(start, start + length)}
    for start, length in ranges:
        if length:
            first, size = piece_of(start, pieces)
            assert first <= start
            assert start + length <= first + size
