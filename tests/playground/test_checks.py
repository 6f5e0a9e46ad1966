"""What checkers say to usual mistakes: solutions, changed as their readers would get them wrong."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from mlcweb import compat
from mlcweb.playground import notebook
from mlcweb.playground.checks import GPU_KERNELS, searching
from mlcweb.runtime import remove_global_func
from web.scripts.lesson_source import lessons

LESSONS = {name: lesson for lesson in lessons() for name in lesson.exercises}

NEEDS = {
    "first_program": (3,),
    "jfactor": (1,),
    "broadcast_add": (1,),
    "conv2d": (1, 5),
    "bmm_relu": (1, 9),
    "packed_functions": (1, 4),
    "stochastic_schedule": (1,),
    "te_linear": (1,),
    "gpu_coalesce": (1,),
    "thread_blocks": (1, 8),
    "tensorize": (1, 4, 6),
    "matmul_add_fusion": (1, 5),
    "beat_this_time": (1,),
    **dict.fromkeys(GPU_KERNELS, (1,)),
}
"""The cells that an exercise builds on."""

TIMES = "times = {1: 4.0, 2: 3.0, 4: 2.0, 8: 1.0, 16: 5.0}\n"

# Exercise, what to change in the solution (None replaces it all), into what, and what to be told.
MISTAKES = [
    ("first_program", " * T.float32(2)", "", "B is still A + 1"),
    ("first_program", "A[vi] * T.float32(2) + T.float32(1)",
     "(A[vi] + T.float32(1)) * T.float32(2)",
     "should be added after"),
    ("first_program", "T.float32(1)", "T.float32(3)", "B[0] is 3, but should be 1"),
    ("broadcast_add", "B[vj]", "B[vi]", "it is indexed by the column, B[vj]"),
    ("broadcast_add", " + B[vj]", "", "copy of A"),
    ("broadcast_add", "T.Buffer((4,), \"int64\")", "T.Buffer((4,), \"int32\")",
     "B should have shape (4,) and dtype int64; it has shape (4,) and dtype int32"),
    ("broadcast_add", "A[vi, vj] + B[vj]", "A[vi, vj] - B[vj]", "C[0, 0] is -4, but should be 4"),
    ("broadcast_add", "class MyAdd", "class Other", "There is no MyAdd yet"),
    ("broadcast_add", "def add", "def plus", "should have a function add; it has plus"),
    ("conv2d",
     "                with T.init():\n                    C[vb, vk, vi, vj] = T.int64(0)\n", "",
     "with T.init():"),
    ("conv2d", "vi + vdi, vj + vdj] * B[vk, vq, vdi, vdj]",
     "vi + vdi, vj + vdj] * B[vk, vq, vdj, vdi]",
     "di and dj are exchanged"),
    ("conv2d", "B[vk, vq, vdi, vdj]", "B[vk, vq, K - 1 - vdi, K - 1 - vdj]",
     "The kernel is flipped"),
    ("bmm_relu", "sch.unroll(k1)\n", "",
     "First difference: loop 5 around block Y_update is range(4), the target has T.unroll(4)"),
    ("bmm_relu", "init = sch.decompose_reduction(Y, k0)\nsch.vectorize(sch.get_loops(init)[-1])",
     "",
     "Block Y still has its initial value inside"),
    ("bmm_relu", "factors=[None, 8]", "factors=[None, 16]",
     "First difference: loop 3 around block Y_init is range(8), the target has range(16)"),
    ("bmm_relu", "sch.parallel(b)\n", "", "loop 1 around block Y_init is range(16)"),
    ("bmm_relu", "sch.reverse_compute_at(C, j0)", "sch.split(sch.get_loops(C)[-1], [None, 8])",
     "Block C is still in loops of its own"),
    ("bmm_relu", None, "sch = 1", "sch should be a Schedule, but it is of type int"),
    ("jfactor", None, "times = {}\nbest = 1", "times is empty"),
    ("jfactor", None, "times = {3: 1.0}\nbest = 3", "3 is no divisor of 128"),
    ("jfactor", None, "times = {4: 1.0}\nbest = 4", "You have measured 1 factor(s)"),
    ("jfactor", None, TIMES + "best = 4", "among your times that of 8 is the least"),
    ("jfactor", None, "times = {4: -1.0}\nbest = 4", "a number of seconds above 0"),
    ("packed_functions", "np.float32(0.1) * x_np", "np.float32(0)", "keeps a tenth"),
    ("packed_functions", "    out.copyfrom(np.where(x_np > 0, x_np, np.float32(0.1) * x_np))",
     "    return x_np", "out is still as it was"),
    ("packed_functions", "env.leaky_relu", "env.leaky",
     'No function is registered as "env.leaky_relu"'),
    ("stochastic_schedule", "sch.sample_perfect_tile(loop=j, n=2)", "[32, 4]",
     "The trace has no sample_perfect_tile"),
    ("stochastic_schedule", "factors=j_factors", "factors=[32, 4]", "but no split uses them"),
    ("stochastic_schedule", "    return sch\n", "", "returned None instead of the schedule"),
    ("stochastic_schedule", "    sch.reorder(i, j_0, k, j_1)\n", "", "Look at the reorder"),
    ("stochastic_schedule", "    sch.decompose_reduction(block_C, k)\n", "",
     "still inside block C"),
    ("stochastic_schedule", "n=2)", "n=2, decision=[32, 4])", "something fixes the choice"),
    ("te_linear", "Y[i, j] + B[j]", "Y[i, j]", "B is not added yet"),
    ("te_linear", "W[j, k]", "W[k, j]", "transposed: W[j, k]"),
    ("te_linear", "outputs = X.shape[0], W.shape[0]", "outputs = X.shape[0], W.shape[1]",
     "should have shape (1, 10)"),
    ("te_linear", "return te.compute", "te.compute", "it returned None"),
    ("gpu_coalesce", "+ R[vj]", "- R[vj]", "B is no longer A with R added"),
    ("gpu_coalesce", "sch.bind(i, \"blockIdx.x\")\n", "", "thread=\"blockIdx.x\"); there is"),
    ("gpu_coalesce", "sch.bind(i, \"blockIdx.x\")\nsch.bind(j, \"threadIdx.x\")",
     "sch.bind(j, \"blockIdx.x\")\nsch.bind(i, \"threadIdx.x\")",
     "32 transactions where it reads A, and 4 would do"),
    ("thread_blocks", "sch.bind(ax1, \"threadIdx.x\")\n", "", "so that they share it"),
    ("thread_blocks", "nthread = 256", "nthread = 128",
     "T.thread_binding(4, thread=\"blockIdx.x\")"),
    ("thread_blocks", "sch.bind(i0, \"blockIdx.x\")\n", "", "there is range(4)"),
    ("tensorize", "sch.tensorize(block_mm, \"tmm16\")\n", "", "The trace has no tensorize yet"),
    ("tensorize", "sch.decompose_reduction(block_mm, k)\nsch.tensorize(block_mm, \"tmm16\")\n", "",
     "The trace has no decompose_reduction yet"),
    ("matmul_add_fusion", ".with_attr(\"Primitive\", 1)", "", "lacks the attribute \"Primitive\""),
    ("matmul_add_fusion", " or value.op != self.matmul_op", "", "you made 3 function(s)"),
    ("matmul_add_fusion", "        return relax.Call(global_var, arguments, None, None)",
     "        return call", "In main a relu and the last addition should be left"),
    ("matmul_add_fusion", "relax.op.add(lv0, params[2])", "relax.op.subtract(lv0, params[2])",
     "should be a matmul and an add"),
    ("matmul_add_fusion", "        arguments = [value",
     "        return call\n        arguments = [value",
     "no function was made of either"),
    ("beat_this_time", None, "schedule = 1", "There is no my_schedule yet"),
    ("gpu_map", "16)\n", "8)\n", "This puzzle is for the launch 16 along threadIdx.x; yours is 8"),
    ("gpu_map", "A: T.Buffer((16,)", "A: T.Buffer((17,)", "Leave the parameters of gpu_map"),
    ("gpu_map", None, "other = 1", "There is no gpu_map yet"),
    ("gpu_zip", "A[tx] * B[tx]", "A[tx] + B[tx]", "(16 of 16 elements differ)"),
    ("gpu_guard", "tx < 10", "tx < 11", "Thread (threadIdx.x=10): Reading A[10] is out of bounds"),
    ("gpu_guard", "tx < 10", "tx < 9", "B[9] has no number"),
    ("gpu_broadcast", "ty < 6 and tx < 5", "tx < 6 and ty < 5", "Reading B[5] is out of bounds"),
    ("gpu_blocks", "B[bx * 16 + tx]", "B[tx]",
     "thread (threadIdx.x=0) of block (blockIdx.x=1) writes it"),
    ("gpu_shared", "S[7 - tx]", "A[bx * 8 + 7 - tx]", "should go through shared memory"),
    ("gpu_shared", "T.evaluate(T.tvm_storage_sync(\"shared\"))\n", "pass\n", "with no barrier"),
    ("gpu_dot", "if tx == 0:", "if tx < 2:", "Threads race for C[0]"),
    ("gpu_conv1d", "        S[8 + tx] =",
     "        T.evaluate(T.tvm_storage_sync(\"shared\"))\n        S[8 + tx] =",
     "All threads of a block"),
    ("gpu_axis_sum", "if tx < T.shift_right(8, step)", "if tx < 8", "Threads race for S["),
    ("gpu_find_race", "(tx + 1) % 16", "tx + 1", "Thread (threadIdx.x=15) of block (blockIdx.x=0)"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The name `tvm`, and no functions registered by earlier tests."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    compat.install()
    yield
    compat.uninstall()
    for name in ("env.leaky_relu", "env.leaky"):
        remove_global_func(name)


def told(exercise: str, old: str | None, new: str) -> tuple[bool, str]:
    """Whether the checker is content with a changed solution, and what it says."""
    lesson = LESSONS[exercise]
    notebook.restart(lesson.id)
    [cell] = [cell for cell in lesson.cells if cell.exercise == exercise]
    solution = lesson.solutions[exercise]
    assert old is None or old in solution, "the solution has changed; change the mistake, too"
    wrong = new if old is None else solution.replace(old, new)
    sources = {number: lesson.cells[number - 1].source for number in NEEDS[exercise]}
    for number, source in {**sources, cell.number: wrong}.items():
        result = asyncio.run(notebook.execute(source, lesson.id, number))
        assert result.ok, result.error.text
    verdict = notebook.check(exercise, lesson.id)
    return verdict.passed, verdict.message


@pytest.mark.parametrize(("exercise", "old", "new", "message"), MISTAKES)
def test_a_mistake_gets_its_message(exercise: str, old: str | None, new: str, message: str) -> None:
    passed, said = told(exercise, old, new)
    assert not passed
    assert message in said, said


@pytest.mark.parametrize(
    ("seconds", "passed", "message"),
    [
        ([3e-4, 1e-4], True, "3.0 times as fast, 41.9 GFLOPS"),
        ([3e-4, 2.5e-4], False, "1.20 times as fast; 1.5 is asked"),
    ],
)
def test_the_stopwatch(
    monkeypatch: pytest.MonkeyPatch, seconds: list[float], passed: bool, message: str
) -> None:
    monkeypatch.setattr(searching, "times", lambda *modules: seconds)
    result = told("beat_this_time", "", "")
    assert result[0] is passed
    assert message in result[1]


def test_an_error_of_the_readers_program_is_told() -> None:
    passed, said = told("stochastic_schedule", "factors=j_factors", "factors=[3, 5]")
    assert not passed
    assert said.startswith("Your program raised")
    assert "128" in said


def test_a_verdict_on_an_access_shows_its_line_with_carets() -> None:
    lesson = LESSONS["gpu_guard"]
    [cell] = [cell for cell in lesson.cells if cell.exercise == "gpu_guard"]
    told("gpu_guard", None, cell.source)
    verdict = notebook.check("gpu_guard", lesson.id)
    text = next(line for line in cell.source.splitlines() if "A[tx]" in line)
    number = cell.source.splitlines().index(text) + 1
    assert verdict.message.endswith(f", in line {number}, `{text.strip()}`")
    _, shown, carets = verdict.excerpt.splitlines()
    assert shown == f"{number:>5} | {text}"
    assert carets == f"      | {' ' * text.index('A[tx]')}^^^^^"
    told("gpu_map", "A[tx] + ", "")
    assert notebook.check("gpu_map", lesson.id).excerpt == ""


# Puzzle, what is told of the cell as it stands, transactions of the solution with global memory:
# 16 elements of 4 bytes are two, once to read and once to write.
PUZZLES = [
    ("gpu_map", "B[0] is 8, but should be 18", "4"),
    ("gpu_zip", "C[0] is 8, but should be -56", "6"),
    ("gpu_guard", "Thread (threadIdx.x=10): Reading A[10] is out of bounds", "4"),
    ("gpu_broadcast", "Thread (threadIdx.y=0, threadIdx.x=5): Writing C[0, 5] is out of", "9"),
    ("gpu_blocks", "Threads race for B[0]: thread (threadIdx.x=0) of block (blockIdx.x=0)", "14"),
    ("gpu_shared", "Threads race for S[4]: thread (threadIdx.x=3) of block (blockIdx.x=0)", "8"),
    ("gpu_pooling", "Thread (threadIdx.x=0): Reading S[-1] is out of bounds", "4"),
    ("gpu_dot", "Threads race for C[0]: thread (threadIdx.x=0) writes it in line", "37"),
    ("gpu_conv1d", "reads S[8] in line 12", "59"),
    ("gpu_prefix_sum", "Threads race for S[1]: thread (threadIdx.x=1) writes it in line", "4"),
    ("gpu_axis_sum", "waits at the barrier in line 9", "12"),
    ("gpu_matmul", "Threads race for SA[0, 0]: thread", "2,624"),
]


@pytest.mark.parametrize(("exercise", "said", "transactions"), PUZZLES)
def test_a_puzzle_as_it_stands_and_solved(exercise: str, said: str, transactions: str) -> None:
    lesson = LESSONS[exercise]
    [cell] = [cell for cell in lesson.cells if cell.exercise == exercise]
    passed, message = told(exercise, None, cell.source)
    assert not passed and said in message, message
    passed, message = told(exercise, None, lesson.solutions[exercise])
    assert passed and f"Warps make {transactions} transactions of 32 bytes" in message, message


def test_all_puzzles_are_there() -> None:
    names = [name for name, *_ in PUZZLES]
    assert names == [*LESSONS["gpu_map"].exercises] and len(names) == 12


def test_bytes_that_do_not_lie_together_are_told() -> None:
    passed, message = told("gpu_matmul", None, LESSONS["gpu_matmul"].solutions["gpu_matmul"])
    assert passed and "where 1,312 would do if the bytes of each access lay together" in message
    passed, message = told("gpu_map", None, LESSONS["gpu_map"].solutions["gpu_map"])
    assert passed and "global memory; the bytes of each access lie together" in message
