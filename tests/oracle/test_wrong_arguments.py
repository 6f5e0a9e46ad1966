"""The table of what TVM makes of wrong arguments, asked of the TVM that is installed."""

import pytest

from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.argument_values import CALLS, PRELUDE, calls
from tests.schedule.case_files import module
from tests.schedule.test_argument_classes import CLASSES, TABLE

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

LETTERS = {"": ".", **{cls.__name__: letter for letter, cls in CLASSES.items() if letter != "-"}}


@pytest.mark.parametrize("primitive", CALLS)
def test_tvm_answers_what_is_stored(primitive, try_arguments):
    asked = list(calls(primitive))
    stored = "".join(TABLE[primitive, argument] for argument in CALLS[primitive])
    answer = try_arguments(
        {
            "module": module(PROGRAM).script(dialect="s_tir"),
            "prelude": PRELUDE,
            "calls": [call.text for call in asked],
        }
    )
    fresh = [LETTERS.get(error, "-") for error in answer["errors"]]
    changed = [
        f"{call.text}: {old}, now {new}"
        for call, old, new in zip(asked, stored, fresh, strict=True)
        if old != new and "-" not in old + new  # It breaks down by chance.
    ]
    assert not changed, "\n".join(changed)
