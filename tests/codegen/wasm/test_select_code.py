"""The instructions that programs become: what stays in registers, how addresses move, sources."""

import numpy as np
import pytest

from mlcweb.codegen.wasm.kernel import compile_functions
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.codegen.corpus import PROGRAMS
from tests.codegen.wasm.validate import validate
from tests.programs import matmul


def schedule_mm(jfactor):
    """The course's schedule."""
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, [None, jfactor])
    sch.reorder(i, outer, k, inner)
    sch.decompose_reduction(block, k)
    return sch.mod["main"]


def innermost_loop(function):
    """The instructions of the first loop that has no other inside."""
    starts = []
    for index, instruction in enumerate(function.body):
        if instruction[0] == "loop":
            starts.append(index)
        elif instruction[0] == "end":
            return [entry[0] for entry in function.body[starts[-1] + 1 : index]]
    raise AssertionError("no loop")


def test_the_tile_of_schedule_mm_stays_in_locals():
    (function, *_) = compile_functions({"main": schedule_mm(16)}).module.functions
    inner = innermost_loop(function)
    assert "v128.store" not in inner
    assert inner.count("f32x4.mul") == inner.count("v128.load")
    assert inner.count("v128.load") == 4 * inner.count("v128.load32_splat")
    assert "i32.mul" not in inner


def test_constants_of_indices_are_in_the_memory_instructions():
    (function, *_) = compile_functions({"main": schedule_mm(16)}).module.functions
    offsets = {entry[1] for entry in function.body if entry[0] == "v128.load"}
    assert {0, 16, 32, 48} <= offsets


def test_the_untransformed_program_keeps_its_sum_in_a_local():
    (function, *_) = compile_functions({"main": matmul()["main"]}).module.functions
    inner = innermost_loop(function)
    assert "f32.store" not in inner
    # Four sums side by side share what they read of A.
    assert 4 * inner.count("f32.load") == 5 * inner.count("f32.add")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "options",
    [Options(), Options(load_splat=False, spill_workaround=True), Options(relaxed_madd=True),
     Options(bounds_check=True)],
)  # fmt: skip
def test_modules_are_valid_whatever_the_options(name, options):
    compiled = compile_functions({"main": PROGRAMS[name]}, options)
    validate(compiled.module)
    assert compiled.code[:4] == b"\0asm"
    assert "(module" in compiled.text.text


def test_instructions_know_the_line_they_came_from():
    func = from_source(
        "@T.prim_func\n"
        "def main(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):\n"
        "    for i in range(64):\n"
        "        A[i] = A[i] + T.float32(1)\n"
        "    for i in range(64):\n"
        "        B[i] = B[i] * T.float32(2)\n"
    )
    compiled = compile_functions({"main": func})
    (function, *_) = compiled.module.functions
    lines = {
        entry[0]: span.line
        for entry, span in zip(function.body, function.sources, strict=True)
        if span is not None
    }
    assert lines["f32x4.add"] == 4
    assert lines["f32x4.mul"] == 6
    assert any(source is not None for source in compiled.text.sources)


def test_fused_multiply_add_is_a_switch():
    plain = compile_functions({"main": schedule_mm(32)}).text.text
    fused = compile_functions({"main": schedule_mm(32)}, Options(relaxed_madd=True)).text.text
    assert "relaxed_madd" not in plain
    assert "f32x4.relaxed_madd" in fused
    assert "f32x4.mul" not in fused


def test_few_sums_are_not_fused_since_each_waits_for_itself():
    fused = compile_functions({"main": schedule_mm(16)}, Options(relaxed_madd=True)).text.text
    assert "relaxed_madd" not in fused


def test_fused_multiply_add_is_close():
    pytest.importorskip("wasmtime")
    from mlcweb.runtime.host import wasm_target

    random = np.random.default_rng(0)
    a, b = random.random((2, 128, 128), "float32")
    c = np.zeros_like(a)
    functions = {"main": schedule_mm(32)}
    options = Options(relaxed_madd=True, load_splat=False, spill_workaround=True)
    wasm_target.build(functions, lambda name: None, options)["main"].run(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-5)


def test_scratch_memory_is_shared_by_buffers_that_do_not_live_together():
    func = from_source(
        "@T.prim_func\n"
        "def main(A: T.Buffer((999,), 'float32'), B: T.Buffer((999,), 'float32')):\n"
        "    T.func_attr({'tir.noalias': True})\n"
        "    for _ in range(2):\n"
        "        with T.decl_buffer((1000,), 'float32') as X:\n"
        "            for i in range(999):\n"
        "                X[i] = A[i]\n"
        "            for i in range(999):\n"
        "                B[i] = X[998 - i]\n"
        "    for _ in range(2):\n"
        "        with T.decl_buffer((500,), 'float32') as Y:\n"
        "            for i in range(500):\n"
        "                Y[i] = A[i]\n"
        "            for i in range(500):\n"
        "                B[i] = B[i] + Y[499 - i]\n"
    )
    assert 4000 <= compile_functions({"main": func}).scratch_bytes < 4100
