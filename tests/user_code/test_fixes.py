"""Edits that are offered with an error: applied, they make the program run."""

import pytest

from mlcweb.playground import cell
from tests.playground.conftest import PROGRAM


def apply(source: str, fix: dict) -> str:
    lines = source.split("\n")
    line = lines[fix.line - 1]
    assert fix.line == fix.end_line
    lines[fix.line - 1] = line[: fix.column] + fix.text + line[fix.end_column :]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("wrong", "title"),
    [
        ('tvm.tir.Schedule(MyModule).get_blok("C")', "Change get_blok to get_block"),
        ('tvm.tir.Schedule(MyModule).get_block("CC")', "Change CC to C"),
        ('tvm.tir.Schedule(MyModule).get_block("C", "mian")', "Change mian to main"),
        ("tvm.nd.aray([1])", "Change aray to array"),
        ("tvm.build(MyModul)", "Change MyModul to MyModule"),
        ("np.ones(3)", "Add import numpy as np"),
        (
            "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    for i in T.gird(4):\n"
            "        A[i] = 0.0\n",
            "Change gird to grid",
        ),
    ],
)
def test_the_fix_mends_the_program(wrong: str, title: str) -> None:
    source = PROGRAM + wrong
    (mark,) = cell.execute(source).error.diagnostics
    assert mark.fix.title == title
    assert cell.execute(apply(source, mark.fix)).error is None


@pytest.mark.parametrize(
    "wrong",
    [
        "1 / 0",
        "qqqq",
        "sch.reorder",
        "MyModule.zzzz",
        "raise ValueError('a \"b\" c')",
        "import mlcweb.nothing_here",
    ],
)
def test_no_fix_is_offered_where_none_is_obvious(wrong: str) -> None:
    (mark,) = cell.execute(PROGRAM + wrong).error.diagnostics
    assert mark.fix is None
