"""The table of what TVM makes of wrong arguments, asked of the TVM that is installed."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.argument_values import CALLS, PRELUDE, calls
from tests.schedule.case_files import module
from tests.schedule.test_argument_classes import CLASSES, TABLE

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

LETTERS = {"": ".", **{cls.__name__: letter for letter, cls in CLASSES.items() if letter != "-"}}


def letters(python, texts):
    """TVM's answers to calls; "-" also where it breaks down."""
    question = {"module": module(PROGRAM).script(dialect="s_tir"), "prelude": PRELUDE}
    found = []
    while len(found) < len(texts):
        done = subprocess.run(
            [python, str(Path(__file__).parent / "try_arguments.py")],
            input=json.dumps({**question, "calls": texts, "first": len(found)}),
            capture_output=True,
            text=True,
        )
        found += [LETTERS.get(json.loads(line), "-") for line in done.stdout.splitlines()]
        if len(found) < len(texts):
            found.append("-")
    return "".join(found)


@pytest.mark.parametrize("primitive", CALLS)
def test_tvm_answers_what_is_stored(primitive, oracle_python):
    asked = list(calls(primitive))
    stored = "".join(TABLE[primitive, argument] for argument in CALLS[primitive])
    fresh = letters(oracle_python, [call.text for call in asked])
    changed = [
        f"{call.text}: {old}, now {new}"
        for call, old, new in zip(asked, stored, fresh, strict=True)
        if old != new and "-" not in old + new  # It breaks down by chance.
    ]
    assert not changed, "\n".join(changed)
