"""Passes against TVM's results.

Each file of `answers/` holds a module and, under each line that names a pass, what TVM makes of the
module by it.
"""

import re
from pathlib import Path

import pytest

from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source

ANSWERS = Path(__file__).parent / "answers"


def read(path):
    parts = re.split(r"^# --- (.+)\n", path.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


CASES = [
    (path.stem, title)
    for path in sorted(ANSWERS.iterdir())
    for title in read(path)
    if title != "before"
]


@pytest.mark.parametrize(("name", "title"), CASES)
def test_result_of_a_pass(name, title):
    texts = read(ANSWERS / f"{name}.txt")
    before, expected = from_source(texts["before"]), from_source(texts[title])
    result = eval(title, vars(relax.transform))(before)
    refuse_ill_formed(result)
    assert_structural_equal(result, expected)
