"""Programs that a real TVM printed are read, and what we print of them is read as the same.

`generate.py` made the programs. `make test` reads a sample of them; the thorough tests read all of
the newest TVM, and a sixth of what only older ones print.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.script.parser import parse
from tests.corpus.older import older

LEAST = {"0.25": 0.997, "0.26": 0.997, "0.27": 0.997}
"""The TVMs whose programs are here, each without those of the others; and what share is read."""

SAMPLE = 100

SHARES = 5
"""So that several processes can read them."""

EXCEPTIONS: dict[str, str] = {
    "R has no": "operators of the graph that are not here",
    "R.vision has no": "operators on boxes that are not here, such as R.vision.get_valid_counts",
}
"""What the fault of a program may say, with the reason."""

REFUSED_BY_TVM: dict[str, str] = {
    "is used but not declared": "a buffer to which an operator of TVM gives no memory",
    "T.Buffer describes parameters": "the same, where the buffer is of a function without blocks",
    "dataflow block has no side effects": "printing and assertions among pure values",
}
"""What makes TVM, too, refuse a program that it has printed, unless it does not check the whole."""


@cache
def printed_programs(version: str = "0.27") -> tuple[tuple[str, str], ...]:
    """The programs of a TVM: what made each, and its text."""
    path = Path(__file__).with_name(f"printed-{version}.json.xz")
    stored = json.loads(lzma.decompress(path.read_bytes()))
    return tuple((origin, text) for origin, text in stored["programs"])


def fault_of(text: str) -> str:
    """What is wrong with how a program is read or printed; "" where nothing is. What TVM reads
    without checking the whole is read so."""
    checked = True
    try:
        try:
            program = parse(text)
        except DiagnosticError as error:
            if not any(part in error.message for part in REFUSED_BY_TVM):
                raise
            checked = False
            program = parse(text, check_well_formed=False)
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    try:
        printed = program.script(show_meta=True)
        again = parse(printed, check_well_formed=checked)
    except Exception as error:
        return f"printed so that it is refused: {type(error).__name__}: {error}"
    return (
        "" if structural_equal(again, program, map_free_vars=True) else "printed as another program"
    )


def check(programs: Sequence[tuple[str, str]], least: float) -> None:
    """All are read but for the exceptions, and of them at least a share."""
    faults = {origin: fault for origin, text in programs if (fault := fault_of(text))}
    unexpected = {
        origin: fault
        for origin, fault in faults.items()
        if not any(part in fault for part in EXCEPTIONS)
    }
    assert not unexpected, f"{len(unexpected)} of {len(programs)}; the first: " + "\n\n".join(
        f"{origin}\n{fault}" for origin, fault in list(unexpected.items())[:3]
    )
    share = 1 - len(faults) / len(programs)
    assert share >= least, f"{share:.1%} of {len(programs)} programs"


def fault_of_older(text: str) -> str:
    """What is wrong with how a program is read in the spelling of 2021-22; "" where nothing is,
    where it is not read in that of today, or where it has graph functions, which there were not."""
    if "import relax as R" in text:
        return ""
    try:
        program = parse(text)
    except DiagnosticError:
        return ""
    try:
        again = parse(older(text))
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    return "" if structural_equal(again, program, map_free_vars=True) else "read as another program"


def check_older(programs: Sequence[tuple[str, str]], most: int = 0) -> None:
    """All but `most` are read."""
    faults = {origin: fault for origin, text in programs if (fault := fault_of_older(text))}
    assert len(faults) <= most, f"{len(faults)} of {len(programs)}; the first: " + "\n\n".join(
        f"{origin}\n{fault}" for origin, fault in list(faults.items())[:3]
    )


def test_sample_in_the_older_spelling_is_read_as_the_same() -> None:
    programs = printed_programs()
    check_older(programs[7 :: len(programs) // SAMPLE])


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, 8])
def test_an_eighth_in_the_older_spelling_is_read_as_the_same(first: int) -> None:
    programs = printed_programs()[first::16]
    check_older(programs, most=len(programs) // 200)


@pytest.mark.parametrize("version", LEAST)
def test_sample_of_printed_programs_is_read(version: str) -> None:
    programs = printed_programs(version)
    check(programs[:: len(programs) // SAMPLE], LEAST[version] - 0.015)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.25", "0.26"])
def test_a_sixth_of_what_older_ones_print_is_read(version: str) -> None:
    check(printed_programs(version)[::6], LEAST[version])


@pytest.mark.thorough
@pytest.mark.parametrize("share", range(SHARES))
def test_a_share_of_what_the_newest_prints_is_read(share: int) -> None:
    check(printed_programs()[share::SHARES], LEAST["0.27"])
