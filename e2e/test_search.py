"""Searching over schedules: strategies, budgets, records, comparing, and putting the best back."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.lesson_page import LessonPage
from e2e.playground import Playground, wait_until_kept
from e2e.programs import COPY

REFUSED = (
    COPY
    + """

def refused(sch):
    sch.get_block("nothing")
"""
)

MODEL = (
    (Path(__file__).parents[1] / "tests" / "relax_vm" / "programs.py")
    .read_text("utf8")
    .replace("import mlcweb as tvm", "import tvm")
    .replace("from mlcweb.script", "from tvm.script")
)

LIBRARY = """
@tvm.register_func("env.linear", override=True)
def linear(x, w, b, out):
    out.copyfrom(x.numpy() @ w.numpy().T + b.numpy())


@tvm.register_func("env.relu", override=True)
def relu(x, out):
    out.copyfrom(np.maximum(x.numpy(), 0))
"""

STUBBORN = """
print("on and on")
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""

LESSON = (Path(__file__).parents[1] / "web" / "src" / "program" / "first_program.py").read_text(
    "utf8"
)

TUNING = """
from tvm import meta_schedule as ms

database = ms.tune_tir(MyModule, target="llvm", max_trials_global=12, num_trials_per_iter=12)
print(len(database) >= 12)
"""


@pytest.fixture
def search(playground):
    """The page after the first program has run, with the Search view open."""
    playground.run_first_program()
    playground.open_view("search")
    return playground


def start(playground: Playground, budget: int, strategy: str = "function", unit: str = "trials"):
    playground["search-strategy"].select_option(strategy)
    playground["search-trials"].fill(str(budget))
    playground["search-unit"].select_option(unit)
    playground["search-start"].click()


def to_end(playground: Playground, budget: int, strategy: str = "function", unit: str = "trials"):
    with playground.to_end():
        start(playground, budget, strategy, unit)


def best_ms(playground: Playground) -> float:
    return float(playground["search-best"].get_attribute("data-ms") or "nan")


def states(playground: Playground) -> list[str]:
    return [str(row.get_attribute("data-state")) for row in playground["search-row"].all()]


def records(playground: Playground) -> int:
    """How many records there are, at least one."""
    playground["tab-search-records"].click()
    count = playground["search-record-count"]
    expect(count).to_have_attribute("data-count", re.compile(r"[1-9]\d*"))
    return int(count.get_attribute("data-count") or -1)


def test_ten_trials_to_a_checked_best(search):
    expect(search["view-search"]).to_contain_text("Start a search")
    to_end(search, 10)
    expect(search["view-search"]).not_to_contain_text("Start a search")
    rows = search["search-row"]
    expect(rows).to_have_count(10)
    assert set(states(search)) <= {"measured", "repeated"}
    assert best_ms(search) > 0
    expect(search["search-chart"].locator("canvas, svg").first).to_be_visible()


@pytest.mark.thorough
def test_the_best_trials_schedule_goes_into_the_editor_and_runs(search):
    to_end(search, 3)
    search["search-best"].click()
    view = search["view-search"]
    expect(view).to_contain_text("sch.sample_perfect_tile")
    search["search-way-diff"].click()
    expect(search["search-diff"].locator("ins, .added").first).to_be_visible()
    search["search-way-steps"].click()
    search["search-use"].click()
    search.run_to_end()
    search.expect_state("ready")


@pytest.mark.thorough
def test_a_trial_opens_in_the_trace_view(search):
    to_end(search, 2)
    search["search-best"].click()
    search["search-open-trace"].click()
    expect(search["view-trace"]).to_be_visible()
    expect(search["trace-step"].filter(has_text="sch.decompose_reduction")).to_have_count(1)
    expect(search["trace-decision"].first).to_be_visible()


def test_stop_keeps_what_was_found(search):
    with search.to_end():
        start(search, 1000)
        expect(search["search-row"].nth(1)).to_be_visible()
        search["search-stop"].click()
    assert 2 <= search["search-row"].count() < 1000
    expect(search["search-best"]).to_have_attribute("data-ms", re.compile(r"^\d+\.\d+$"))


def test_a_failed_trial_is_a_row_with_its_reason(playground):
    playground.run_to_end(REFUSED)
    playground.open_view("search")
    to_end(playground, 2)
    rows = playground["search-row"]
    expect(rows).to_have_count(2)
    for row in rows.all():
        expect(row).to_have_attribute("data-state", "failed")
        expect(row).to_contain_text("with the name: nothing")


