"""Machine code as the page shows it: which lines belong together, and how much code there is."""

from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import code_measure, code_view
from tests.playground.conftest import PROGRAM

Run = Callable[[str], Any]

SCHEDULE = """
sch = tvm.tir.Schedule(MyModule)
block = sch.get_block("C")
i, j, k = sch.get_loops(block)
j_0, j_1 = sch.split(j, [None, 8])
sch.reorder(i, j_0, k, j_1)
sch.decompose_reduction(block, k)
"""
UPDATE = "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"


@pytest.fixture
def code(run: Run) -> Any:
    return code_view.code(run(SCHEDULE).programs[-1].id)


def numbers(lines: list[str], part: str) -> set[int]:
    """Numbers, from 1, of the lines with `part`."""
    return {number for number, line in enumerate(lines, 1) if part in line}


def in_tensorir(code: Any, wat_line: int) -> set[int]:
    loops = code.wat.origins[wat_line - 1]
    return {origin for line in loops for origin in code.lowered.origins[line - 1]}


def test_programs_are_the_modules_then_the_schedules(run: Run) -> None:
    programs = run(SCHEDULE + "MyModule.show()").programs
    assert [program.title for program in programs] == ["MyModule", "sch.mod"]
    assert [p.title for p in run(SCHEDULE + "sch.mod.show()").programs] == [
        "MyModule",
        f"sch.mod, line {(PROGRAM + SCHEDULE).count(chr(10)) + 1}",
    ]


def test_every_line_of_code_comes_from_a_line_that_there_is(code: Any) -> None:
    count = len(code.lowered.lines)
    assert len(code.wat.origins) == len(code.wat.lines)
    assert {line for lines in code.wat.origins for line in lines} <= set(range(1, count + 1))
    tensorir = {line for lines in code.lowered.origins for line in lines}
    assert tensorir <= set(range(1, len(code.tensorir.lines) + 1))


def test_the_multiplication_comes_from_the_update(code: Any) -> None:
    wat = code.wat.lines
    multiplications = numbers(wat, "f32x4.mul") | numbers(wat, "f32x4.relaxed_madd")
    assert multiplications
    update = numbers(code.tensorir.lines, UPDATE)
    assert all(in_tensorir(code, line) == update for line in multiplications)
    for line in multiplications:
        [loop_line] = code.wat.origins[line - 1]
        assert " * B_1[" in code.lowered.lines[loop_line - 1]


def test_the_zeros_come_from_the_initialisation(code: Any) -> None:
    zeros = numbers(code.lowered.lines, "T.Broadcast(T.float32(0), 4)")
    assert zeros
    made_from = {origin for line in zeros for origin in code.lowered.origins[line - 1]}
    assert made_from & numbers(code.tensorir.lines, "C[vi, vj] = T.float32(0)")


def test_loops_in_the_machine_code_come_from_loops(code: Any) -> None:
    loops = numbers(code.wat.lines, "    loop $")
    assert loops
    for line in loops:
        assert all("for " in code.tensorir.lines[n - 1] for n in in_tensorir(code, line))


def test_a_line_about_a_block_stands_for_its_code(code: Any) -> None:
    lines, stands_for = code.tensorir.lines, code.tensorir.stands_for
    [update] = numbers(lines, UPDATE)
    [header] = numbers(lines, 'with T.block("C_update")')
    [axis] = numbers(lines, "vk = T.axis.reduce")
    assert stands_for[header - 1] == stands_for[axis - 1] == stands_for[update - 1] == [update]
    [signature] = numbers(lines, "def main")
    assert stands_for[signature - 1] == []


def test_sizes(code: Any) -> None:
    size, wat = code.size, code.wat.lines
    assert size.bytes > 100
    name = size.loop.name
    assert len(numbers(wat, f" loop ${name}")) == 1
    assert 0 < size.loop.simd <= size.loop.instructions < size.instructions
    vectors = [line for line in wat if line.strip().startswith(("f32x4.", "v128."))]
    assert size.simd == len(vectors)
    assert numbers(code.lowered.lines, f"for {name} in")


