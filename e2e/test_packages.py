"""Packages that a program imports: fetched then, by hash; figures appear in the output."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e import packages
from e2e.conftest import DIST
from e2e.playground import Playground

FIGURE = """
import matplotlib.pyplot as plt

print("before")
plt.plot([1, 4, 9])
plt.show()
print("between")
plt.imshow([[0, 1], [1, 0]])
plt.colorbar()
print("after")
"""


def expect_figures(playground: Playground, count: int) -> None:
    figures = playground["console"].get_by_role("img")
    expect(figures).to_have_count(count)
    for figure in figures.all():
        assert figure.evaluate("e => e.decode().then(() => e.naturalWidth > 600 && e.width > 200)")


def test_a_figure_appears_where_it_is_shown_and_an_open_one_at_the_end(open_playground):
    playground = open_playground()
    asked = packages.serve_as_cdn(playground.page.context, "matplotlib")
    playground.run_to_end(FIGURE)
    playground.expect_state("ready")
    expect_figures(playground, 2)
    shown = playground["console"].evaluate(
        "e => [...e.querySelectorAll('.out-stdout, img')]"
        ".map((part) => part.alt ?? part.textContent).join('')"
    )
    figure = "Figure(640x480)"
    assert shown == f"before\n{figure}between\nafter\n{figure}"
    # What is there is not fetched again.
    count = len(asked)
    assert count >= 8
    playground.run_to_end(FIGURE)
    expect_figures(playground, 2)
    assert len(asked) == count


def test_what_cannot_be_fetched_says_so(open_playground):
    playground = open_playground()
    playground.page.context.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())
    playground.run_to_end("import sqlite3x\nimport pandas")
    expect(playground["console"]).to_contain_text('micropip.install("sqlite3x")')
    playground.page.locator("#clear").click()
    playground.run_to_end("import pandas")
    expect(playground["console"]).to_contain_text("import pandas fetches it")
    # The reason is said once, and not of each package that pandas needs.
    said = playground["console"].inner_text()
    assert said.count("Fetching pandas failed: ") == 1
    assert "error occurred" not in said
    playground.run_to_end("import torch.optim")
    expect(playground["console"]).to_contain_text("torch.optim is not part of the stand-in")
    playground.problems = [p for p in playground.problems if "ERR_FAILED" not in p]


@pytest.mark.thorough
def test_pandas_and_scipy(open_playground):
    playground = open_playground()
    packages.serve_as_cdn(playground.page.context, "pandas", "scipy")
    playground.run_to_end(
        "import pandas\nfrom scipy import linalg\n"
        "print(pandas.DataFrame({'a': [1, 2]}).a.sum(), linalg.det([[2, 0], [0, 3]]))"
    )
    expect(playground["console"]).to_contain_text("3 6.0")


@pytest.mark.thorough
def test_a_package_of_the_pages_own_folder_works_offline_once_imported(
    open_playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copy = tmp_path / "dist"
    shutil.copytree(DIST, copy)
    script = packages.vendor()
    for name, content in packages.files("matplotlib").items():
        (copy / "pyodide" / name).write_bytes(content)
    monkeypatch.setattr(script, "RUNTIME", copy / "pyodide")
    list(script.vendor_wheels(["matplotlib"]))
    playground = open_playground(folder=copy, service_workers="allow")
    page = playground.page
    expect(page.locator("html")).to_have_attribute("data-offline", "ready")
    page.reload()
    playground.expect_state("ready")
    playground.run_to_end(FIGURE)
    expect_figures(playground, 2)
    page.context.set_offline(True)
    page.reload()
    playground.expect_state("ready")
    playground.run_to_end(FIGURE)
    expect_figures(playground, 2)
