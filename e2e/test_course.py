"""The chapters of the course that a reader can run, in the page: in one go, and cell by cell.

The cells are those of `tests/course`, which checks what comes out of them outside of the page; here
it counts that they run, and that the network knows the picture that is drawn.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e import packages
from e2e.playground import Playground

pytestmark = pytest.mark.thorough

CELLS = Path(__file__).parents[1] / "tests" / "course" / "cells"

DOCUMENTS = {
    "chapter 2": ["chapter2"],
    "chapter 3": ["chapter3"],
    "chapter 4 of 2025": ["chapter4", "chapter4_tuning", "chapter4_model"],
    "chapter 4 of 2022": ["chapter4", "chapter4_tuning_2022", "chapter4_model_2022"],
    "chapter 5": ["chapter5"],
    "chapter 6": ["chapter6_part1", "chapter6_running", "chapter6_part2"],
    "chapter 7": ["chapter7"],
    "tiling report": ["chapter7", "tiling_report"],
}
BEFORE = {"chapter 6": "import tvm\nfrom tvm.script import tir as T\n"}
"""What a chapter imports on pages that its cells leave out."""


def cells_of(document: str) -> list[str]:
    sources = [(CELLS / f"{name}.txt").read_text("utf8") for name in DOCUMENTS[document]]
    if document == "chapter 6":
        # On a GPU that is simulated the book's products of 1024 x 1024 would take minutes.
        sources = [text.replace("max_trials_global=64", "max_trials_global=4") for text in sources]
        sources[:2] = [text.replace("1024", "256") for text in sources[:2]]
    cells = [each for source in sources for each in re.split(r"^# %%\n", source, flags=re.M)]
    return [BEFORE[document], *cells] if document in BEFORE else cells


def expect_predictions(playground: Playground) -> None:
    """Every prediction is the class of the picture that was shown last; each has a figure."""
    kind, pictures = "", 0
    printed = playground["console"].inner_text()
    for what, value in re.findall(r"^(Class|.*Prediction): (.*)$", printed, re.M):
        if what == "Class":
            kind, pictures = value, pictures + 1
        else:
            assert value == kind
    expect(playground["console"].get_by_role("img")).to_have_count(pictures)


@pytest.fixture
def playground(used_playground: Callable[..., Playground]) -> Iterator[Playground]:
    """A page that can fetch matplotlib, or has it from the chapter before."""
    playground: Playground = used_playground()
    packages.serve_as_cdn(playground.page.context, "matplotlib")
    yield playground
    playground.page.context.unroute_all()


def run(playground: Playground, program: str) -> None:
    playground.run_to_end(f"{program}\nprint('the end')")
    expect(playground["console"]).to_contain_text("the end")
    playground.expect_state("ready")
    expect_predictions(playground)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_in_one_go(document: str, playground: Playground) -> None:
    run(playground, "\n# %%\n".join(cells_of(document)))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_cell_by_cell(document: str, playground: Playground) -> None:
    cells = json.dumps(json.dumps(cells_of(document)))
    run(
        playground,
        f"""
import json, matplotlib
from mlcweb.playground import notebook

for number, source in enumerate(json.loads({cells}), 1):
    result = await notebook.execute(source, "document", number)
    assert result.ok, result.error.text
""",
    )