@pytest.mark.thorough
def test_evolution_in_the_default_space_is_told_from_all_sides(search):
    to_end(search, 32, "evolutionary")
    expect(search["search-row"]).to_have_count(32)
    best = search["search-best"].inner_text()
    assert re.search(r"[\d.]+ GFLOPS", best)
    search["tab-search-model"].click()
    expect(search["search-accuracy"]).to_contain_text("pairs of trials")
    expect(search["search-predictions"].locator("circle").first).to_be_visible()
    search["tab-search-decisions"].click()
    expect(search["search-parallel"].locator("path").first).to_be_visible()
    search["view-search"].locator("summary", has_text="Time by choice").click()
    expect(search["search-choices"].locator("tbody tr").first).to_contain_text("i_0")


@pytest.mark.thorough
def test_exhaustive_search_of_a_small_space_ends_by_itself(playground):
    playground.run_to_end(REFUSED)
    playground.open_view("search")
    to_end(playground, 500, "exhaustive")
    assert 1 <= playground["search-row"].count() < 100
    assert "failed" not in states(playground)


@pytest.mark.thorough
def test_seconds_end_a_search(search):
    to_end(search, 2, "random", "seconds")
    expect(search["search-hint"]).to_contain_text("Done")


@pytest.mark.thorough
def test_a_search_pauses_lets_programs_run_and_goes_on(search):
    with search.to_end():
        start(search, 1000, "random")
        expect(search["search-row"].nth(1)).to_be_visible()
        search["search-pause"].click()
    expect(search["search-hint"]).to_contain_text("Paused")
    so_far = search["search-row"].count()
    assert 2 <= so_far < 1000
    search.run_to_end("print(6 * 7)")
    expect(search["console"]).to_contain_text("42")
    search.open_view("search")
    expect(search["search-pause"]).to_have_text("Resume")
    with search.to_end():
        search["search-pause"].click()
        expect(search["search-row"].nth(so_far)).to_be_visible()
        search["search-stop"].click()
    expect(search["search-hint"]).to_contain_text("Stopped")


@pytest.mark.thorough
def test_two_searches_are_compared(search):
    to_end(search, 6)
    first = best_ms(search)
    to_end(search, 12, "random")
    search["tab-search-compare"].click()
    table = search["search-comparison"]
    expect(table.locator("thead")).to_contain_text("own function")
    expect(table.locator("thead")).to_contain_text("random")
    expect(search["search-curves"].locator("path.curve")).to_have_count(2)
    search["search-by"].select_option("seconds")
    expect(table).to_contain_text("Seconds to within 5 %")
    # The first can still be looked at.
    shown = search["search-shown"]
    shown.select_option(index=shown.locator("option").count() - 2)
    assert best_ms(search) == first
    expect(search["search-row"]).to_have_count(6)


@pytest.mark.thorough
def test_records_are_exported_cleared_and_imported(search, tmp_path):
    to_end(search, 6, "random")
    kept = records(search)
    assert kept >= 6
    downloads = []
    search.page.on("download", lambda download: downloads.append(download))
    with search.page.expect_event("download", lambda _: len(downloads) == 2):
        search["search-export"].click()
    expect(search.page.locator("#toast")).to_contain_text("Two files")
    files = [tmp_path / download.suggested_filename for download in downloads]
    for path, download in zip(files, downloads, strict=True):
        download.save_as(path)
    names = {path.name for path in files}
    assert names == {"database_workload.json", "database_tuning_record.json"}
    lines = (tmp_path / "database_tuning_record.json").read_text("utf8").splitlines()
    assert len(lines) == kept
    number, record = json.loads(lines[0])
    assert number == 0
    assert len(record) == 4
    search["search-clear"].click()
    search["search-clear"].click()
    expect(search["search-record-count"]).to_have_attribute("data-count", "0")
    search["search-import-files"].set_input_files(files)
    expect(search["search-record-count"]).to_have_attribute("data-count", str(kept))
    search["tab-search-times"].click()
    to_end(search, 4, "random")
    assert states(search)[:6] == ["recalled"] * 6
    assert len(states(search)) == 10
    assert "recalled" not in states(search)[6:]


@pytest.mark.thorough
def test_a_later_visit_goes_on_from_records(open_playground):
    playground = open_playground()
    playground.run_first_program()
    playground.open_view("search")
    to_end(playground, 6, "random")
    playground.page.reload()
    playground.expect_state("ready")
    playground.run_first_program()
    playground.open_view("search")
    to_end(playground, 4, "random")
    # The strategy and the seed are the same, the new programs are others.
    assert states(playground)[:6] == ["recalled"] * 6
    assert "recalled" not in states(playground)[6:]
    assert len(states(playground)) == 10
    assert best_ms(playground) > 0


@pytest.mark.thorough
def test_a_search_works_where_storage_is_denied(open_playground):
    playground = open_playground()
    playground.page.add_init_script(
        "Object.defineProperty(window, 'indexedDB', { get() { throw new Error('denied'); } });"
    )
    playground.page.reload()
    playground.expect_state("ready")
    playground.run_first_program()
    playground.open_view("search")
    to_end(playground, 3)
    assert records(playground) >= 1
    expect(playground["search-record-count"]).to_contain_text("gone when it is closed")


