"""Libraries as files: what is written, read again, and what is refused."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import TVMError
from mlcweb.runtime import load_module
from mlcweb.runtime.host.engine import available
from mlcweb.runtime.library import LibraryError
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

N = 16
rng = np.random.default_rng(0)
needs_engine = pytest.mark.skipif(not available(), reason="no WebAssembly engine")


@I.ir_module
class Two:
    @T.prim_func
    def double(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
        for i in range(N):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def total(A: T.Buffer((N,), "float32"), B: T.Buffer((1,), "float32")):
        B[0] = T.float32(0)
        for i in range(N):
            B[0] = B[0] + A[i]


@T.prim_func
def negate(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = -A[i]


def called(function, size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal(size).astype("float32")
    result = tvm.nd.empty((out,), "float32")
    function(tvm.nd.array(x), result)
    return x, result.numpy()


@pytest.mark.parametrize(
    "target", [pytest.param("wasm", marks=needs_engine), "numpy", "interpreter"]
)
def test_a_module_is_read_again(tmp_path, target):
    path = tmp_path / "library.wasm"
    tvm.build(Two, target).export_library(path)
    loaded = load_module(path)
    assert loaded.target == target
    x, y = called(loaded["double"], N, N)
    np.testing.assert_array_equal(y, 2 * x)
    x, y = called(loaded["total"], N, 1)
    np.testing.assert_allclose(y, x.sum(), rtol=1e-5)


@needs_engine
def test_the_code_of_the_file_is_what_runs(tmp_path, monkeypatch):
    path = tmp_path / "library.wasm"
    tvm.build(Two, "wasm").export_library(str(path))
    data = path.read_bytes()
    assert data.startswith(b"\0asm\1\0\0\0") and b"double_repeat" in data
    # Twice the input becomes three times the input in the code alone.
    two, three = np.float32(2).tobytes(), np.float32(3).tobytes()
    assert data.count(two) >= 1
    path.write_bytes(data.replace(two, three))
    x, y = called(load_module(path)["double"], N, N)
    np.testing.assert_array_equal(y, 3 * x)


@needs_engine
def test_symbolic_shapes_are_compiled_where_they_are_known(tmp_path):
    path = tmp_path / "library.so"
    tvm.build(negate, "wasm").export_library(path)
    loaded = load_module(path)
    for size in (3, 17):
        x, y = called(loaded["negate"], size, size)
        np.testing.assert_array_equal(y, -x)


@needs_engine
def test_a_loaded_module_shows_its_text_and_is_written_again(tmp_path):
    path, second = tmp_path / "library.wasm", tmp_path / "again.wasm"
    tvm.build(Two, "wasm").export_library(path)
    loaded = load_module(path)
    assert "f32.mul" in loaded.get_source() or "f32x4.mul" in loaded.get_source()
    loaded.export_library(second)
    x, y = called(load_module(second)["double"], N, N)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("target", [pytest.param("wasm", marks=needs_engine), "numpy"])
def test_an_executable_is_read_again_with_its_constants(tmp_path, target):
    weight = rng.standard_normal((4, 3)).astype("float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.matmul(x, relax.const(weight)))
            out = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(out)
    path = tmp_path / "model.wasm"
    relax.build(builder.get(), target).export_library(path)
    machine = relax.VirtualMachine(load_module(path), tvm.cpu())
    data = rng.standard_normal((2, 4)).astype("float32")
    found = machine["main"](tvm.nd.array(data)).numpy()
    np.testing.assert_allclose(found, np.maximum(data @ weight, 0), rtol=1e-5)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.so"
    path.write_bytes(b"\x7fELF....")
    with pytest.raises(
        LibraryError, match=r'other.so" is no WebAssembly module; load_module reads'
    ):
        load_module(path)
    path.write_bytes(b"\0asm\1\0\0\0")
    with pytest.raises(LibraryError, match=r'has no section "mlcweb.library"'):
        load_module(path)


def test_source_in_a_language():
    built = tvm.build(Two, "numpy")
    assert built.get_source("python") == built.get_source("py") == built.get_source()
    with pytest.raises(
        TVMError, match=r'^A module for "numpy" has no source in "ll"; it has "python"$'
    ):
        built.get_source("ll")


@needs_engine
def test_machine_code_as_text():
    built = tvm.build(Two, "wasm")
    assert built.get_source("asm") == built.get_source("wat") == built.get_source()
    assert built.mod is built


@needs_engine
def test_parallel_loops_of_a_file_run_on_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("mlcweb.lower.outline_parallel.MIN_OPERATIONS", 0)

    @T.prim_func
    def main(A: T.Buffer((40, 512), "float32")):
        for i in T.parallel(40):
            for j in range(512):
                A[i, j] = A[i, j] + T.Cast("float32", i)

    path = tmp_path / "lib.wasm"
    tvm.build(main, "wasm").export_library(path)
    # For those who have no threads to give, the code of the file needs none.
    assert b"parallel" not in path.read_bytes().partition(b"mlcweb.library")[0]
    loaded = load_module(path)
    assert loaded["main"].kernel.is_parallel
    a = tvm.nd.array(np.zeros((40, 512), "float32"))
    loaded(a)
    np.testing.assert_array_equal(a.numpy(), np.arange(40)[:, None].repeat(512, 1))
    monkeypatch.setattr("mlcweb.runtime.library.has_threads", lambda: False)
    serial = load_module(path)
    assert not serial["main"].kernel.is_parallel
    serial(a)
    np.testing.assert_array_equal(a.numpy(), 2 * np.arange(40)[:, None].repeat(512, 1))