def test_passes_lead_from_the_program_to_the_loops(run: Run) -> None:
    identifier = run(SCHEDULE).programs[-1].id
    code = code_view.code(identifier)
    assert code.passes
    names = [entry.name for entry in code.passes]
    assert "LowerInitBlock" in names
    assert {"FlattenBuffer", "VectorizeLoop", "UnrollLoop"} <= set(names)
    previous = code.tensorir.lines
    for index, entry in enumerate(code.passes):
        lines = code_view.after_pass(identifier, "main", index).lines
        assert [line.text for line in lines if line.kind != "added"] == previous
        previous = [line.text for line in lines if line.kind != "removed"]
        if not entry.changed:
            assert all(line.kind == "same" for line in lines)
    assert code.lowered
    assert previous == code.lowered.lines


def test_lines_after_a_pass_know_their_origin(run: Run) -> None:
    identifier = run(SCHEDULE).programs[-1].id
    code = code_view.code(identifier)
    assert code.passes
    flat = [entry.name for entry in code.passes].index("FlattenBuffer")
    lines = code_view.after_pass(identifier, "main", flat).lines
    [update] = [line for line in lines if line.kind == "added" and " * B_1[" in line.text]
    assert set(update.origins) == numbers(code.tensorir.lines, UPDATE)


def test_fused_multiply_adds_can_be_turned_off(run: Run) -> None:
    wide = SCHEDULE.replace("[None, 8]", "[None, 16]").replace(
        "sch.reorder(i, j_0, k, j_1)",
        ("i_0, i_1 = sch.split(i, [None, 4])\nsch.reorder(i_0, j_0, k, i_1, j_1)\nsch.unroll(i_1)"),
    )
    identifier = run(wide).programs[-1].id
    off = code_view.code(identifier, "main", False)
    assert not off.fused.on
    assert off.fused.used == 0
    assert not numbers(off.wat.lines, "relaxed_madd")
    on = code_view.code(identifier, "main", True)
    assert on.fused.on is on.fused.available
    assert on.fused.used == len(numbers(on.wat.lines, "relaxed_madd"))
    if on.fused.available:
        assert on.fused.used > 0


TWO = """
@tvm.script.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 1.0

    @T.prim_func
    def second(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 2.0
"""


def test_a_function_of_several_can_be_chosen(run: Run) -> None:
    identifier = run(TWO).programs[-1].id
    code = code_view.code(identifier)
    assert (code.functions, code.function) == (["first", "second"], "first")
    other = code_view.code(identifier, "second")
    assert other.function == "second"
    assert numbers(other.tensorir.lines, "A[vi] = T.float32(2)")


def test_loops_on_gpu_threads_are_told(run: Run) -> None:
    decompose = "sch.decompose_reduction"
    bound = SCHEDULE.replace(decompose, f'sch.bind(j_0, "threadIdx.x")\n{decompose}')
    code = code_view.code(run(bound).programs[-1].id)
    assert code.error is None
    assert "GPU threads (j_0)" in code.notes[0]


SYMBOLIC = """
@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
"""


def test_what_cannot_be_compiled_says_why(run: Run) -> None:
    identifier = run(SYMBOLIC).programs[-1].id
    code = code_view.code(identifier)
    assert 'the shape of "A" is known only then' in code.error.message
    assert code.wat is None
    assert code.lowered.lines
    with pytest.raises(TVMError, match="constant shape"):
        code_measure.measure(identifier, "main")


def test_programs_of_earlier_runs_are_gone(run: Run) -> None:
    identifier = run(SCHEDULE + TWO).programs[-1].id
    run("del MyModule")
    with pytest.raises(TVMError, match="earlier run"):
        code_view.code(identifier)


@pytest.mark.parametrize("fused", [False, True])
def test_a_rate_is_told_beside_the_peak(run: Run, fused: bool) -> None:
    pytest.importorskip("wasmtime")
    result = code_measure.measure(run(SCHEDULE).programs[-1].id, "main", fused)
    assert result.operations == 2 * 16**3
    assert result.bytes == 3 * 4 * 16**2
    assert result.rate == result.operations / result.seconds
    assert len(result.repeats) == code_measure.REPEATS
    peak = result.peak
    assert min(result.rate, peak.flops, result.call) > 0


def test_functions_that_return_numbers_and_take_vectors_have_code(run: Run) -> None:
    program = run("""
@T.prim_func
def main(A: T.Buffer((8,), "float32x4"), n: T.int32) -> T.int32:
    for i in range(8):
        if i == n:
            return i * 2
        A[i] = A[i] + T.Broadcast(T.float32(1), 4)
    return -1
main.show()
""").programs[-1]
    code = code_view.code(program.id)
    assert numbers(code.wat.lines, "f32x4.add")
    assert any("result[0]" in line for line in code.lowered.lines)
