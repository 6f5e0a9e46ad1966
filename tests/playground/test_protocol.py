"""The messages between page and Python: as JSON, and as the page's types."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mlcweb.playground.protocol.search import EarlierRecord, EarlierRecords, SearchSettings
from mlcweb.playground.protocol.trace import NestLoop, NestStatement
from mlcweb.playground.protocol.wire import from_plain, to_json
from mlcweb.runtime.host.trial_messages import (
    CalibrationWork,
    TrialArray,
    TrialWorkload,
    Uint8Array,
    plain,
)
from mlcweb.user_code.diagnostics import Diagnostic

SCRIPTS = Path(__file__).parents[2] / "web" / "scripts"


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import protocol_types

    yield protocol_types
    del sys.modules["protocol_types"]


def test_types_become_those_of_typescript(types: Any) -> None:
    writer = types._Writer([])
    assert writer.type(dict[str, float | None]) == "Record<string, number | null>"
    assert writer.type(list[tuple[int, str | None]]) == "[number, string | null][]"
    assert writer.type(list[int | str]) == "(number | string)[]"
    assert writer.type(Diagnostic) == "Diagnostic"
    with pytest.raises(TypeError, match="no form in TypeScript"):
        writer.type(bytes)
    assert "".join(writer.interfaces()).startswith(
        "/** What is wrong with a range of a program's text; columns in UTF-16 units, as editors "
        "count. */\nexport interface Diagnostic extends TextRange {\n  message: string;\n"
    )


def test_what_may_be_missing_in_a_message_between_workers_is_not_null(types: Any) -> None:
    writer = types._Writer(types._aliases())
    assert writer.type(TrialWorkload) == "TrialWorkload"
    text = "".join(writer.interfaces())
    assert "  expected?: Uint8Array;\n" in text
    assert "  calibration: CalibrationWork;\n" in text


def test_trial_messages_are_spelt_as_the_page_spells_them() -> None:
    arrays = [TrialArray("float32", Uint8Array(b"1234"), 0.5)]
    workload = TrialWorkload(CalibrationWork(Uint8Array(b""), 8, 0.25), arrays)
    assert plain(workload) == {
        "calibration": {"code": b"", "iterations": 8, "minMs": 0.25},
        "arrays": [{"dtype": "float32", "input": b"1234", "tolerance": 0.5}],
    }


def test_fields_are_spelt_as_the_page_spells_them() -> None:
    mark = Diagnostic(1, 0, 1, 4, "NameError: x")
    assert json.loads(to_json([mark])) == [
        {
            "line": 1,
            "column": 0,
            "endLine": 1,
            "endColumn": 4,
            "message": "NameError: x",
            "severity": "error",
            "fix": None,
        }
    ]


def test_messages_hold_others() -> None:
    inner = NestStatement("B[i] = 1", [])
    loop = NestLoop("i", "4", "serial", None, [], "a loop of the program", [0], None, [inner])
    plain = json.loads(to_json(loop))
    assert (plain["kind"], plain["body"][0]["kind"]) == ("loop", "statement")


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(TypeError, match="Path is no message"):
        to_json({"path": Path()})


def test_arguments_become_what_the_function_takes() -> None:
    settings = from_plain(
        SearchSettings, {"document": "d", "module": "M", "scheduleFunction": "f", "trials": 3}
    )
    assert settings == SearchSettings("d", "M", schedule_function="f", trials=3)
    records = {"programs": [["a0", None]], "lines": [{"record": "[]", "program": "a0"}]}
    assert from_plain(EarlierRecords | None, records) == EarlierRecords(
        [("a0", None)],
        [EarlierRecord("[]", "a0")],
    )
    assert from_plain(EarlierRecords | None, None) is None
    assert from_plain(dict[str, str], {"end_line": "kept"}) == {"end_line": "kept"}
