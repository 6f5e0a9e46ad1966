"""Every lesson as its reader runs it, natively: all cells, all exercises, all links."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import mlcweb
from mlcweb import compat, meta_schedule
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.playground import notebook
from mlcweb.playground.checks import EXERCISES, searching
from mlcweb.runtime import registry
from web.scripts.lesson_source import OUTPUTS, Lesson, lessons

LESSONS = lessons()
VIEWS = {"tensorir", "trace", "code", "access", "gpu", "search"}

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What the page provides: the name `tvm`, a folder to write in, and trials that need no process
    of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    whole = meta_schedule.tune_tir
    runner = partial(ThreadRunner, timing=Timing(1, 0.005))
    monkeypatch.setattr(
        meta_schedule, "tune_tir", lambda **options: whole(**{**options, "runner": runner})
    )
    monkeypatch.setattr(searching, "times", lambda *modules: list(map(loads, modules)))
    compat.install()
    with mock.patch.dict(registry._functions):  # lessons register some
        yield
    compat.uninstall()


def loads(module: IRModule) -> float:
    """Loads for each product of vectors in the code of a matrix product: what its speed depends on,
    told without a clock."""
    code = mlcweb.build(module, "wasm").get_source()
    return code.count(".load") / len(re.findall(r"f32x4\.(?:mul|relaxed_madd)", code))


def run(lesson: Lesson, number: int, source: str) -> Any:
    return asyncio.run(notebook.execute(source, lesson.id, number))


@each_lesson
def test_all_cells_print_what_is_recorded(
    lesson: Lesson, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.restart(lesson.id)
    recorded = json.loads((OUTPUTS / f"{lesson.id}.json").read_text("utf8"))["cells"]
    for cell in lesson.cells:
        capsys.readouterr()
        result = run(lesson, cell.number, cell.source)
        assert result.ok, f"cell {cell.number}: {result.error.text}"
        if not cell.varies:
            # The page's engine loads and copies a number at once, this one is asked not to.
            text = capsys.readouterr().out.replace("f32.load\nf32x4.splat", "v128.load32_splat")
            assert text.strip() == recorded[str(cell.number)]["text"].strip(), f"cell {cell.number}"


@each_lesson
def test_solutions_pass_and_what_follows_runs_with_them(lesson: Lesson) -> None:
    notebook.restart(lesson.id)
    for cell in lesson.cells:
        result = run(lesson, cell.number, cell.source)
        assert result.ok, f"cell {cell.number}: {result.error.text}"
        if cell.exercise is None:
            continue
        begun = notebook.check(cell.exercise, lesson.id)
        assert not begun.passed, f"{cell.exercise} is solved from the start"
        assert "raised" not in begun.message, begun.message
        result = run(lesson, cell.number, lesson.solutions[cell.exercise])
        assert result.ok, f"solution of {cell.exercise}: {result.error.text}"
        solved = notebook.check(cell.exercise, lesson.id)
        assert solved.passed, solved.message


@each_lesson
def test_exercises_have_a_checker_hints_and_a_solution(lesson: Lesson) -> None:
    assert lesson.exercises, "a lesson is there to be done"
    assert set(lesson.exercises) == set(lesson.solutions) == set(lesson.hints)
    assert set(lesson.exercises) <= set(EXERCISES)


def test_every_checker_has_its_exercise() -> None:
    named = [name for lesson in LESSONS for name in lesson.exercises]
    assert sorted(named) == sorted(EXERCISES)


@each_lesson
def test_links_lead_somewhere(lesson: Lesson) -> None:
    assert set(re.findall(r"\(view:([^)]*)\)", lesson.text)) <= VIEWS
    ids = {other.id for other in LESSONS}
    assert set(re.findall(r"\(#lesson=([^)]*)\)", lesson.text)) <= ids


@each_lesson
def test_recorded_outputs_are_those_of_the_cells(lesson: Lesson) -> None:
    recording = json.loads((OUTPUTS / f"{lesson.id}.json").read_text("utf8"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", recording["date"])
    assert recording["browser"].startswith("Chromium ")
    recorded = {number: cell["digest"] for number, cell in recording["cells"].items()}
    assert recorded == {str(cell.number): cell.digest for cell in lesson.cells}, (
        "record the lesson again: python -m e2e.record_lessons " + lesson.id
    )


def test_chapters_1_to_7_are_there() -> None:
    chapters = {
        int(found) for l in LESSONS for found in re.findall(r"^chapter: (\d)$", l.text, re.M)
    }
    assert chapters == set(range(1, 8))
