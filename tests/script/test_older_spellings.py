"""Spellings of older TVMs mean what today's say."""

from __future__ import annotations

import pytest

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.script.parser import parse

TODAY = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.exp(A[vi, vk])
"""

OLDER = """
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, [8, 4], dtype="float32")
    B = T.match_buffer(b, [8], dtype="float32")
    for i, k in T.grid(8, 4):
        with T.block([8, T.reduce_axis(0, 4)], "B") as [vi, vk]:
            T.bind(vi, i)
            T.bind(vk, k)
            T.reads([A[vi, vk]])
            T.writes([B[vi]])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.exp(A[vi, vk], dtype="float32")
"""


def test_blocks_that_list_their_axes_are_read() -> None:
    assert structural_equal(parse(OLDER), parse(TODAY))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("            T.bind(vk, k)\n", "", r'the axis "vk" is: T\.bind\(vk'),
        ("T.bind(vk, k)", "T.bind(i, k)", '"i" is not an axis of the block "B"'),
        ("as [vi, vk]", "as [vi]", "lists 2 axes, and names 1"),
    ],
)
def test_what_their_axes_lack_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        parse(OLDER.replace(old, new))
