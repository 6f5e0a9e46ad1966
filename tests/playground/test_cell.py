"""Running programs: what they print and show, and what the page is told about it."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcweb.playground import cell, figures, magics, trace_view
from mlcweb.playground.session import Document
from mlcweb.user_code.namespace import SearchModule
from tests.playground.texts import methods

Run = Callable[[str], Any]


def test_output_and_the_value_of_the_last_expression(capsys: pytest.CaptureFixture[str]) -> None:
    result = cell.execute("print('first')\n1 + 2")
    assert capsys.readouterr().out == "first\n3\n"
    assert result.ok
    assert result.error is None
    assert result.elapsed_ms > 0


@pytest.mark.parametrize("source", ["", "# nothing", "x = 1", "1 + 2;", "None"])
def test_no_value_to_show(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cell.execute(source).ok
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("te.placeholder((4,))", "tvm.te.tensor.Tensor"),
        ("tvm.tir.Var('i', 'int32')", "tvm.tir.expr.Var"),
        ("tvm.IRModule({})", "tvm.ir.module.IRModule"),
        ("tvm.nd.array([1])", "tvm.runtime.ndarray.NDArray"),
        ("relax.Var('x', relax.ObjectStructInfo())", "tvm.relax.expr.Var"),
        ("3", "int"),
    ],
)
def test_types_are_shown_as_the_course_shows_them(
    value: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cell.execute(f"import mlcweb as tvm\nfrom mlcweb import te, relax\ntype({value})")
    assert capsys.readouterr().out.strip() == shown


def test_top_level_await(capsys: pytest.CaptureFixture[str]) -> None:
    source = "import asyncio\nx = await asyncio.sleep(0, 'slept')\nawait asyncio.sleep(0, x + '!')"
    assert cell.execute(source).ok
    assert capsys.readouterr().out == "'slept!'\n"


def test_source_of_functions_and_classes_can_be_inspected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = "import inspect\nclass K:\n    x = 1\ndef f(): return 2\n"
    cell.execute(source + "print(inspect.getsource(K) + inspect.getsource(f), end='')")
    assert capsys.readouterr().out == "class K:\n    x = 1\ndef f(): return 2\n"


def test_main_guard_runs(capsys: pytest.CaptureFixture[str]) -> None:
    cell.execute("if __name__ == '__main__':\n    print('main', __file__)")
    assert capsys.readouterr().out == "main lesson.py\n"


def test_each_run_starts_afresh() -> None:
    cell.execute("x = 1")
    error = cell.execute("x").error
    assert error.kind == "NameError"


def test_notebook_magics_are_skipped_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert cell.execute("!pip install -q einops\n%matplotlib inline\nprint('on')").ok
    lines = capsys.readouterr().out.splitlines()
    assert 'micropip.install("einops")' in lines[0]
    assert lines[1].startswith("line 2: %matplotlib inline")
    assert lines[2] == "on"


def test_help_and_what_commands_print_are_skipped_as_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = cell.execute("x = 1\n?x\nx.real??\nfiles = !ls -l\nprint(x)\n", "lesson.py")
    assert result.ok, result.error
    assert [line.split(" is for ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "line 2: ?x", "line 3: x.real??", "line 4: files = !ls -l", "1",
    ]  # fmt: skip


def test_a_cell_in_another_language_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    result = cell.execute("\n%%bash\nfor f in *; do echo $f; done\n", "lesson.py")
    assert result.ok, result.error
    assert capsys.readouterr().out == "line 2: %%bash is for notebooks and is skipped here\n"
    assert cell.execute("%%time\nprint(2)", "lesson.py").ok
    assert capsys.readouterr().out.endswith("skipped here\n2\n")


def test_magics_leave_valid_python_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert cell.execute('text = """\n%d items\n"""\nprint(text % 3)').ok
    assert capsys.readouterr().out == "\n3 items\n\n"


def test_exit_is_no_error() -> None:
    assert cell.execute("import sys\nsys.exit(0)").ok


def test_an_interrupt_ends_the_run_without_a_mark() -> None:
    result = cell.execute("x = 1\nraise KeyboardInterrupt")
    assert result.error.kind == "KeyboardInterrupt"
    assert result.error.diagnostics == []


def test_shown_modules_have_a_name_and_a_line(run: Run) -> None:
    result = run("sch = tvm.tir.Schedule(MyModule)\nsch.mod.show()\nMyModule")
    assert [m.title.split(",")[0] for m in result.modules] == ["sch.mod", "MyModule"]
    assert 'with T.block("C"):' in result.modules[0].source


def test_without_anything_shown_the_last_state_of_schedules_is(run: Run) -> None:
    result = run("sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))")
    [shown] = result.modules
    assert shown.title == "sch.mod"
    assert 'with T.block("C_init"):' in shown.source


def test_traces_of_schedules(run: Run) -> None:
    result = run("sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))")
    [trace] = result.traces
    assert trace.title == "sch"
    steps = trace_view.trace_steps(trace.id)
    assert methods(steps)[:4] == ["get_block", "get_loops", "sample_perfect_tile", "split"]
    [sampling] = [step for step in steps[1:] if step.instruction.is_sampling]
    assert f"decision={sampling.instruction.decision}" in sampling.instruction.text
    assert sampling.index == 3


def test_a_shown_schedule_keeps_its_trace_under_its_line(run: Run) -> None:
    result = run(
        "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"
        "sch.mod.show()\n"
        "sch = tvm.tir.Schedule(MyModule)\n"
        "i, j, k = sch.get_loops(sch.get_block('C'))\n"
    )
    first, last = result.traces
    assert first.title.startswith("sch, line ")
    counts = [len(trace_view.trace_steps(trace.id)) for trace in result.traces]
    assert [last.title, counts] == ["sch", [7, 3]]


IN_A_FUNCTION = """
def scheduled(mod):
    sch = tvm.tir.Schedule(mod)
    i, j, k = sch.get_loops(sch.get_block("C"))
    return sch

