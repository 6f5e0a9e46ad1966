"""Spans that say where statements stand in their program's own text."""

from mlcweb.ir import structural_equal
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.lower import lower
from mlcweb.playground.source_lines import line_of, listing
from mlcweb.schedule import Schedule
from mlcweb.script import tir as T
from mlcweb.tir import stmt as S


@T.prim_func
def scaled_sum(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk] * T.float32(2)


def line(text: str, part: str) -> int:
    """The number of the only line with `part`."""
    [number] = [n for n, line in enumerate(text.split("\n"), 1) if part in line]
    return number


def test_the_program_stays_the_same() -> None:
    marked = listing(scaled_sum)
    assert structural_equal(marked.function, scaled_sum)
    assert marked.text.startswith("@T.prim_func\ndef scaled_sum(")
    assert marked.text in scaled_sum.script()


def test_statements_know_their_lines() -> None:
    marked = listing(scaled_sum)
    lines = {type(node): line_of(node) for node in walk(marked.function.body) if node.span}
    assert lines[S.For] == line(marked.text, "for i, k in")
    assert lines[S.Block] == line(marked.text, 'with T.block("B")')
    stores = [line_of(node) for node in walk(marked.function.body) if type(node) is S.BufferStore]
    assert sorted(stores) == [
        line(marked.text, "= T.float32(0)"),
        line(marked.text, "* T.float32(2)"),
    ]


def test_what_passes_make_of_a_statement_comes_from_its_line() -> None:
    marked = listing(scaled_sum)
    loops = listing(lower(marked.function))
    update = line(marked.text, "* T.float32(2)")
    assert loops.origins[line(loops.text, "* T.float32(2)") - 1] == (update,)
    assert loops.origins[line(loops.text, "for i, k in") - 1] == (line(marked.text, "for i, k in"),)


def test_lines_are_those_of_the_scheduled_program() -> None:
    schedule = Schedule(scaled_sum)
    i, k = schedule.get_loops(schedule.get_block("B"))
    outer, _ = schedule.split(i, [2, 4])
    schedule.reorder(k, outer)
    marked = listing(schedule.mod["main"])
    loops = listing(lower(marked.function))
    update = line(marked.text, "* T.float32(2)")
    assert loops.origins[line(loops.text, "* T.float32(2)") - 1] == (update,)


def test_a_statement_at_two_places_has_two_lines() -> None:
    store = S.Evaluate(T.int32(1))
    twice = replace(scaled_sum, body=S.SeqStmt((store, store)))
    marked = listing(twice)
    lines = [line_of(node) for node in walk(marked.function.body) if type(node) is S.Evaluate]
    assert len(set(lines)) == 2
