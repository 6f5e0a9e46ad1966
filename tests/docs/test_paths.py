"""Files and folders that the texts name are there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if {"_build", "api"}.isdisjoint(p.parts)),
]
TOP = "mlcweb|web|tests|e2e|docs|examples|benchmarks"
NAMED = re.compile(rf"`((?:{TOP})/[\w./-]*)`")
LINKED = re.compile(r"\]\(([\w./-]+\.md)(?:#[\w-]+)?\)")
BUILT = ("web/dist", "docs/_build", "docs/api")


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_paths_exist(text: Path) -> None:
    words = text.read_text("utf8")
    named = {ROOT / path for path in NAMED.findall(words) if not path.startswith(BUILT)}
    linked = {text.parent / path for path in LINKED.findall(words) if "api/" not in path}
    missing = [str(path) for path in sorted(named | linked) if not path.exists()]
    assert not missing


def test_the_architecture_lists_all_layers_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"]
    layers = " ".join(reversed(contracts["contracts"][0]["layers"]))
    folders = [name for name in re.findall(r"\w+", layers) if (ROOT / "mlcweb" / name).is_dir()]
    table = re.findall(r"^\| `mlcweb/(\w+)/` \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    assert table == folders


def test_the_tests_behind_the_security_policy_exist() -> None:
    """`file::test`, or `::test` of the file named last."""
    words = (ROOT / "SECURITY.md").read_text("utf8")
    file, missing, count = "", [], 0
    for path, test in re.findall(r"`([\w/.]*)::(\w+)`", words):
        file = path or file
        count += 1
        if f"def {test}(" not in (ROOT / file).read_text("utf8"):
            missing.append(f"{file}::{test}")
    assert not missing
    assert count > 15
