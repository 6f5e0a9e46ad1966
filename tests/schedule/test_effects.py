"""Schedules of programs with more than loops and blocks: branches, `while`, `let`, statements
outside of blocks, conditional and partial writes, predicates that read memory.

A step is refused, or the program computes what it did before. Outputs are filled before the runs,
so that an element that is written too much, or not any more, shows; the interpreter fills memory
that nobody has written with NaN.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

import mlcweb
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.schedule.case_files import module, outputs, programs

PARAMETERS = {
    "A": "float32", "D": "float32", "G": "int32", "N": "int32", "C": "float32", "E": "float32",
}  # fmt: skip
GUARDS = {
    "if": "if G[0] > 5:",
    "if_else": "if G[0] <= 5:\n    T.evaluate(0)\nelse:",
    "let": "with T.LetStmt(G[1]) as x:",
    "while": "while N[0] > 0:\n    N[0] = N[0] - 1",
}
CONSUMER = """
for i in range(16):
    with T.block("E"):
        vi = T.axis.spatial(16, i)
        E[vi] = C[vi] + T.float32(1)
"""


class Case(NamedTuple):
    """The body of a function, a schedule, and what becomes of it: "right" or "refused"."""

    name: str
    body: str
    schedule: str
    answer: str


def parts(text: str) -> tuple[str, str, str]:
    """The three parts of a case; the answer is on the last line."""
    body, schedule, answer = re.split(r"^---", text, flags=re.M)
    schedule = schedule.removeprefix(" schedule").removeprefix(" answers").strip()
    return body, schedule, answer.strip().splitlines()[0]


def listed(file: str) -> Iterator[Case]:
    for name, text in programs(file).items():
        yield Case(name, *parts(text))


def guarded() -> Iterator[Case]:
    for name, text in programs("guards.txt").items():
        body, schedule, answer = parts(text)
        first, _, others = answer.partition(" (")
        answers = dict(re.findall(r"(\w+): (\w+)", others))
        for guard, header in GUARDS.items():
            made = [_indented_as(line, header) for line in body.splitlines()]
            yield Case(f"{name}, {guard}", "\n".join(made), schedule, answers.get(guard, first))


def _indented_as(line: str, header: str) -> str:
    indent, guard, _ = line.partition("GUARD:")
    return textwrap.indent(header, indent) if guard else line


def partial() -> Iterator[Case]:
    """Steps on the block "C" of each program; with a consumer, also such as involve both."""
    for name, text in programs("partial_writes.txt").items():
        body, _, answers = parts(text)
        iterators = "[32] * len(sch.get(sch.get_block('C')).iter_vars)"
        steps = [
            'sch.cache_write("C", 0, "local")',
            'sch.write_at(sch.add_unit_loop(sch.get_loops("C")[0]), "C", 0, "shared")',
            'sch.reindex("C", ("write", 0))',
            f'sch.pad_einsum("C", {iterators})',
        ]
        for step, answer in zip(steps, answers.split(", "), strict=True):
            yield Case(f"{_primitive(step)}, {name}", body, step, answer)
        blockize = 'sch.blockize(sch.get_loops("C")[-1]); sch.cache_write("C_o", 0, "local")'
        yield Case(f"blockize, {name}", body, blockize, "")
        both = body.replace("C[", "B[") + CONSUMER.replace("C[", "B[")
        yield Case(f"cache_read, {name}", body + CONSUMER, 'sch.cache_read("E", 0, "local")', "")
        for step in (
            'sch.compute_at("C", sch.get_loops("E")[0])',
            'sch.compute_inline("C")',
            'sch.reverse_compute_at("E", sch.get_loops("C")[0])',
            'sch.reverse_compute_inline("E")',
        ):
            yield Case(f"{_primitive(step)}, {name}", both, step, "")


def _primitive(step: str) -> str:
    return step.partition("(")[0].removeprefix("sch.")


def program(body: str) -> str:
    parameters = ", ".join(f'{n}: T.Buffer((16,), "{dtype}")' for n, dtype in PARAMETERS.items())
    if "B = T.alloc_buffer" not in body:
        body = 'B = T.alloc_buffer((16,), "float32")\n' + body
    return f"@T.prim_func\ndef main({parameters}):\n" + textwrap.indent(body, "    ")


def arrays(first: int) -> list[np.ndarray]:
    """Arguments; the guards are taken if `first`, which is also how often `while` runs."""
    random = np.random.default_rng(7)
    made = {
        name: random.integers(0, 16, 16).astype(dtype)
        if dtype == "int32"
        else random.random(16, dtype="float32") + np.float32(1)
        for name, dtype in PARAMETERS.items()
    }
    made["G"][0], made["N"][0] = 9 * first, 2 * first
    return list(made.values())


def outcome(case: Case) -> str:
    """What becomes of a schedule: "refused: " and why, "right" or "wrong"."""
    mod = module(program(case.body))
    sch = Schedule(mod)
    try:
        exec(case.schedule, {"sch": sch})
    except ScheduleError as error:
        return f"refused: {error.reason}"
    for first in (0, 1):
        given = arrays(first)
        for wanted, found in zip(outputs(mod, given), outputs(sch.mod, given), strict=True):
            known = ~np.isnan(wanted)  # The rest was read from memory that nobody has written.
            if not np.allclose(wanted[known], found[known]):
                return "wrong"
    return "right"


CASES = [
    *guarded(), *listed("raw_statements.txt"), *partial(), *listed("bound_memory.txt")
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_step(case):
    found = outcome(case)
    assert found != "wrong"
    assert case.answer == "right or refused" or found.startswith(case.answer), found


REPEATED = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), F: T.Buffer((1,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + 1
    for z in range(F[0]):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi] * 2
"""


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]),
        lambda s: s.reverse_compute_inline("C"),
        lambda s: s.cache_write("C", 0, "global"),
    ],
)
def test_a_loop_that_may_have_no_iteration_is_a_condition(step):
    """Where F[0] is 0, nothing may be stored in C."""
    for extent in ("F[0]", "T.min(F[0], 4)"):
        with pytest.raises(ScheduleError):
            step(Schedule(from_source(REPEATED.replace("F[0]", extent))))
    step(Schedule(from_source(REPEATED.replace("range(F[0])", "range(2)"))))


