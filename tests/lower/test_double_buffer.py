"""Double buffers: what the pass makes of marked loops, as TVM 0.27 does, and the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import TVMError
from mlcweb.lower.pipeline import lower
from mlcweb.script import from_source


def row_sums(fill="cache[j] = A[i, j]", rest="", extent="16", first="0", at="i"):
    """B[i] is the sum of a row of A, which a cache holds."""
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in T.serial({first}, {first} + {extent}):
        cache = T.decl_buffer((32,), "float32")
        with T.attr(cache.data, "double_buffer_scope", 1):
            for j in range(32):
                {fill.replace("A[i", f"A[{at}")}
        B[i] = T.float32(0)
        {rest or "T.evaluate(0)"}
        for j in range(32):
            B[i] = B[i] + cache[j]
"""
    )


def injected(func, split):
    options = {"tir.InjectDoubleBuffer": {"split_loop": split}}
    mod = tvm.IRModule({"main": func})
    with tvm.transform.PassContext(config=options):
        mod = tvm.tir.transform.InjectDoubleBuffer()(mod)
    return tvm.tir.transform.StmtSimplify()(mod)["main"]


SUM = """
{indent}B[{row}] = T.float32(0)
{indent}for j in range(32):
{indent}    B[{row}] = B[{row}] + cache[{half}]"""
FILL = """
{indent}with T.attr(cache.data, "double_buffer_write", 1):
{indent}    for j in range(32):
{indent}        cache[{half}] = A[{row}, j]"""


def text(form, row, half, depth=2):
    return form.format(indent="    " * depth, row=row, half=half).lstrip("\n") + "\n"


def answer(split):
    """What TVM makes of `row_sums()`."""
    lines = """
@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    cache = T.decl_buffer((64,), "float32")
    for j in range(32):
        cache[j] = A[0, j]
"""
    if split == 0:
        lines += "    for i in range(16):\n        if i < 15:\n"
        lines += text(FILL, "i + 1", "(i + 1) % 2 * 32 + j", 3)
        return lines + text(SUM, "i", "i % 2 * 32 + j")
    if split == 1:
        lines += "    for i in range(15):\n"
        lines += text(FILL, "i + 1", "(i + 1) % 2 * 32 + j")
        lines += text(SUM, "i", "i % 2 * 32 + j")
        return lines + text(SUM, "15", "j + 32", 1)
    lines += "    for i in range(7):\n"
    lines += text(FILL, "i * 2 + 1", "j + 32") + text(SUM, "i * 2", "j")
    lines += text(FILL, "i * 2 + 2", "j") + text(SUM, "i * 2 + 1", "j + 32")
    lines += "    for j in range(32):\n        cache[j + 32] = A[15, j]\n"
    return lines + text(SUM, "14", "j", 1) + text(SUM, "15", "j + 32", 1)


@pytest.mark.parametrize("split", [0, 1, 2])
def test_the_pass_gives_tvms_answer(split):
    tvm.ir.assert_structural_equal(
        injected(row_sums(), split), from_source(answer(split)), map_free_vars=True
    )


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
@pytest.mark.parametrize("split", [0, 1, 2, 4])
@pytest.mark.parametrize("rows", [0, 1, 2, 15, 16])
def test_the_numbers_stay(target, split, rows):
    func = injected(row_sums(extent="n"), split)
    x = np.random.default_rng(0).random((16, 32), "float32")
    sums = np.where(np.arange(16) < rows, x.sum(1), 7).astype("float32")
    for program in (func, row_sums(extent="n")):
        arrays = [tvm.nd.array(x), tvm.nd.array(np.full(16, 7, "float32"))]
        tvm.build(program, target=target)(*arrays, rows)
        np.testing.assert_allclose(arrays[1].numpy(), sums, rtol=1e-6)


def test_a_loop_that_does_not_begin_at_zero():
    func = row_sums(first="3", extent="5", at="i - 3")
    x = np.random.default_rng(0).random((16, 32), "float32")
    arrays = [tvm.nd.array(x), tvm.nd.array(np.zeros(16, "float32"))]
    tvm.build(func, target="wasm")(*arrays, 0)
    np.testing.assert_allclose(arrays[1].numpy()[3:8], x[:5].sum(1), rtol=1e-6)
    assert "double_buffer_scope" not in lower(func).script()


def test_threads_copy_a_tile_while_they_use_another():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for i in range(8):
            S = T.decl_buffer((32,), "float32", scope="shared")
            with T.attr(S.data, "double_buffer_scope", 1):
                S[tx] = A[i, tx]
            B[i, tx] = S[31 - tx]
"""
    )
    x = np.random.default_rng(0).random((8, 32), "float32")
    for target in ("simulated", "wasm", "numpy"):
        arrays = [tvm.nd.array(x), tvm.nd.array(np.zeros_like(x))]
        tvm.build(func, target=target)(*arrays)
        np.testing.assert_array_equal(arrays[1].numpy(), x[:, ::-1])
    source = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert "__shared__ float S[64];" in source


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (row_sums(fill="cache[j] = A[i, j] + B[i]"), 'depends on the rest of the loop through "B"'),
        (row_sums(rest="A[i, 0] = B[i]"), 'through "A"'),
        (row_sums(rest="cache[0] = B[i]"), "written outside of what fills it"),
    ],
)
def test_what_cannot_be_filled_early_is_refused(program, reason):
    with pytest.raises(TVMError, match=reason):
        injected(program, 1)


def test_the_buffer_is_of_the_loop():
    text = row_sums().script().replace("        cache = T.decl_buffer((32,))\n", "")
    head = "n: T.int32):\n"
    outside = text.replace(head, f"{head}    cache = T.decl_buffer((32,))\n")
    with pytest.raises(TVMError, match='"cache" is no array that loop "i" allocates'):
        injected(from_source(outside), 1)
    with pytest.raises(TVMError, match="it is 0 or more"):
        injected(row_sums(), -2)
