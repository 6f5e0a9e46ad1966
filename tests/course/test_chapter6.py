"""Chapter 6: thread blocks and shared memory; blocks, blockize, special memory, tensorize.

`cells/chapter6_part1.txt` holds the cells on GPUs up to what is compiled for one, and
`cells/chapter6_running.txt` those that compile, run and tune it, with their results compared.
`cells/chapter6_part2.txt` holds the cells with the line breaks and indentation of their typesetting
mended, and the strides of `tmm16_impl` as [s, 1]. `listings/chapter6_*.txt` is what Apache TVM 0.27
makes of them.
"""

import linecache
import re
from pathlib import Path

import numpy as np
import pytest

import mlcweb
from mlcweb import compat
from mlcweb.ir import assert_structural_equal
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.tir.tensor_intrin import _intrinsics

HERE = Path(__file__).parent
SIZE = 1024
"""The extent of all matrices in the course."""


def listing(name):
    return from_source((HERE / "listings" / f"chapter6_{name}.txt").read_text())


@pytest.fixture
def course(monkeypatch, request):
    """The modules that the cells show, in order, and the cells' names; without the parts that
    compute with NumPy and run the whole product. A parameter replaces the size of the matrices."""
    size = getattr(request, "param", SIZE)
    text = (HERE / "cells" / "chapter6_part2.txt").read_text()
    text = text.replace("T.grid(64, 64, 64)", f"T.grid({size // 16}, {size // 16}, {size // 16})")
    text = text.replace("1024", str(size))
    modules = []
    monkeypatch.setattr(mlcweb.ir.IRModule, "show", lambda self: modules.append(self))
    monkeypatch.delitem(_intrinsics, "tmm16", raising=False)
    names = {"__name__": "course"}
    compat.install()
    try:
        for number, cell in enumerate(re.split(r"^# %%\n", text, flags=re.M)):
            if "a_nd = " in cell and size == SIZE:
                continue
            filename = f"chapter6_{number}.py"
            linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
            exec(compile(cell, filename, "exec"), names)
    finally:
        compat.uninstall()
        _intrinsics.pop("tmm16", None)
    return modules, names


GPU_LISTINGS = [
    "vector_add", "window_sum_shared", "window_sum_cooperative", "matmul_blocking", "matmul_shared",
]  # fmt: skip


def gpu_cells(part, size):
    """Cells on GPUs as text, with matrices of a size."""
    text = (HERE / "cells" / f"chapter6_{part}.txt").read_text()
    return re.sub(rf"{SIZE}(?=, {SIZE})|(?<={SIZE}, ){SIZE}", str(size), text)


@pytest.fixture(scope="module")
def gpu_modules(request):
    """The modules that the cells of part 1 arrive at, by name. A parameter replaces the size of the
    matrices."""
    names = {"__name__": "course", "tvm": mlcweb, "T": mlcweb.script.tir}
    text = gpu_cells("part1", getattr(request, "param", SIZE))
    for number, cell in enumerate(re.split(r"^# %%\n", text, flags=re.M)):
        filename = f"chapter6_part1_{number}.py"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
        exec(compile(cell, filename, "exec"), names)
    return names


@pytest.mark.parametrize("name", GPU_LISTINGS)
def test_gpu_listings(gpu_modules, name):
    assert_structural_equal(gpu_modules[name], listing(name))


def test_a_thread_block_computes_its_part(gpu_modules):
    """Threads that fetch together are loops like others to the interpreter."""
    a = np.arange(1027, dtype="float32")
    arrays = [mlcweb.nd.array(a), mlcweb.nd.empty((1024,))]
    mlcweb.build(gpu_modules["window_sum_shared"], target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), a[:-3] + a[1:-2] + a[2:-1])


@pytest.mark.parametrize("gpu_modules", [256], indirect=True)
def test_what_is_compiled_for_a_gpu_runs_and_is_tuned(gpu_modules, capsys, tmp_path, monkeypatch):
    """With a GPU and without; the book's matrices are larger, its search has more trials, and its
    programs run 10 times."""
    monkeypatch.chdir(tmp_path)
    names = dict(gpu_modules)
    text = gpu_cells("running", 256)
    text = text.replace("max_trials_global=64", "max_trials_global=4")
    text = text.replace("number=10", "number=1")
    compat.install()
    try:
        for cell in re.split(r"^# %%\n", text, flags=re.M):
            exec(cell, names)
    finally:
        compat.uninstall()
    printed = capsys.readouterr().out
    assert 'extern "C" __global__' in printed
    assert "kernel void main_kernel(" in printed
    speeds = re.findall(r"(GEMM-Blocking|GEMM-Shared|MetaSchedule): (\S+) GFLOPS", printed)
    assert [name for name, _ in speeds] == ["GEMM-Blocking", "GEMM-Shared", "MetaSchedule"]
    assert all(float(speed) > 0 for _, speed in speeds)
    assert "T.thread_binding(" in printed  # the tuned program


def test_listings(course):
    shown, _ = course
    given, reordered, _, blockized, special_scopes, decomposed, tensorized = shown
    assert 'with T.block("tmm-16x16"):' in given.script()
    assert_structural_equal(reordered, listing("block_reordered"))
    assert_structural_equal(blockized, listing("blockized"))
    assert_structural_equal(special_scopes, listing("special_scopes"))
    assert_structural_equal(decomposed, listing("decomposed"))
    assert_structural_equal(tensorized, listing("tensorized"))


@pytest.mark.parametrize("course", [64], indirect=True)
def test_small_matrices_compute_the_product(course):
    shown, names = course
    a, b = names["a_np"], names["b_np"]

    def tmm16(c, a, b, stride_a, stride_b, stride_c):
        for i in range(16):
            for j in range(16):
                row, column = a[i * stride_a :][:16], b[j * stride_b :][:16]
                c[i * stride_c + j] += row @ column

    register_func("tmm16", tmm16)
    try:
        for mod in shown:
            arrays = [mlcweb.nd.array(x) for x in (a, b, np.full_like(a, np.nan))]
            mlcweb.build(mod, target="llvm")["main"](*arrays)
            np.testing.assert_allclose(arrays[2].numpy(), names["c_tmm"], rtol=1e-5)
    finally:
        remove_global_func("tmm16")
