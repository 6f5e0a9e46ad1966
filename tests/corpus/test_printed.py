"""Programs that a real TVM printed are read, and what we print of them is read as the same.

`generate.py` made the programs. `make test` reads a sample of them, the thorough tests all, as they
are and in the spelling of 2021-22.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.script.parser import parse
from tests.corpus.older import older

VERSIONS = ("0.25", "0.26", "0.27")
"""The TVMs whose programs are here, each without those of the others."""

SAMPLE = 100

SHARES = 5
"""So that several processes can read them."""

MEMORY = "an operator of TVM gives no memory to some of its buffers"
EFFECT = "a dataflow block prints or asserts"

REFUSED_BY_TVM: dict[str, str] = {
    "topi.vision.all_class_non_max_suppression(t(1, 8, 4), t(1, 2, 8), 4, 0.5, 0.1) for a GPU": (
        MEMORY
    ),
    "topi.vision.all_class_non_max_suppression(t(1, 8, 4), t(1, 2, 8), 4, 0.5, 0.1), scheduled by "
    "rules for a GPU": MEMORY,
    "op.print(t(4, 8), format='{}')": EFFECT,
    "op.assert_op(relax.const(True), format='never')": EFFECT,
}
"""What made the programs that TVM, too, only reads without checking the whole; with the reason."""


@cache
def printed_programs(version: str = "0.27") -> tuple[tuple[str, str], ...]:
    """The programs of a TVM: what made each, and its text."""
    path = Path(__file__).with_name(f"printed-{version}.json.xz")
    stored = json.loads(lzma.decompress(path.read_bytes()))
    return tuple((origin, text) for origin, text in stored["programs"])


def is_checked(origin: str) -> bool:
    """Whether TVM reads what was made so with its checks of the whole."""
    return not origin.startswith(tuple(REFUSED_BY_TVM))


def fault_of(origin: str, text: str) -> str:
    """What is wrong with how a program is read or printed; "" where nothing is."""
    checked = is_checked(origin)
    try:
        program = parse(text, check_well_formed=checked)
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    try:
        again = parse(program.script(show_meta=True), check_well_formed=checked)
    except Exception as error:
        return f"printed so that it is refused: {type(error).__name__}: {error}"
    return (
        "" if structural_equal(again, program, map_free_vars=True) else "printed as another program"
    )


def fault_of_older(origin: str, text: str) -> str:
    """What is wrong with how a program is read in the spelling of 2021-22; "" where nothing is,
    or where it has graph functions, which there were not."""
    if "import relax as R" in text:
        return ""
    checked = is_checked(origin)
    program = parse(text, check_well_formed=checked)
    try:
        again = parse(older(text), check_well_formed=checked)
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    return "" if structural_equal(again, program, map_free_vars=True) else "read as another program"


def check(programs: Sequence[tuple[str, str]], fault_in: Callable[[str, str], str]) -> None:
    """No program has a fault."""
    faults = {origin: fault for origin, text in programs if (fault := fault_in(origin, text))}
    assert not faults, f"{len(faults)} of {len(programs)}; the first: " + "\n\n".join(
        f"{origin}\n{fault}" for origin, fault in list(faults.items())[:3]
    )


@pytest.mark.parametrize("fault_in", [fault_of, fault_of_older])
@pytest.mark.parametrize("version", VERSIONS)
def test_sample_is_read_and_printed_as_the_same(
    version: str, fault_in: Callable[[str, str], str]
) -> None:
    programs = printed_programs(version)
    check(programs[7 :: len(programs) // SAMPLE], fault_in)


@pytest.mark.thorough
@pytest.mark.parametrize("fault_in", [fault_of, fault_of_older])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("share", range(SHARES))
def test_all_are_read_and_printed_as_the_same(
    version: str, fault_in: Callable[[str, str], str], share: int
) -> None:
    check(printed_programs(version)[share::SHARES], fault_in)


@pytest.mark.parametrize("maker", REFUSED_BY_TVM)
def test_what_tvm_refuses_is_refused(maker: str) -> None:
    """Each exception is one."""
    for version in VERSIONS:
        for origin, text in printed_programs(version):
            if origin.startswith(maker):
                try:
                    parse(text)
                except DiagnosticError:
                    assert fault_of(origin, text) == fault_of_older(origin, text) == ""
                    return
    pytest.fail("all that was made so passes the checks")
