"""Searching over sampled schedules."""

import re

import pytest
from playwright.sync_api import expect

SEARCH_MS = 120_000

REFUSED = """\
import tvm
from tvm.script import tir as T


@T.prim_func
def copy(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


def refused(sch):
    sch.get_block("nothing")
"""


@pytest.fixture
def search(playground):
    playground.run_lesson()
    playground.open_view("search")
    return playground


def start(playground, trials: int) -> None:
    playground["search-trials"].fill(str(trials))
    playground["search-start"].click()


def test_ten_trials_to_a_checked_best(search):
    start(search, 10)
    search.expect_state("ready", timeout_ms=SEARCH_MS)
    rows = search["search-row"]
    expect(rows).to_have_count(10)
    assert {row.get_attribute("data-state") for row in rows.all()} <= {"measured", "repeated"}
    best_ms = float(search["search-best"].get_attribute("data-ms") or "nan")
    assert 0 < best_ms < 10_000
    expect(search["search-chart"].locator("canvas, svg").first).to_be_visible()


def test_the_best_trials_schedule_goes_into_the_editor_and_runs(search):
    start(search, 3)
    search.expect_state("ready", timeout_ms=SEARCH_MS)
    search["search-best"].click()
    view = search["view-search"]
    expect(view).to_contain_text("sch.sample_perfect_tile")
    search["search-use"].click()
    search.run_to_end()
    search.expect_state("ready")


def test_stop_keeps_what_was_found(search):
    start(search, 1000)
    expect(search["search-row"].nth(1)).to_be_visible(timeout=SEARCH_MS)
    search["search-stop"].click()
    search.expect_state("ready", timeout_ms=SEARCH_MS)
    assert 2 <= search["search-row"].count() < 1000
    expect(search["search-best"]).to_have_attribute("data-ms", re.compile(r"^\d+\.\d+$"))


def test_a_failed_trial_is_a_row_with_its_reason(playground):
    playground.run_to_end(REFUSED)
    playground.open_view("search")
    start(playground, 2)
    playground.expect_state("ready")
    rows = playground["search-row"]
    expect(rows).to_have_count(2)
    for row in rows.all():
        expect(row).to_have_attribute("data-state", "failed")
        expect(row).to_contain_text('"nothing"')