DAMAGE = """(key) => new Promise((resolve, reject) => {
    const opening = indexedDB.open("mlcweb-documents");
    opening.onerror = reject;
    opening.onsuccess = () => {
        const into = opening.result.transaction("documents", "readwrite").objectStore("documents");
        const runs = [null, 7, { cell: "lesson.py" }];
        into.put({ id: key, at: 1, runs, scroll: "far", view: 3 });
        into.transaction.oncomplete = () => resolve(opening.result.close());
    };
})"""

DAMAGE_RECORDS = """() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("mlcweb-records");
    opening.onerror = reject;
    opening.onsuccess = () => {
        const into = opening.result.transaction("records", "readwrite").objectStore("records");
        into.openCursor().onsuccess = ({ target: { result: at } }) => {
            if (!at) return;
            const { id, workload } = at.value;
            at.update({ id, workload, program: "no hash", seconds: "soon", record: 5 });
            at.continue();
        };
        into.transaction.oncomplete = () => resolve(opening.result.close());
    };
})"""


@pytest.mark.thorough
def test_a_damaged_database_costs_what_it_held_and_is_said_once(search):
    to_end(search, 3)
    count = records(search)
    wait_until_kept(search.page, "program", 1)
    search.page.evaluate(DAMAGE, "program")
    search.page.evaluate(DAMAGE_RECORDS)
    search.page.reload()
    search.expect_state("ready")
    search.run_first_program()
    search.open_view("search")
    to_end(search, 3)
    expect(search["search-hint"]).to_contain_text(f"{count} records could not be read")
    assert "recalled" not in states(search)


@pytest.mark.thorough
def test_what_was_found_outlives_python(search):
    to_end(search, 4)
    best = best_ms(search)
    search.run(STUBBORN)
    expect(search["console"]).to_contain_text("on and on")
    search.stop()
    expect(search["console"]).to_contain_text("restarted")
    search.open_view("search")
    expect(search["search-row"]).to_have_count(4)
    assert best_ms(search) == best


WATCH_FIRST_ROW = """() => {
    new MutationObserver(() => {
        if (window.stateAtFirstRow || !document.querySelector("[data-testid=search-row]")) return;
        window.stateAtFirstRow = document.getElementById("status").dataset.state;
    }).observe(document.body, { childList: true, subtree: true });
}"""


@pytest.mark.thorough
def test_a_program_that_tunes_shows_its_search_live(playground):
    playground.open_view("search")
    playground.page.evaluate(WATCH_FIRST_ROW)
    playground.run_to_end(LESSON + TUNING)
    assert playground.page.evaluate("stateAtFirstRow") == "running"
    expect(playground["search-row"]).to_have_count(12)
    expect(playground["console"]).to_contain_text("True")
    expect(playground["console"]).to_contain_text("12/12")
    playground["search-best"].click()
    expect(playground["view-search"]).to_contain_text("sch.get_block")


@pytest.mark.thorough
def test_a_function_of_a_model_is_tuned_put_back_and_timed_end_to_end(playground):
    playground.run_to_end(MODEL + LIBRARY)
    playground.expect_state("ready")
    playground.open_view("search")
    page = playground.page
    page.locator("#search-module").select_option("MyModuleMixture")
    expect(playground["search-primfunc"]).to_have_value("linear0")
    to_end(playground, 16, "evolutionary")
    playground["search-best"].click()
    playground["search-model-times"].click()
    result = playground["search-model-result"]
    expect(result).to_have_attribute("data-after", re.compile(r"\d"))
    for name in ("before", "after"):
        assert float(result.get_attribute(f"data-{name}")) > 0
    playground["search-replace"].click()
    playground.settle()
    playground.run_to_end()
    playground.expect_state("ready")
    source = playground.open_view("tensorir").inner_text()
    assert "T.vectorized" in source
    assert "linear0" in source


def test_a_lesson_does_not_show_the_search_of_another_document(search):
    to_end(search, 2)
    lesson = LessonPage(search.page)
    lesson.open("02-tensorir")
    expect(search["search-row"]).to_have_count(0)
    lesson.cell(1).get_by_test_id("cell-run").click()
    expect(lesson.cell(1)).to_have_attribute("data-state", "done")
    expect(search["search-row"]).to_have_count(0)
    search.page.evaluate("location.hash = ''")
    expect(search["search-row"]).to_have_count(2)
    # What its trials were can still be asked for.
    search["search-row"].first.click()
    expect(search["view-search"]).to_contain_text("sch.sample_perfect_tile")
