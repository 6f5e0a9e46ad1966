"""Functions as C: what a compiler makes of the text computes what the interpreter computes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.codegen.c_source import c_source
from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc
from tests.corpus.running import CannotRun, difference, functions_in, interpreted, sized
from tests.corpus.test_printed import printed_programs

COMPILER = shutil.which("cc")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def compiled(text: str, folder: Path) -> ctypes.CDLL:
    source, library = folder / "text.c", folder / f"{len(list(folder.iterdir()))}.so"
    source.write_text(text)
    flags = ["-std=c99", "-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC"]
    command = [str(COMPILER), *flags, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return ctypes.CDLL(str(library))


def check(func: PrimFunc, arrays: list[np.ndarray], expected: list[np.ndarray], at: Path) -> None:
    text = tvm.build(func, "c").get_source()
    copies = [np.ascontiguousarray(array) for array in arrays]
    (name,) = tvm.build(func, "c").functions
    compiled(text, at)[name](*(ctypes.c_void_p(array.ctypes.data) for array in copies))
    for one, other in zip(expected, copies, strict=True):
        assert not difference(one, other), text


@T.prim_func
def everything(
    A: T.Buffer((6,), "float32"),
    I: T.Buffer((6,), "int32"),
    B: T.Buffer((9, 6), "float32"),
    C: T.Buffer((9, 6), "int32"),
    D: T.Buffer((6,), "uint8"),
):
    for i in range(6):
        with T.block("all"):
            v = T.axis.spatial(6, i)
            B[0, v] = T.max(A[v], T.float32(0)) + T.min(A[v], T.float32(1))
            B[1, v] = T.exp(A[v]) * T.sigmoid(A[v]) + T.tanh(A[v])
            B[2, v] = T.sqrt(T.fabs(A[v])) + T.rsqrt(T.fabs(A[v]) + T.float32(1))
            B[3, v] = T.if_then_else(v < 3, A[v] / T.float32(3), T.floor(A[v]))
            B[4, v] = T.Select(A[v] > 0, T.erf(A[v]), T.round(A[v] * T.float32(10)))
            B[5, v] = T.Cast("float32", T.exp(T.Cast("float64", A[v])))
            B[6, v] = T.reinterpret("float32", T.reinterpret("int32", A[v]))
            B[7, v] = T.pow(T.fabs(A[v]), T.float32(1.5)) + T.atan2(A[v], T.float32(2))
            B[8, v] = T.infinity("float32") - T.Cast("float32", I[v])
            C[0, v] = I[v] // 3 + I[v] % 3
            C[1, v] = T.truncdiv(I[v], 3) + T.truncmod(I[v], 3)
            C[2, v] = T.Cast("int32", A[v] * T.float32(1e10))
            C[3, v] = T.popcount(I[v]) + T.clz(I[v])
            C[4, v] = T.abs(I[v]) + T.max(I[v], 2)
            C[5, v] = T.shift_right(I[v], 1) + T.bitwise_and(I[v], 3)
            C[6, v] = I[v] * 1000003 * 1000003
            C[7, v] = T.Cast("int32", T.Cast("int8", I[v] * 50))
            C[8, v] = T.if_then_else(A[v] > 0 and I[v] < 3, 1, 0)
            D[v] = T.Cast("uint8", A[v] * T.float32(200))


@needs_compiler
def test_operators(tmp_path: Path) -> None:
    arrays = [
        np.array([-2.5, -0.5, 0.0, 0.25, 1.5, 2.0], "float32"),
        np.array([-7, -1, 0, 1, 5, 100], "int32"),
        np.zeros((9, 6), "float32"),
        np.zeros((9, 6), "int32"),
        np.zeros(6, "uint8"),
    ]
    expected = [tvm.nd.array(array) for array in arrays]
    tvm.build(everything, "interpreter")["everything"](*expected)
    check(everything, arrays, [array.numpy() for array in expected], tmp_path)


@needs_compiler
def test_printed_programs(tmp_path: Path) -> None:
    programs = printed_programs("0.27")
    run = 0
    for _, func in functions_in(programs[5 :: len(programs) // 40]):
        try:
            arrays, expected = interpreted(func)
            text = c_source({"main_": sized(func)})
        except (CannotRun, tvm.TVMError):
            continue
        copies = [np.ascontiguousarray(array) for array in arrays]
        compiled(text, tmp_path).main_(*(ctypes.c_void_p(copy.ctypes.data) for copy in copies))
        assert not any(map(difference, expected, copies)), text
        run += 1
    assert run >= 12


def test_modules_give_c_when_they_are_asked() -> None:
    for target in ("llvm", "wasm", "numpy"):
        text = tvm.build(everything, target).get_source("c")
        assert "void everything(const float* A, const int32_t* I_1, float* B" in text
    lib = tvm.build(everything, "c")
    assert lib.get_source() == lib.get_source("c") == text
    assert lib.get_source("ll" if lib.target == "llvm" else "wat") != text


def test_what_c_lacks_is_refused() -> None:
    @T.prim_func
    def half(A: T.Buffer((4,), "float16")):
        for i in range(4):
            A[i] = A[i] + T.float16(1)

    @T.prim_func
    def vector(A: T.Buffer((4,), "float32")):
        A[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(1), 4)

    with pytest.raises(tvm.TVMError, match='"A" is float16, which c has not'):
        tvm.build(half, "c").get_source()
    with pytest.raises(tvm.TVMError, match="no form in c"):
        tvm.build(vector, "c").get_source()
