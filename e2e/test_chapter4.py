"""Chapter 4 of the course from the first cell to the last, as its cells stand."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.thorough
"""The cells are checked outside the page in every run."""

COURSE = Path(__file__).parents[1] / "tests" / "course"


def cells(name: str) -> str:
    return (COURSE / "cells" / f"{name}.txt").read_text("utf8")


def stand_ins() -> str:
    """What stands in for torch, its pictures and the file of weights, as a program of its own."""
    source = (COURSE / "fashion_mnist.py").read_text("utf8")
    source = source.partition("def run_chapter(")[0]
    for line in ("import pytest\n", "from mlcweb import compat\n"):
        source = source.replace(line, "")
    source = source.replace("from mlcweb.playground import cell\n", "import os\n")
    source = source.replace('CELLS = Path(__file__).parent / "cells"\n', "")
    return (
        source
        + """
patch = SimpleNamespace(setitem=lambda names, key, value: names.update({key: value}))
patch.chdir = os.chdir
install(patch, Path.cwd())
print("stand-ins are there")
"""
    )


def test_the_first_half_samples_schedules_and_keeps_the_best(playground):
    playground.run_to_end(cells("chapter4"))
    playground.expect_state("ready")
    printed = playground["console"].inner_text()
    assert re.search(r"Time cost of MyModule: \d+\.\d+ ms", printed)
    assert re.search(r"Time cost of MyModule=>schedule_mm: \d+\.\d+ ms", printed)
    attempts = re.findall(r"=====Attempt (\d), time-cost: (\d+\.\d+) ms====", printed)
    assert [number for number, _ in attempts] == ["0", "1", "2", "3", "4"]
    # The Search view offers what the chapter has defined.
    playground.open_view("search")
    assert playground.page.locator("#search-function").input_value() == "stochastic_schedule_mm"


def test_the_second_half_tunes_a_function_of_the_model_and_puts_it_back(playground):
    playground.run_to_end(stand_ins())
    expect(playground["console"]).to_contain_text("stand-ins are there")
    playground.run_to_end(cells("chapter4_model"))
    playground.expect_state("ready")
    printed = playground["console"].inner_text()
    for name in ("MyModuleWithParams", "MyModuleWithParams2"):
        assert re.search(rf"{name} Prediction: \w", printed)
        assert re.search(rf"{name} time-cost: \d+\.\d+ ms", printed)
    assert "64/64" in printed
    # The search of the cell can be looked at as one of the page's own.
    playground.open_view("search")
    expect(playground["search-row"]).to_have_count(64)
    playground["search-best"].click()
    expect(playground["view-search"]).to_contain_text("sch.get_block")
