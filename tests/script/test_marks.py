"""Programs printed with parts marked, and the lines of their nodes."""

from __future__ import annotations

import pytest

from mlcweb.ir import StructuralMismatch, assert_structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.script import parse, render_with_marks, script, script_with_lines
from mlcweb.tir import BlockRealize, BufferStore, For

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
"""
MODULE = parse(TEXT)
NODES = list(walk(MODULE["main"].body))
LOOP_I, LOOP_K = (node for node in NODES if isinstance(node, For))
BLOCK = next(n for n in NODES if isinstance(n, BlockRealize) and n.block.name_hint == "B").block


def _marked(*nodes: object) -> list[tuple[str, str]]:
    """Pairs of a line and the carets below it."""
    lines = render_with_marks(MODULE, nodes).splitlines()
    return [
        (lines[n - 1], line)
        for n, line in enumerate(lines)
        if set(line.strip()) in ({"^"}, {"^", " "})
    ]


def test_a_loop_of_a_grid_is_marked_by_its_variable() -> None:
    assert _marked(LOOP_K) == [
        (
            "        for i, k in T.grid(8, 8):",
            "               ^",
        )
    ]


def test_a_block_is_marked_by_its_header() -> None:
    assert _marked(BLOCK) == [
        (
            '            with T.block("B"):',
            "            ^^^^^^^^^^^^^^^^^^",
        )
    ]


def test_axes_and_several_marks_in_one_line() -> None:
    vi, vk = BLOCK.iter_vars
    ((line, carets),) = _marked(vi, vk)
    assert line.strip().startswith("vi, vk = ")
    assert carets == "                ^^  ^^"


def test_nodes_that_are_not_there_mark_nothing() -> None:
    assert render_with_marks(MODULE, [parse(TEXT)["main"].body]) == script(MODULE)
    assert script(MODULE, underline=[LOOP_K]) == render_with_marks(MODULE, [LOOP_K])


def test_lines_of_nodes() -> None:
    text, lines = script_with_lines(MODULE)
    assert text == script(MODULE)
    first, last = lines[BLOCK]
    assert text.splitlines()[first - 1].strip() == 'with T.block("B"):'
    assert last == len(text.splitlines())
    assert lines[LOOP_I] == lines[LOOP_K] == (first - 1, last)
    stores = [node for node in NODES if isinstance(node, BufferStore)]
    assert {text.splitlines()[lines[node][0] - 1].strip() for node in stores} == {
        "B[vi] = T.float32(0)",
        "B[vi] = B[vi] + A[vi, vk]",
    }


def test_a_difference_of_programs_is_marked() -> None:
    other = parse(TEXT.replace("A[vi, vk]", "A[vi, vk] * 2.0"))
    with pytest.raises(StructuralMismatch) as caught:
        assert_structural_equal(MODULE, other)
    left, right = str(caught.value).split("\nand rhs at ")
    for program, term in ((left, "A[vi, vk]"), (right, "A[vi, vk] * T.float32(2)")):
        line, carets = program.splitlines()[-2:]
        assert carets == " " * line.index(term) + "^" * len(term)
    looped = parse(TEXT.replace("for i, k in T.grid(8, 8):", "for k, i in T.grid(8, 8):"))
    with pytest.raises(ValueError, match="caused by lhs at <root>") as caught:
        assert_structural_equal(MODULE, looped)
