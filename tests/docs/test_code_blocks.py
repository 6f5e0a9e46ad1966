"""The Python blocks of the README and of the docs run, page by page, from top to bottom.

A block that is a fragment has `<!--- skip: next -->` above it; what a block needs and a reader does
not is in comments, `<!--- invisible-code-block: python … -->`. Neither is shown.
"""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if {"_build", "api"}.isdisjoint(p.parts)),
]
SYBIL = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path: Path) -> None:
    document = SYBIL.parse(path)
    document.namespace["__name__"] = f"docs_{path.stem}"
    for example in document.examples():
        example.evaluate()
