"""Floats of eight bits in CUDA, whose headers have types for them: kept, copied and converted."""

from __future__ import annotations

import pytest

import mlcweb as tvm
from mlcweb.ir import TVMError
from mlcweb.script import from_source
from tests.gpu import compile_cuda


def source(value, dtype, out, lanes=1, target="cuda"):
    indices = f"4 * i : 4 * i + {lanes}" if lanes > 1 else "i"
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{out}")):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        B[{indices}] = {value}
"""
    )
    return tvm.build(func, target=target).imports[0].get_source()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("wide", ["float16", "float32", "bfloat16", "int32"])
def test_conversions(dtype, wide):
    text = source(f'T.Cast("{dtype}", T.Cast("{wide}", A[i]) + T.Cast("{wide}", 1))', dtype, dtype)
    name, kind = {"float8_e4m3fn": ("e4m3", "E4M3"), "float8_e5m2": ("e5m2", "E5M2")}[dtype]
    assert f"to_fp8_<__nv_fp8_{name}, __NV_{kind}>(" in text
    assert text.count("#include <cuda_fp8.h>") == 1
    for architecture in ("compute_80", "compute_90"):
        assert compile_cuda(text, architecture) == ""


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_four_neighbours_are_a_word(dtype):
    packed = source('T.reinterpret("uint32", A[4 * i : 4 * i + 4])', dtype, "uint32")
    copied = source("A[4 * i : 4 * i + 4]", dtype, dtype, lanes=4)
    assert "*(unsigned int*)" in copied or "*(uint1*)" in copied
    text = f'T.Cast("float16x4", T.reinterpret("{dtype}x4", A[i]))'
    unpacked = source(text, "uint32", "float16", lanes=4)
    assert unpacked.count(">> 8u") == unpacked.count(">> 24u") == 1
    for each in (packed, copied, unpacked):
        assert compile_cuda(each, "compute_80") == ""


def test_constants():
    text = source("T.float32(1.5).astype('float8_e4m3fn')", "float32", "float8_e4m3fn")
    assert "(1.5f)" in text and compile_cuda(text, "compute_80") == ""


@pytest.mark.parametrize(
    ("value", "dtype", "out", "target", "reason"),
    [
        ("A[i] + A[i]", "float8_e5m2", "float8_e5m2", "cuda", "does not compute with it; cast"),
        ('T.Cast("float8_e8m0fnu", A[i])', "float32", "float8_e8m0fnu", "cuda", "does not round"),
        ("A[i]", "float8_e5m2", "float8_e5m2", "metal", "which metal has not"),
    ],
)
def test_what_is_refused(value, dtype, out, target, reason):
    with pytest.raises(TVMError, match=reason):
        source(value, dtype, out, target=target)