def main():
    made = scheduled(MyModule)
    made.split(made.get_loops(made.get_block("C"))[0], [None, 8])
    {last}
"""


def test_what_a_function_shows_has_the_names_of_its_variables(run: Run) -> None:
    result = run(IN_A_FUNCTION.format(last="made.mod.show()") + "main()\n")
    [shown], [trace] = result.modules, result.traces[:1]
    assert shown.title.startswith("made.mod, line ")
    assert trace.title.startswith("made, line ")
    assert len(trace_view.trace_steps(trace.id)) == 6


def test_functions_that_an_error_has_left_can_be_looked_at(run: Run) -> None:
    result = run(IN_A_FUNCTION.format(last="made.vectorize(3)") + "main()\n")
    assert not result.ok
    [trace] = result.traces
    assert trace.title == "made in main"
    assert "made.mod in main" in [each.title for each in result.programs]
    assert len(trace_view.trace_steps(trace.id)) == 6


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python does not tell of returns")
def test_functions_that_have_returned_can_be_looked_at(run: Run) -> None:
    result = run(IN_A_FUNCTION.format(last="mod = made.mod") + "main()\n")
    assert [trace.title for trace in result.traces] == ["made in main"]
    assert [each.name for each in result.search_modules] == ["MyModule", "mod in main"]
    assert [each.title for each in result.programs] == ["MyModule", "mod in main"]


def test_what_a_search_can_start_from(run: Run) -> None:
    result = run("")
    assert result.search_functions == ["stochastic_schedule_mm"]
    offered = SearchModule("MyModule", ["main"], model=False)
    assert result.search_modules == [offered]


def test_a_failed_run_still_offers_what_it_defined(run: Run) -> None:
    result = run("1 / 0")
    assert not result.ok
    offered = SearchModule("MyModule", ["main"], model=False)
    assert result.search_modules == [offered]
    assert result.modules[0].title == "MyModule"


def test_imports_from_the_future_need_not_be_first_and_hold_for_later_cells() -> None:
    source = "'''About it.'''\nx = 1\nfrom __future__ import annotations\ndef f(a: unknown): ...\n"
    result = cell.execute(source + "assert f.__annotations__ == {'a': 'unknown'}, __doc__\n")
    assert result.ok, result.error
    document = Document("test")
    for text in ("x = 1\nfrom __future__ import annotations", "def f(a: unknown): ...\nf"):
        result = asyncio.run(cell.run_in(document, text, "cell.py"))
        assert result.ok, result.error
    # The next program starts without it.
    assert cell.execute("def f(a: unknown): ...").error.kind == "NameError"


def test_a_future_that_is_none_is_an_error_at_its_line() -> None:
    error = cell.execute("x = 1\nfrom __future__ import brackets").error
    assert error.kind == "SyntaxError"
    assert error.diagnostics[0].line == 2


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("mlc-ai-nightly", "import tvm works without"),
        ("torch", "import torch gives a small stand-in"),
        ("tensorflow", "tensorflow has no build for browsers"),
        ("einops>=1", 'micropip.install("einops")'),
    ],
)
def test_what_is_said_of_packages(
    package: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cell.execute(f"!python3 -m pip install --pre {package}").ok
    assert words in capsys.readouterr().out


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_file_that_is_known_is_made_in_place_of_its_download(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(magics.FILES, "weights.pkl", lambda: b"0123")
    source = "!wget -nc https://example.org/models/weights.pkl\n!wget https://example.org/x.pkl\n"
    assert cell.execute(
        source + "from pathlib import Path\nprint(Path('weights.pkl').read_text())"
    ).ok
    made, skipped, content = capsys.readouterr().out.splitlines()
    assert made.startswith("line 1: weights.pkl is not downloaded")
    assert "is skipped here" in skipped
    assert content == "0123"


def test_the_packages_that_a_program_imports() -> None:
    source = "!pip install x\nimport sqlfluff.core as s\ndef f():\n    from plotly import go\n"
    assert magics.imports(source + "from . import here\nimport sys, pytest") == [
        "plotly",
        "sqlfluff",
    ]
    assert magics.imports("import (") == []


def test_an_object_with_html_is_shown_as_a_page(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    told: list[tuple[str, object]] = []
    monkeypatch.setattr(figures, "in_browser", lambda: True)
    monkeypatch.setattr(figures, "tell", lambda *message: told.append(message))
    run("class Table:\n    def _repr_html_(self):\n        return '<b>1</b>'\nTable()")
    run("class Plain:\n    def _repr_html_(self):\n        return None\nPlain()")
    run("class Table:\n    def _repr_html_(self):\n        return '<b>1</b>'\nTable")
    assert told == [("html", "<b>1</b>")]


def test_what_is_too_large_for_the_page_is_not_sent_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, object]] = []
    monkeypatch.setattr(figures, "in_browser", lambda: True)
    monkeypatch.setattr(figures, "tell", lambda *message: told.append(message))
    show = "class Shown:\n    {}=lambda self: {}\nShown()"
    assert cell.execute(show.format("_repr_html_", "'x' * 250_001")).ok
    assert cell.execute(show.format("_repr_png_", "bytes(4_500_001)")).ok
    assert told == []
    assert capsys.readouterr().err.splitlines() == [
        "HTML not shown: it has 250,001 characters, more than 250,000",
        "Picture not shown: it has 4,500,001 bytes, more than 4,500,000",
    ]
    assert cell.execute(show.format("_repr_html_", "'x' * 250_000")).ok
    assert cell.execute(show.format("_repr_png_", "bytes(4_500_000)")).ok
    assert [name for name, _ in told] == ["html", "picture"]