@pytest.mark.parametrize("extent", ["F[0]", "T.min(F[0], 4)"])
def test_a_store_in_a_loop_that_may_have_no_iteration_is_not_sure(extent):
    """Where F[0] is 0, C keeps what it holds, so it is not copied over from a buffer of its own."""
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), F: T.Buffer((1,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            for z in range(EXTENT):
                C[vi] = A[vi] * 2
"""
    with pytest.raises(ScheduleError):
        Schedule(from_source(text.replace("EXTENT", extent))).cache_write("C", 0, "global")
    Schedule(from_source(text.replace("EXTENT", "2"))).cache_write("C", 0, "global")


@pytest.mark.parametrize("kind", ["spatial", "opaque", "reduce"])
@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.cache_write("C", 0, "global"),
        lambda s: s.reindex("C", ("write", 0)),
        lambda s: s.reindex_cache_write("C", 0, "global", lambda vz, vi: (vi,)),
    ],
)
def test_an_axis_that_may_have_no_value_says_nothing_of_the_output(kind, step):
    """Where F[0] is 0, C keeps what it holds, though an axis is bound to the loop."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), F: T.Buffer((1,), "int32"), C: T.Buffer((16,), "int32")):
    for z, i in T.grid(EXTENT, 16):
        with T.block("C"):
            vz = T.axis.{kind}(EXTENT, z)
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * 2
"""
    with pytest.raises(ScheduleError):
        step(Schedule(from_source(text.replace("EXTENT", "F[0]"))))
    step(Schedule(from_source(text.replace("EXTENT", "2"))))


def test_what_is_not_written_is_not_inlined():
    """In bounds of B is perhaps not in bounds of A."""
    text = """
@T.prim_func
def main(I: T.Buffer((8,), "int32"), A: T.Buffer((4,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.where(I[i] < 4)
            B[v] = A[I[v]]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v]
"""
    with pytest.raises(ScheduleError, match='predicate of block "B" may leave out elements'):
        Schedule(from_source(text)).compute_inline("B")
    Schedule(from_source(text.replace("T.where(I[i] < 4)", "T.where(i < 8)"))).compute_inline("B")


def test_a_producer_may_leave_a_loop_that_may_have_no_iteration_to_its_consumer():
    sch = Schedule(from_source(REPEATED))
    sch.compute_at("B", sch.get_loops("C")[1])
    a, c = np.arange(16, dtype="int32"), np.full(16, 7, "int32")
    for times, wanted in ((0, c), (2, 2 * a + 2)):
        out = mlcweb.nd.array(c)
        count = mlcweb.nd.array(np.int32([times]))
        mlcweb.build(sch.mod, target="interpreter")["main"](mlcweb.nd.array(a), count, out)
        np.testing.assert_array_equal(out.numpy(), wanted)
