"""Cells that share their names, as those of a lesson do."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import notebook
from tests.playground.conftest import PROGRAM

Run = Callable[..., Any]


@pytest.fixture
def cells() -> Run:
    """Runs cells of one lesson, numbered from 1 unless a number is given."""
    notebook.restart("test")
    count = 0

    def run(source: str, number: int | None = None) -> Any:
        nonlocal count
        count += 1
        return asyncio.run(notebook.execute(source, "test", number or count))

    return run


def test_later_cells_know_the_names_of_earlier_ones(
    cells: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    cells("x = 6")
    assert cells("x * 7").ok
    assert capsys.readouterr().out == "42\n"


def test_lessons_do_not_share_names(cells: Run) -> None:
    cells("x = 1")
    result = asyncio.run(notebook.execute("x", "another", 1))
    assert result.error.kind == "NameError"


def test_restart_forgets_the_names(cells: Run) -> None:
    cells("x = 1")
    notebook.restart("test")
    assert cells("x").error.kind == "NameError"


def test_sources_of_earlier_cells_are_found(cells: Run, capsys: pytest.CaptureFixture[str]) -> None:
    cells("def f():\n    return 1\nclass K:\n    y = 2\n")
    cells("import inspect\nprint(inspect.getsource(f), end='')")
    assert capsys.readouterr().out == "def f():\n    return 1\n"


def test_an_error_in_a_function_of_another_cell_is_marked_where_this_one_calls_it(
    cells: Run,
) -> None:
    cells("def f(x):\n    return 1 / x\n")
    error = cells("a = 1\nf(0)").error
    [mark] = error.diagnostics
    assert (mark.line, mark.column) == (2, 0)
    assert 'File "test-cell-1.py", line 2' in error.text
    assert 'File "test-cell-2.py", line 2' in error.text


def test_functions_of_earlier_cells_can_be_searched_with(cells: Run) -> None:
    cells(PROGRAM)
    result = cells("sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))")
    assert result.search_functions == ["stochastic_schedule_mm"]
    assert [trace.title for trace in result.traces] == ["sch"]


def test_a_check_before_any_cell_says_what_to_do() -> None:
    notebook.restart("test")
    with pytest.raises(TVMError, match="nothing of this lesson has run yet"):
        notebook.check("broadcast_add", "test")


def test_an_unknown_exercise_is_an_error(cells: Run) -> None:
    cells("x = 1")
    with pytest.raises(TVMError, match='there is no exercise "juggling"'):
        notebook.check("juggling", "test")
