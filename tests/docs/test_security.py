"""Each test that SECURITY.md names behind a sentence is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:e2e|tests|web)/[\w/.]+\.(?:py|ts))?(?:::(\w+))?`")


def test_the_tests_behind_the_sentences_are_there():
    file, count = "", 0
    for path, test in NAMED.findall((ROOT / "SECURITY.md").read_text(encoding="utf-8")):
        file = path or file
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"\ndef {test}(" in text, f"{file}::{test}"
        count += bool(path or test)
    assert count > 50
