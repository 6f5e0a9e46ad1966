"""Libraries as files: what is written, read again, and what is refused."""

import json
from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.codegen.wasm.binary import unsigned
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
        TVMError, match=r'^A module for "numpy" has no source in "ll"; it has "python" and "c"$'
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


def facts_of(data: bytes) -> tuple[bytes, dict]:
    """The code of a library, and what its last section says."""
    start = data.rindex(b"mlcweb.library")
    code = data[: data.rindex(b"\0", 0, start - 1)]
    return code, json.loads(data[start + len(b"mlcweb.library") :])


def with_facts(path, facts) -> None:
    code, _ = facts_of(path.read_bytes())
    section = unsigned(14) + b"mlcweb.library" + json.dumps(facts).encode()
    path.write_bytes(code + b"\0" + unsigned(len(section)) + section)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", []), ("target", 5), ("target", "nothing"), ("target", "llvm -foo=1"),
        ("entry", 5), ("graph", None), ("compiled", 5), ("compiled", [{}]),
        ("scratch_bytes", -1), ("scratch_bytes", "many"), ("program", None), ("program", "]"),
        ("program", "\ud800"), ("program", "(" * 5000), ("program", "x = " + "-" * 100_000 + "1"),
        ("program", "import os"), ("program", "5"),
    ],
)  # fmt: skip
def test_a_library_that_says_what_is_wrong_is_refused(tmp_path, name, value):
    path = tmp_path / "library.wasm"
    tvm.build(Two, "numpy").export_library(path)
    _, facts = facts_of(path.read_bytes())
    with_facts(path, facts)
    assert load_module(path).target == "numpy"
    with_facts(path, {**facts, name: value})
    with pytest.raises(
        LibraryError, match=r'library.wasm" (is a damaged|was written by)|no module'
    ):
        load_module(path)
    del facts[name]
    with_facts(path, facts)
    with pytest.raises(LibraryError, match=r'library.wasm" is a damaged library'):
        load_module(path)


def test_no_python_in_a_library_is_run(tmp_path):
    path, made = tmp_path / "library.wasm", tmp_path / "made"
    tvm.build(Two, "numpy").export_library(path)
    _, facts = facts_of(path.read_bytes())
    program = facts["program"].replace(f"range({N})", f"range(len([open({str(made)!r}, 'w')]))")
    assert program != facts["program"]
    with_facts(path, {**facts, "program": program})
    with pytest.raises(LibraryError, match="when the script runs"):
        load_module(path)
    assert not made.exists()


@pytest.mark.parametrize("target", [pytest.param("wasm", marks=needs_engine), "numpy", "llvm"])
def test_damaged_libraries_are_refused(tmp_path, target):
    path = tmp_path / "library.so"
    tvm.build(Two, target).export_library(path)
    data, random = path.read_bytes(), Random(0)
    said = []
    for _ in range(150):
        start = random.randrange(len(data))
        kind = random.choice(("cut", "lost", "changed"))
        end = {"cut": len(data), "lost": start + 9, "changed": start + 1}[kind]
        path.write_bytes(data[:start] + b"\xff" * (kind == "changed") + data[end:])
        try:
            load_module(path)
        except LibraryError as error:
            said.append(str(error))
    assert len(said) > 20
    assert all("library.so" in text for text in said)
