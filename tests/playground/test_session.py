"""What Python keeps of documents, and that they do not see each other."""

import asyncio
import gc
import linecache
import sys
import weakref
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import (
    access_view,
    code_view,
    completion,
    notebook,
    search,
    trace_export,
    trace_timing,
    trace_view,
)
from mlcweb.playground.bridge import call
from mlcweb.playground.protocol.search import SearchSettings
from mlcweb.playground.session import session
from tests.playground.conftest import PROGRAM
from tests.playground.searching import fast_runner, followed
from tests.playground.texts import sides

SCHEDULE = "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"


def cell(lesson: str, source: str, number: int = 1) -> Any:
    result = asyncio.run(notebook.execute(source, lesson, number))
    assert result.ok, result.error
    return result


def settings(document: str) -> SearchSettings:
    return SearchSettings(
        document, "MyModule", schedule_function="stochastic_schedule_mm", trials=2, workers=1
    )


def test_a_run_leaves_what_other_documents_show() -> None:
    first = cell("first", PROGRAM + SCHEDULE)
    second = cell("second", PROGRAM.replace("16", "8") + SCHEDULE)
    assert (first.document, second.document) == ("first", "second")
    ids = [result.programs[-1].id for result in (first, second)]
    assert len({*ids, *(program.id for program in first.programs)}) == len(first.programs) + 1
    texts = ["\n".join(code_view.code(each).tensorir.lines) for each in ids]
    assert ["(16, 16)" in text for text in texts] == [True, False]
    assert "T.grid(16" in sides(trace_view.trace_steps(first.traces[0].id)[0].diff)[1]
    assert access_view.explain(ids[0]).other == first.programs[0].id
    # In its own document a run takes the place of the one before.
    cell("first", "1 + 1", 2)
    with pytest.raises(TVMError, match="earlier run"):
        trace_view.trace_steps(first.traces[0].id)
    assert trace_view.trace_steps(second.traces[0].id)


def test_names_are_those_of_the_document() -> None:
    cell("first", PROGRAM + "mine = 1\n" + SCHEDULE)
    cell("second", "other = 2")
    assert "mine" in completion.live("first").variables
    assert set(completion.live("second").variables) == {"other"}
    first, second = (search.workload(each, "MyModule") for each in ("first", "first"))
    assert first == second
    with pytest.raises(TVMError, match="has no MyModule"):
        search.workload("second", "MyModule")
    with pytest.raises(TVMError, match="the program has no module"):
        trace_export.load("second", "a link's", [[], []])


def test_a_search_is_over_its_own_document_and_belongs_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)
    cell("first", PROGRAM)
    cell("second", PROGRAM.replace("16", "8"))
    identifiers = {name: followed(settings(name))[0] for name in ("first", "second")}
    assert set(session.open("first").searches) == {identifiers["first"]}
    shown = {name: sides(search.details(each, 0).diff)[1] for name, each in identifiers.items()}
    assert "(16, 16)" in shown["first"]
    assert "(8, 8)" in shown["second"]


def test_a_closed_document_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)
    result = cell("first", PROGRAM + SCHEDULE)
    identifier, _ = followed(settings("first"))
    trace = search.details(identifier, 0).trace.id
    session.close("first")
    for ask in (
        lambda: search.details(identifier, 0),
        lambda: trace_view.trace_steps(trace),
        lambda: trace_view.trace_steps(result.traces[0].id),
        lambda: code_view.code(result.programs[0].id),
    ):
        with pytest.raises(TVMError):
            ask()
    assert "MyModule" not in completion.live("first").variables


def test_closing_a_document_frees_what_its_names_held() -> None:
    cell("first", "class Held: ...\nheld = Held()\nmain = __import__('sys').modules['__main__']")
    held = weakref.ref(session.open("first").variables["held"])
    source = notebook.filename_of("first", 1)
    assert source in linecache.cache
    asyncio.run(call("notebook.close", '["first"]'))
    gc.collect()
    assert held() is None
    assert source not in linecache.cache
    assert "first" not in session.documents
    assert not hasattr(sys.modules["__main__"], "held")


def test_closing_a_document_leaves_others_and_does_nothing_twice() -> None:
    cell("first", "kept = 1")
    cell("second", "mine = 2")
    for document in ("first", "first", "never opened"):
        asyncio.run(call("notebook.close", f'["{document}"]'))
    assert completion.live("second").variables.keys() == {"mine"}
    assert completion.live("first").variables == {}
    cell("first", "assert 'kept' not in globals()")


def test_restarting_a_document_forgets_its_names_and_keeps_what_it_showed() -> None:
    result = cell("first", PROGRAM + SCHEDULE)
    notebook.restart("first")
    assert completion.live("first").variables == {}
    assert trace_view.trace_steps(result.traces[0].id)
    with pytest.raises(TVMError, match="nothing of this lesson has run"):
        notebook.check("first_program", "first")


def test_what_is_worked_out_is_kept_until_the_next_run() -> None:
    made: list[int] = []
    document = session.open("first")
    double = made.append
    for _ in range(2):
        document.cached(double, 3)
    assert made == [3]
    document.begin_results()
    document.cached(double, 3)
    assert made == [3, 3]


def test_running_a_cell_makes_its_document_the_main_module() -> None:
    cell("first", "mine = 1")
    cell("second", "import sys\nassert not hasattr(sys.modules['__main__'], 'mine')")
    assert vars(sys.modules["__main__"]) is session.open("second").variables


def test_an_unknown_timing_has_stopped() -> None:
    outcome = asyncio.run(trace_timing.step("m0", "t0", {}, 1))
    assert outcome.state == "stopped"
