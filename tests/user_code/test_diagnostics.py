"""Errors: the right line and range, and a traceback of the program's own frames."""

import linecache
from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.playground import cell
from mlcweb.user_code import diagnostics

Run = Callable[[str], Any]


def marked(source: str) -> tuple[int, int, int, int]:
    """Line, column, end line and end column of the only diagnostic of a program."""
    [mark] = cell.execute(source).error.diagnostics
    return mark.line, mark.column, mark.end_line, mark.end_column


def text_at(source: str) -> str:
    line, column, end_line, end_column = marked(source)
    assert line == end_line
    return (
        source.splitlines()[line - 1]
        .encode("utf-16-le")[2 * column : 2 * end_column]
        .decode("utf-16-le")
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\ny = x / 0\n", "x / 0"),
        ("def f():\n    return undefined\nf()\n", "undefined"),
        ("s = 'é∂\U0001f600'; s.nothing\n", "s.nothing"),
        ("import json\n\njson.loads('{')\n", "json.loads('{')"),
    ],
)
def test_the_range_at_fault_is_marked(source: str, expected: str) -> None:
    assert text_at(source) == expected


def test_syntax_errors_are_marked() -> None:
    error = cell.execute("a = 1\nb = (2,\n").error
    assert error.kind == "SyntaxError"
    assert error.message == "'(' was never closed"
    assert marked("a = 1\nb = (2,\n") == (2, 4, 2, 5)


def test_ranges_over_several_lines() -> None:
    assert marked("int(\n    'x'\n)\n") == (1, 0, 3, 1)


def test_the_traceback_shows_the_programs_frames_only() -> None:
    text = cell.execute("import json\njson.loads('{')").error.text
    assert 'File "lesson.py", line 2, in <module>' in text
    assert "decoder.py" not in text.replace("json.decoder", "")
    assert text.endswith("(3 frames inside the library are not shown)")


def test_causes_are_shown_too() -> None:
    source = "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e"
    text = cell.execute(source).error.text
    assert text.index("ZeroDivisionError") < text.index("direct cause") < text.index("ValueError")


def test_an_error_with_a_span_is_marked_there(run: Run) -> None:
    source = """
@T.prim_func
def wrong(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = undefined_name
"""
    [mark] = run(source).error.diagnostics
    text = linecache.getline("lesson.py", mark.line)
    assert text[mark.column : mark.end_column] == "undefined_name"


def test_a_schedule_error_is_marked_at_the_step(run: Run) -> None:
    result = run(
        "sch = tvm.tir.Schedule(MyModule)\n"
        'i, j, k = sch.get_loops(sch.get_block("C"))\n'
        "sch.parallel(k)\n"
    )
    assert result.error.kind == "ScheduleError"
    assert "\nScheduleError: " in result.error.text
    [mark] = result.error.diagnostics
    assert linecache.getline("lesson.py", mark.line) == "sch.parallel(k)\n"
    assert "sch.parallel(k)" in result.error.text


def test_a_huge_message_is_shown_without_its_middle() -> None:
    error = cell.execute("raise ValueError('a' * 10_000_000 + 'the end')").error
    assert len(error.message) < 21_000
    assert len(error.text) < 21_000
    assert "characters are left out" in error.text
    assert error.text.startswith("Traceback")
    assert "the end" in error.text
    assert len(error.diagnostics[0].message) < 21_000


CHAIN = """
error = None
for i in range({count}):
    try:
        raise ValueError(i) from error
    except ValueError as made:
        error = made
raise error
"""


def test_of_a_long_chain_the_last_exceptions_are_shown() -> None:
    nested = (
        "def f(n):\n    try:\n        f(n - 1) if n else 1 / 0\n"
        "    except ArithmeticError:\n        raise OverflowError(n)\nf(200)"
    )
    text = cell.execute(nested).error.text
    assert text.startswith("(182 earlier exceptions are not shown)\n\nled to\n\nTraceback")
    text = cell.execute(CHAIN.format(count=20_000)).error.text
    assert text.startswith("(19,980 earlier exceptions are not shown)\n\nled to\n\nTraceback")
    assert [line for line in text.splitlines() if line.startswith("ValueError")] == [
        f"ValueError: {i}" for i in range(19_980, 20_000)
    ]
    assert text.count('File "lesson.py", line 5, in <module>') == 20


def test_a_chain_that_is_not_long_is_shown_as_a_whole() -> None:
    text = cell.execute(CHAIN.format(count=100)).error.text
    assert "not shown" not in text.replace("characters are left out", "")
    assert text.startswith("Traceback")
    assert "direct cause" in text
    text = cell.execute("e = ValueError(1)\ne.__cause__ = e\nraise e").error.text
    assert text.startswith("Traceback") and text.endswith("ValueError: 1")


def test_groups_that_hold_others_without_number_are_not_opened() -> None:
    nested = (
        "error = ValueError(0)\nfor i in range({}): error = ExceptionGroup('g', [{}])\nraise error"
    )
    for text in (nested.format(40, "error, error"), nested.format(900, "error")):
        shown = cell.execute(text).error.text
        assert shown.startswith("Traceback")
        assert shown.splitlines()[-1].startswith("ExceptionGroup: g (")
    shown = cell.execute("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])").error.text
    assert "ValueError: 1" in shown and "TypeError: 2" in shown


def test_exceptions_in_great_numbers_are_taken_apart() -> None:
    variables: dict[str, Any] = {}
    for count, is_linked in ((900, True), (1200, False)):
        with pytest.raises(ValueError, match="99") as raised:
            exec(CHAIN.format(count=count), variables)
        diagnostics.describe(raised.value, "lesson.py")
        assert (raised.value.__cause__ is not None) is is_linked
