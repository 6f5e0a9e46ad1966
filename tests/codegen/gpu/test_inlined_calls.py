"""Functions of a module that kernels call, and functions of a GPU's own language."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.script import from_source
from tests.gpu import compile_cuda

KINDS = ("cuda", "opencl", "metal", "webgpu")
X = np.linspace(-2, 2, 64, dtype="float32").reshape(4, 16)

MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scaled(x: T.float32, i: T.int32) -> T.float32:
        y: T.float32 = x * T.float32(3)
        return y + T.Cast("float32", i)

    @T.prim_func(private=True)
    def rows(n: T.int32) -> T.int32:
        return n // 4

    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
        m: T.int32 = Module.rows(16)
        for i in T.thread_binding(m, thread="blockIdx.x"):
            for j in T.thread_binding(m * 4, thread="threadIdx.x"):
                B[i, j] = Module.scaled(Module.scaled(A[i, j], 1), i + j)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kernel_calls_is_computed_in_it(kind):
    library = tvm.build(from_source(MODULE), target=kind)
    dev = tvm.runtime.device(kind)
    a, b = tvm.nd.array(X, dev), tvm.nd.array(0 * X, dev)
    library["main"](a, b)
    expected = (X * 3 + 1) * 3 + np.add.outer(np.arange(4), np.arange(16))
    np.testing.assert_allclose(b.numpy(), expected, rtol=1e-6)
    source = library.imports[0].get_source()
    assert source.count("main_kernel(") == 1 and "scaled" not in source


@pytest.mark.parametrize(
    ("callee", "reason"),
    [
        ("T.ret(T.if_then_else(x > T.float32(0), Module.f(x - T.float32(1)), x))", "calls itself"),
        ("for i in range(3):\n            T.evaluate(i)\n        T.ret(x)", "than one expression"),
    ],
)  # fmt: skip
def test_what_a_kernel_cannot_call(callee, reason):
    module = from_source(
        f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(x: T.float32) -> T.float32:
        {callee}

    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            A[j] = Module.f(A[j])
"""
    )
    with pytest.raises(TVMError, match=reason):
        tvm.build(module, target="cuda")


def calling(call, memory=""):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((64,), "int8x4"), B: T.Buffer((64,), "int8x4"), C: T.Buffer((64,), "int32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            C[i * 16 + j] = {call}
"""
    )


def test_a_function_of_the_language_is_called_by_its_name():
    """Vectors of four octets are the words that NVIDIA's instructions take."""
    func = calling('T.call_pure_extern("int32", "__dp4a", A[i * 16 + j], B[i * 16 + j], j)')
    library = tvm.build(func, target="cuda")
    source = library.imports[0].get_source()
    assert "__dp4a(*(const int*)(A + " in source
    assert compile_cuda(source) == ""
    if tvm.runtime.device("cuda").exist:
        return
    dev = tvm.runtime.device("cuda")
    arrays = [tvm.nd.empty((64,), dtype, dev) for dtype in ("int8x4", "int8x4", "int32")]
    with pytest.raises(TVMError, match=r'Without a GPU for cuda .*"__dp4a"'):
        library(*arrays)


def test_a_function_of_the_language_gets_no_memory():
    with pytest.raises(TVMError, match="is given numbers, and no memory"):
        tvm.build(calling('T.call_extern("int32", "f", C.data)'), target="cuda")


def test_a_registered_function_is_called_where_kernels_are_simulated():
    tvm.register_func("tests.add_one", lambda x: x + 1, override=True)
    func = calling('T.call_pure_extern("int32", "tests.add_one", i * 16 + j)')
    arrays = [tvm.nd.empty((64,), dtype) for dtype in ("int8x4", "int8x4", "int32")]
    tvm.build(IRModule({"main": func}), target="llvm")(*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), np.arange(64) + 1)
