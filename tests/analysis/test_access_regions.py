"""Regions that blocks read and write; the expected texts are those of a real TVM."""

from __future__ import annotations

from textwrap import indent

import pytest

from mlcweb.analysis import block_access_regions
from mlcweb.ir.visitor import walk
from mlcweb.script import parse
from mlcweb.tir import Block, PrimFunc

HEADER = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
         N: T.Buffer((16, 16), "int32"), n: T.int32):
"""


def regions(text: str, name: str = "X") -> tuple[str, str]:
    """The declared reads and writes of the block called `name`."""
    block = find_block(text, name)
    return ", ".join(map(str, block.reads)), ", ".join(map(str, block.writes))


def find_block(text: str, name: str = "X") -> Block:
    function = parse(HEADER + indent(text, "    "))
    assert isinstance(function, PrimFunc)
    blocks = [node for node in walk(function.body) if isinstance(node, Block)]
    return next(block for block in blocks if block.name_hint == name)


def in_block(statements: str) -> str:
    header = 'for i, j in T.grid(16, 16):\n    with T.block("X"):\n'
    axes = '        vi, vj = T.axis.remap("SR", [i, j])\n'
    return header + axes + indent(statements, "        ")


@pytest.mark.parametrize(
    ("statements", "reads", "writes"),
    [
        ("B[vi, vj] = A[vi, vj]", "A[vi, vj]", "B[vi, vj]"),
        ("B[vi, vj] = A[vi, vj] + B[vi, 0]", "A[vi, vj], B[vi, 0]", "B[vi, vj]"),
        ("B[vi, 0] = B[vi, 0] + A[vi, vj]", "B[vi, 0], A[vi, vj]", "B[vi, 0]"),
        ("with T.init():\n    B[vi, 0] = 0.0\nB[vi, 0] = B[vi, 0] + A[vi, vj]", "A[vi, vj]",
         "B[vi, 0]"),
        ("B[vi, vj] = A[vi, vj] + A[vi + 2, vj]", "A[vi:vi + 3, vj]", "B[vi, vj]"),
        ("B[vi, vj] = A[vi, vj * 2 - 1] + A[vi, vj * 2 + 1]", "A[vi, vj * 2 - 1:vj * 2 - 1 + 3]",
         "B[vi, vj]"),
        ("for k in range(4):\n    B[vi, k * 4 + 3] = A[vi + k // 2, k % 3]", "A[vi:vi + 2, 0:3]",
         "B[vi, 3:16]"),
        ("for k, l in T.grid(4, 4):\n    B[vi, k * 4 + l] = A[vi, vj * 4 + l - k]",
         "A[vi, vj * 4 - 3:vj * 4 - 3 + 7]", "B[vi, 0:16]"),
        ("for k in range(vi):\n    B[vi, k] = A[k, 15 - k]", "A[0:vi, 16 - vi:16 - vi + vi]",
         "B[vi, 0:vi]"),
        ("B[vi, vj] = A[N[vi, vj], 0]", "A[N[vi, vj], 0], N[vi, vj]", "B[vi, vj]"),
        ("for k in range(4):\n    B[vi, vj] = A[N[vi, k], 0]", "A[0:16, 0], N[vi, 0:4]",
         "B[vi, vj]"),
        ("B[vi, vj] = A[T.shift_right(vi, 1), vj]", "A[0:16, vj]", "B[vi, vj]"),
        ("B[vi, vj] = A[T.Cast(\"int32\", T.Cast(\"float32\", vi) * T.float32(0.5)), vj]",
         "A[0:16, vj]", "B[vi, vj]"),
        ("B[vi, vj] = A[N[T.shift_right(vi, 1), vj], 0]",
         "A[N[vi >> 1, vj], 0], N[0:16, vj]", "B[vi, vj]"),
        ("B[vi, 0:4] = A[vi, 4:8]", "A[vi, 4:8]", "B[vi, 0:4]"),
        ("x = vi + 1\nB[x, vj] = A[x, vj]", "A[vi + 1, vj]", "B[vi + 1, vj]"),
        ("if A[vi, vj] < 3.0:\n    B[vi, 0] = 1.0\nelse:\n    B[vi, 1] = 1.0", "A[vi, vj]",
         "B[vi, 0:2]"),
        ("C = T.alloc_buffer((4,))\nC[0] = A[vi, vj]\nB[vi, vj] = C[0]", "A[vi, vj]", "B[vi, vj]"),
        ("C = T.decl_buffer((4,))\nC[0] = A[vi, vj]\nB[vi, vj] = C[0]", "A[vi, vj]", "B[vi, vj]"),
        ("B[vi, vj] = T.max(A[vi, vj], A[vi, vj])", "A[vi, vj]", "B[vi, vj]"),
        ('T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w"))', "A[0:16, 0:16]",
         "B[0:16, 0:16]"),
        ('T.call_extern("int32", "f", A.access_ptr("rw"))', "A[0:16, 0:16]", "A[0:16, 0:16]"),
    ],
)  # fmt: skip
def test_inferred_regions(statements: str, reads: str, writes: str) -> None:
    assert regions(in_block(statements)) == (reads, writes)


NESTED = """
for k in range(4):
    with T.block("inner"):
        vk = T.axis.spatial(16, vj * 4 + k)
        B[vi, vk] = A[vi, vk] * 2.0
