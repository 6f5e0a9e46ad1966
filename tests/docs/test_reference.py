"""The API reference: what it says of names is about names that exist, and is never guessed."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from reference import pages, status  # noqa: E402

NAMES = list(status.every_name())


def test_every_public_module_offers_documented_names():
    for path in status.MODULES:
        module = importlib.import_module(path)
        assert module.__doc__, f"{path} has no docstring"
        assert status.public_names(module), f"{path} offers nothing"


@pytest.mark.parametrize("table", ["DIFFERS", "EARLIER", "UNLISTED"])
def test_every_name_kept_by_hand_exists(table):
    entries = getattr(status, table)
    pairs = [
        (path, name)
        for path, names in entries.items()
        for name in ([path.partition(":")[2]] if table == "DIFFERS" else names)
    ]
    for path, name in pairs:
        value = importlib.import_module(path.partition(":")[0])
        for part in name.split("."):
            value = getattr(value, part)


@pytest.mark.parametrize("table", ["EARLIER", "UNLISTED"])
def test_what_tvm_lists_is_not_kept_by_hand(table):
    """A newer TVM may list a name; then it is to be taken from the table."""
    for path, names in getattr(status, table).items():
        for name in names:
            assert status._in_tvm(path, name) is None, f"{path}:{name}"


def test_every_primitive_that_differs_is_one_and_says_why():
    differing = status.unlike_tvm()
    assert "blockize" in differing
    for method, reasons in differing.items():
        assert f"mlcweb.tir:Schedule.{method}" in NAMES
        assert status.status("mlcweb.tir", f"Schedule.{method}").label == "differs"
        for reason in reasons:
            assert reason.split(": ")[0] in ("Works here", "Refused here")
            assert len(reason) > 25, f"the case of {method} does not say why: {reason}"


@pytest.mark.parametrize(
    ("name", "label", "words"),
    [
        ("mlcweb.tir:Schedule.split", "as TVM", ""),
        ("mlcweb.tir:Schedule.get_block", "as TVM", "tvm.s_tir.Schedule.get_sblock"),
        ("mlcweb.tir:Schedule.merge", "differs", "rows of B"),
        ("mlcweb.tir:Block", "as TVM", "SBlock"),
        ("mlcweb.runtime:NDArray", "as TVM", "Tensor"),
        ("mlcweb.relax:TensorStructInfo", "as TVM", "TensorType"),
        ("mlcweb.relax:PrimValue", "as TVM", "tvm.relax.prim_value"),
        ("mlcweb.tir:Schedule.replay", "ours alone", ""),
        ("mlcweb:build", "differs", "llvm"),
    ],
)
def test_what_is_said_of_a_name(name, label, words):
    found = status.status(*name.split(":"))
    assert found.label == label
    assert words in found.why


def test_every_name_is_on_the_page_of_its_module():
    texts = {path: pages.page(path) for path in status.MODULES}
    for full in NAMES:
        path, _, name = full.partition(":")
        if "." not in name:
            assert f"`{name} <" in texts[path] or f"`{name}`" in texts[path], full


def test_docstrings_become_restructured_text():
    lines = ["Split a loop.", "", "rewrite:", "    for i in range(4): ...", "", "Of `Var`s."]
    pages.literal_blocks(lines)
    assert lines == [
        "Split a loop.", "", "::", "", "    for i in range(4): ...", "", "Of `Var`\\ s.",
    ]  # fmt: skip
