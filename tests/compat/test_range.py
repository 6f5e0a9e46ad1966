"""`tvm.ir.Range` takes a begin and an end, as in TVM."""

from __future__ import annotations

from mlcweb.compat.containers import Range
from mlcweb.tir.buffer import Range as Node


def ends(domain: object) -> tuple[int, int]:
    assert isinstance(domain, Node)
    return int(domain.min), int(domain.extent)


def test_begin_and_end() -> None:
    assert ends(Range(2, 9)) == (2, 7)
    assert ends(Range(4)) == (0, 4)
    assert ends(Range.from_min_extent(2, 9)) == (2, 9)
    assert isinstance(Range(4), Range)
    assert not isinstance(4, Range)