"""


def test_inner_blocks_count_by_their_regions() -> None:
    text = in_block(NESTED).replace("T.grid(16, 16)", "T.grid(16, 4)")
    assert regions(text) == ("A[vi, vj * 4:vj * 4 + 4]", "B[vi, vj * 4:vj * 4 + 4]")
    assert regions(text, "inner") == ("A[vi, vk]", "B[vi, vk]")


def test_views_count_for_the_buffer_that_they_view() -> None:
    text = in_block("""
C = T.match_buffer(B[vi, vj * 4:vj * 4 + 4], (4,))
for k in range(4):
    with T.block("inner"):
        vk = T.axis.reduce(4, k)
        with T.init():
            C[vk] = 0.0
        C[vk] = C[vk] + A[vi, vj * 4 + vk]
""").replace("T.grid(16, 16)", "T.grid(16, 4)")
    expected = "A[vi, vj * 4:vj * 4 + 4]", "B[vi, vj * 4:vj * 4 + 4]"
    assert regions(text) == expected
    assert regions(text, "inner") == ("A[vi, vj * 4 + vk]", "C[vk]")


def test_what_cannot_be_compared_is_held_by_min_and_max() -> None:
    reads, _ = regions(in_block("B[vi, vj] = A[vi, vj] + A[vi, vi]"))
    low = "T.min(vj, vi)"
    assert reads == f"A[vi, {low}:{low} + (T.max(vj, vi) + 1 - {low})]"


def test_declared_regions_are_kept() -> None:
    text = in_block("T.reads(A[0:16, 0:16])\nB[vi, vj] = A[vi, vj]")
    assert regions(text) == ("A[0:16, 0:16]", "B[vi, vj]")


def test_an_index_that_memory_of_the_block_holds_may_be_any() -> None:
    """Unlike TVM, whose region names that memory where it does not exist yet."""
    own = 'j = T.alloc_buffer((1,), "int32")\nj[0] = N[vi, vj] % 16\n'
    read = regions(in_block(own + "B[vi, vj] = A[vi, j[0]]"))
    assert read == ("N[vi, vj], A[vi, 0:16]", "B[vi, vj]")
    inside = 'for k in range(j[0]):\n    with T.block("Y"):\n        B[vi, k] = A[j[0], k]'
    assert regions(in_block(own + inside)) == ("N[vi, vj], A[0:16, 0:16]", "B[vi, 0:16]")
    assert regions(in_block(own + inside), "Y") == ("A[j[0], k], j[0]", "B[vi, k]")


def test_addresses_are_opaque() -> None:
    text = in_block('T.reads()\nT.writes()\nT.call_extern("int32", "f", A.data, n)')
    block = find_block(text)
    call = next(node for node in walk(block.body) if getattr(node, "args", ()))
    function = parse(HEADER + "    pass")
    buffer = function.parameter_buffers[0]
    assert block_access_regions(block).opaque == ()
    found = block_access_regions(block, {call.args[1]: buffer})
    assert [str(region) for region in found.opaque] == ["A[0:16, 0:16]"]
