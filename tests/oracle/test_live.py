"""The schedule cases, asked of the TVM that is installed: it must still answer what is stored, and
programs, traces and records that we print must mean the same to it."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from tests.oracle.cases import NAMES, in_newer_spelling, load, scheduled

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]


def question(name):
    case, answer = load(name)
    asked = {
        "module": from_source(case["module"]).script(dialect="s_tir"),
        "schedule": in_newer_spelling(case["schedule"]),
        "seed": case.get("seed"),
        "run": case.get("run"),
    }
    if answer["ok"]:
        sch = scheduled(name)
        asked["result"] = sch.mod.script(dialect="s_tir")
        asked["trace"] = sch.trace.text("  ", dialect="s_tir")
        asked["record"] = sch.trace.as_json(dialect="s_tir")
    return asked


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    """Of the module's scope, so that the tests of one case follow each other and share `fresh`."""
    return request.param


@pytest.fixture(scope="module")
def fresh(ask_tvm, name):
    """TVM's answer."""
    return ask_tvm(question(name))


def test_tvm_answers_what_is_stored(fresh, name):
    _, stored = load(name)
    assert "failed" not in fresh, fresh["failed"]
    if not stored["ok"]:
        assert fresh == {"error": stored["error"]["class"]}
        return
    assert fresh["script"] == stored["script"]
    assert fresh["trace"] == stored.get("trace", fresh["trace"])
    for sums, wanted in zip(
        fresh.get("run", ()), (stored.get("run") or {}).get("params", ()), strict=True
    ):
        for key, value in sums.items():
            assert value == pytest.approx(wanted[key], rel=1e-4, abs=1e-3), (wanted["name"], key)


def test_what_we_print_comes_back(fresh, name):
    """TVM has found our module, trace and record to be its own; its text of our module is ours."""
    _, stored = load(name)
    assert "failed" not in fresh, fresh["failed"]
    if stored["ok"]:
        assert_structural_equal(from_source(fresh["pasted"]), scheduled(name).mod)
