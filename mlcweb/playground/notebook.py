"""Lessons: cells that share one module, as those of a notebook do."""

from __future__ import annotations

from mlcweb.ir import TVMError
from mlcweb.playground import cell, checks
from mlcweb.playground.protocol.program import RunResult, Verdict
from mlcweb.playground.session import session
from mlcweb.runtime.build import reset_warnings


def filename_of(lesson: str, number: int) -> str:
    """What tracebacks call a cell. It is the cell's own, so that sources of functions that other
    cells have defined can still be found."""
    return f"{lesson}-cell-{number}.py"


async def execute(source: str, lesson: str, number: int) -> RunResult:
    """Run a cell with the names that earlier cells of its lesson have defined.

    Args:
        source: the cell's text.
        lesson: which cells belong together.
        number: the cell's place in the lesson, from 1.

    Diagnostics are places in this cell, even where the error was raised in a function of another.
    """
    document = session.open(lesson)
    if not document.files:
        reset_warnings()
    return await cell.run_in(document, source, filename_of(lesson, number))


def restart(lesson: str) -> None:
    """Forget everything that the cells of a lesson have defined."""
    session.open(lesson).restart()


def close(document: str) -> None:
    """Let go of a document for good: its names, and all that it showed."""
    session.close(document)


def check(exercise: str, lesson: str) -> Verdict:
    """Judge an exercise by what the lesson's cells have defined."""
    document = session.open(lesson)
    if not document.files:
        raise TVMError("nothing of this lesson has run yet; run the exercise's cell first")
    return checks.judge(exercise, document.variables)
