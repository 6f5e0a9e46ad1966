"""The Sphinx project in `web/examples` builds, and its pages hold the elements."""

from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "web" / "examples" / "sphinx"


@pytest.fixture
def page(tmp_path: Path) -> str:
    application = pytest.importorskip("sphinx.application")
    app = application.Sphinx(
        EXAMPLE, EXAMPLE, tmp_path / "html", tmp_path / "trees", "html", status=None, warning=None
    )
    app.build()
    assert app.statuscode == 0
    return (tmp_path / "html" / "index.html").read_text(encoding="utf-8")


def test_the_page_holds_elements_with_static_code_and_the_script(page: str) -> None:
    assert '<mlc-cell panes="trace code">' in page
    assert '<mlc-lesson lesson="02-tensorir">' in page
    assert "https://play.example.org/embed.js" in page
    cell = page[page.index("<mlc-cell") : page.index("</mlc-cell>")]
    assert "<pre>" in cell
    assert "1 &lt; 2 and" in cell
