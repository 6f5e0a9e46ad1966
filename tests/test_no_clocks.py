"""No test looks at a clock or waits for a time: on a slow machine it would fail without a fault."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("e2e/**/test_*.py")]

CLOCK = re.compile(
    r"wait_for_timeout|perf_counter|\bmonotonic\b|\btime\.time\b"
    r"|\bsleep\((?!0\b|1000\b)"  # those two give way to others, and hang
)
ALLOWED = {Path(__file__), ROOT / "tests" / "waiting.py"}


def test_waits_are_for_states() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted({*FILES} - ALLOWED)
        for number, line in enumerate(file.read_text("utf8").splitlines(), 1)
        if CLOCK.search(line)
    ]
    assert not found, "wait for a state (tests/waiting.py; data-state in the page):\n" + "\n".join(
        found
    )
