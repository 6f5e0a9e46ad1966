"""Programs that a real TVM printed compute the same on all targets.

Of the programs stored here two thirds are what TVM has in the middle of its pipelines; those that
take packed arguments, call other functions or run too long are left out (`CannotRun`).
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from mlcweb.ir.errors import TVMError
from mlcweb.tir.stmt import DeclBuffer, statements_in
from tests.corpus.running import (
    CannotRun,
    difference,
    disagreement,
    functions_in,
    functions_of,
    interpreted,
)
from tests.corpus.test_printed import printed_programs

SAMPLE = 25

NOT_RUN = (
    r"takes no buffers|takes scalars|takes a \w+",
    r"has a buffer without a size|has strides|is too large|runs too long",
    r"has elements of (bfloat16|float8_\w+)",
    r"calls tir\.(call_|tvm_call|ptx)[\w.]*",
    r'is refused: UnknownFunction: The program calls "main_kernel".*',
)
"""What arguments are not made up for, what NumPy has no type for, what takes too long, and calls of
what is not in the program, such as the half of it that a GPU runs."""

WRONG_INPUT = "it has to be given other numbers: no zeros, or positions inside of an array"

EXCEPTIONS: dict[str, str] = {
    'topi.floor_divide(t(8, d="int64"), t(8, d="int64")): main': WRONG_INPUT,
    "topi.vision.roi_pool(t(1, 2, 8, 8), t(3, 5), (2, 2), 1.0): main": WRONG_INPUT,
    "topi.dynamic_strided_slice(t(8), t(1, d='int64'), t(1, d='int64'), t(1, d='int64'), [4]): "
    "main": WRONG_INPUT,
}
"""Programs that the interpreter refuses to run, and why."""


def check(programs: Iterable[tuple[str, str]], least: float) -> None:
    """No program computes something else on some target, all that can be run are, and these are at
    least a share."""
    outcomes: Counter[str] = Counter()
    differ: dict[str, str] = {}
    for name, func in functions_in(programs):
        try:
            difference = disagreement(func)
        except CannotRun as error:
            outcomes["not run"] += 1
            if name not in EXCEPTIONS and not re.fullmatch(
                "|".join(NOT_RUN), str(error), re.DOTALL
            ):
                differ[name] = str(error)
            continue
        outcomes["run"] += 1
        if difference:
            differ[name] = difference
    assert not differ
    assert outcomes["run"] >= least * outcomes.total(), outcomes


@pytest.mark.parametrize("version", ["0.25", "0.27"])
def test_sample_computes_the_same_on_all_targets(version: str) -> None:
    programs = printed_programs(version)
    check(programs[11 :: len(programs) // SAMPLE], 0.25)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.25", "0.27"])
def test_a_fortieth_computes_the_same_on_all_targets(version: str) -> None:
    """All of them take the better part of an hour."""
    check(printed_programs(version)[3::40], 0.25)


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_computes_the_same(oracle_python: str, tmp_path: Path) -> None:
    """A sample of programs for CPUs: TVM's machine code and our interpreter agree."""
    asked: dict[str, np.ndarray] = {}
    expected: list[tuple[str, str, list[np.ndarray]]] = []
    for origin, text in printed_programs("0.27")[9::40]:
        if "for a GPU" in origin or "import relax as R" in text:
            continue
        try:
            [(_, func)] = functions_of(text)
            arrays, results = interpreted(func)
        except (CannotRun, TVMError, ValueError):
            continue
        asked |= {f"a{i}_{len(expected)}": array for i, array in enumerate(arrays)}
        expected.append((origin, text, results))
    source, target = tmp_path / "asked.npz", tmp_path / "answers.npz"
    np.savez(source, texts=np.array([text for _, text, _ in expected]), **asked)
    script = Path(__file__).with_name("compute.py")
    subprocess.run([oracle_python, str(script), str(source), str(target)], check=True)
    answers = np.load(target)
    differ = {
        origin: where
        for number, (origin, _, results) in enumerate(expected)
        if f"error_{number}" not in answers
        for i, result in enumerate(results)
        if (where := difference(result, answers[f"a{i}_{number}"]))
    }
    assert not differ
    errors = [name for name in answers.files if name.startswith("error_")]
    assert len(expected) - len(errors) >= 30


def test_sizes_by_name_are_of_views_too() -> None:
    """A view whose size has a name, as common subexpressions get one (numpy: NameError)."""
    text = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    C = T.match_buffer(c, (n, 8))
    size = n * T.int64(8)
    A_1 = T.decl_buffer((size,), data=A.data)
    C_1 = T.decl_buffer((size,), data=C.data)
    for i, j in T.grid(n, 8):
        C_1[i * T.int64(8) + T.Cast("int64", j)] = A_1[i * T.int64(8) + T.Cast("int64", j)]
"""
    [(_, func)] = functions_of(text)
    assert disagreement(func) == ""


def test_buffers_of_vectors_are_refused() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((2,), "float32x4"), B: T.Buffer((2,), "float32x4")):
    for i in range(2):
        B[i] = A[i]
"""
    [(_, func)] = functions_of(text)
    with pytest.raises(CannotRun, match=r"has elements of float32x4"):
        disagreement(func)


def test_views_of_another_type_have_their_elements() -> None:
    """`A.view("int8")` was a view with one axis of a size called int8."""
    text = """
@T.prim_func
def main(A: T.Buffer((2, 8), "int32"), B: T.Buffer((8,), "bool"), C: T.Buffer((64,), "int16")):
    bytes_of = A.view("int8")
    pairs = A.view("int64")
    flags = B.view("int8")
    rows = C.view(-1, 16)
    for i in range(2):
        for j in range(32):
            if j < 8:
                flags[j] = T.Cast("int8", T.Cast("bool", bytes_of[i, j]))
            if j < 4:
                C[i * 4 + j] = T.Cast("int16", pairs[i, j] % T.int64(1000))
            if j < 16:
                rows[i + 2, j] = rows[i, j]
"""
    [(_, func)] = functions_of(text)
    assert disagreement(func) == ""
    shapes = {
        statement.buffer.name: [int(extent) for extent in statement.buffer.shape]
        for statement in statements_in(func.body)
        if isinstance(statement, DeclBuffer)
    }
    assert shapes == {"bytes_of": [2, 32], "pairs": [2, 4], "flags": [8], "rows": [4, 16]}
