"""Calls out of kernels: Python functions and micro-kernels, the same for every target."""

import gc
import weakref

import numpy as np
import pytest

from mlcweb.codegen.external import ExternalCallError
from mlcweb.ir import IRModule, TVMError
from mlcweb.runtime import build, nd, register_func, remove_global_func
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", *(["wasm"] if available() else [])]
TARGETS += ["llvm -mcpu=host"] if has_llvm() else []

TILED = from_source("""
@T.prim_func
def main(A: T.Buffer((32, 48), "float32"), B: T.Buffer((16, 48), "float32"),
         C: T.Buffer((32, 16), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(32, 16):
        C[i, j] = T.float32(0)
    for io, ko in T.grid(2, 3):
        with T.block("tile"):
            vi, vk = T.axis.remap("SR", [io, ko])
            T.reads(A[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16],
                    B[0:16, vk * 16 : vk * 16 + 16])
            T.writes(C[vi * 16 : vi * 16 + 16, 0:16])
            sa = T.int32()
            sb = T.int32()
            sc = T.int32()
            a = T.match_buffer(A[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16], (16, 16),
                               "float32", offset_factor=1, strides=[sa, 1])
            b = T.match_buffer(B[0:16, vk * 16 : vk * 16 + 16], (16, 16),
                               "float32", offset_factor=1, strides=[sb, 1])
            c = T.match_buffer(C[vi * 16 : vi * 16 + 16, 0:16], (16, 16),
                               "float32", offset_factor=1, strides=[sc, 1])
            T.evaluate(T.call_extern("test_tmm16", c.access_ptr("w"), a.access_ptr("r"),
                                     b.access_ptr("r"), sa, sb, sc, dtype="int32"))
""")

MICRO = from_source("""
@T.prim_func
def test_tmm16(c: T.handle, a: T.handle, b: T.handle, sa: T.int32, sb: T.int32, sc: T.int32):
    T.func_attr({"global_symbol": "test_tmm16", "tir.noalias": True})
    C = T.match_buffer(c, (16, 16), "float32", strides=[sc, 1], offset_factor=1)
    A = T.match_buffer(a, (16, 16), "float32", strides=[sa, 1], offset_factor=1)
    B = T.match_buffer(b, (16, 16), "float32", strides=[sb, 1], offset_factor=1)
    for i, j in T.grid(16, 16):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            total = T.alloc_buffer((1,), "float32")
            total[0] = T.float32(0)
            for k in range(16):
                total[0] = total[0] + A[vi, k] * B[vj, k]
            C[vi, vj] = C[vi, vj] + total[0]
""")


def in_python(c, a, b, sa, sb, sc):
    for i in range(16):
        for j in range(16):
            c[i * sc + j] += a[i * sa :][:16] @ b[j * sb :][:16]


@pytest.fixture
def registered():
    """A function that registers functions for one test."""
    names = []

    def register(name, function):
        register_func(name, function, override=True)
        names.append(name)

    yield register
    for name in names:
        remove_global_func(name)


def run_tiled(mod, target):
    rng = np.random.default_rng(0)
    a, b = rng.random((32, 48), dtype="float32"), rng.random((16, 48), dtype="float32")
    given = [nd.array(a), nd.array(b), nd.array(np.full((32, 16), np.nan, "float32"))]
    lib = build(mod, target)
    lib["main"](*given)
    np.testing.assert_allclose(given[2].numpy(), a @ b.T, rtol=1e-5)
    return lib


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [in_python, MICRO], ids=["python", "micro-kernel"])
def test_a_registered_function_is_called(target, function, registered):
    registered("test_tmm16", function)
    lib = run_tiled(TILED, target)
    if target == "wasm":
        source = lib["main"].kernel.source
        assert ('(import "python" "0" (func' in source) == (function is in_python)


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_of_the_module_is_called(target):
    run_tiled(IRModule({"main": TILED, "micro": MICRO}), target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_python_function_may_come_later_and_change(target, registered):
    lib = build(TILED, target)
    given = [nd.array(np.ones(shape, "float32")) for shape in ((32, 48), (16, 48), (32, 16))]
    with pytest.raises(ValueError, match='calls "test_tmm16", which is not known') as caught:
        lib["main"](*given)
    assert isinstance(caught.value, TVMError)
    assert 'tvm.register_func("test_tmm16", f)' in str(caught.value)
    assert "micro-kernel" in str(caught.value)
    registered("test_tmm16", in_python)
    lib["main"](*given)
    assert (given[2].numpy() == 48).all()
    registered("test_tmm16", lambda c, *rest: c.fill(7))
    lib["main"](*given)
    assert (given[2].numpy() == 7).all()


VALUES = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int64"), B: T.Buffer((8,), "float64"), C: T.Buffer((8,), "float32"),
         D: T.Buffer((8,), "uint8"), E: T.Buffer((8,), "bool")):
    for i in range(8):
        A[i] = T.call_extern("int64", "test_int64", A[i], "text")
        B[i] = T.call_extern("float64", "test_float64", B[i], T.float32(0.1), True)
        C[i] = T.call_extern("float32", "test_float32", T.uint32(4000000000), T.int8(-3))
        D[i] = T.call_extern("uint8", "test_uint8", i)
        E[i] = T.call_extern("bool", "test_bool", i)
""")


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_keep_their_types(target, registered):
    seen = []

    def float64(x, y, z):
        seen.append((type(y), z))
        return x * y + z

    registered("test_int64", lambda x, text: x * 3 + len(text))
    registered("test_float64", float64)
    registered("test_float32", lambda x, y: x + y + 0.1)
    registered("test_uint8", lambda i: 250 + 2 * i)
    registered("test_bool", lambda i: i % 3)
    types = ("int64", "float64", "float32", "uint8", "bool")
    given = [nd.array(np.zeros(8, dtype)) for dtype in types]
    given[0].copyfrom(np.full(8, 2**40 + 1))
    given[1].copyfrom(np.arange(8.0))
    build(VALUES, target)["main"](*given)
    a, b, c, d, e = (array.numpy() for array in given)
    assert (a == 3 * (2**40 + 1) + 4).all()
    np.testing.assert_allclose(b, np.arange(8) * np.float32(0.1).astype(float) + 1, rtol=1e-6)
    assert (c == np.float32(4000000000 - 3 + 0.1)).all()
    assert d.tolist() == [250, 252, 254, 0, 2, 4, 6, 8]
    assert e.tolist() == [False, True, True, False, True, True, False, True]
    assert seen[0] == (np.float32, True)


@pytest.mark.parametrize("target", TARGETS)
def test_every_call_in_an_expression_happens(target, registered):
    calls = []
    registered("test_next", lambda: calls.append(1) or len(calls))
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tir.noalias": True})
    for i in range(16):
        A[i] = T.call_extern("int32", "test_next")
        B[i] = T.call_extern("int32", "test_next") + A[i]
""")
    a, b = nd.empty((16,), "int32"), nd.empty((16,), "int32")
    build(func, target)["main"](a, b)
    assert a.numpy().tolist() == list(range(1, 33, 2))
    assert b.numpy().tolist() == list(range(3, 67, 4))


LOCAL = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:4])
            T.writes(A[vi, 0:4])
            row = T.alloc_buffer((4,), "float32", scope="local")
            row[0] = A[vi, 0]
            row[1] = A[vi, 1]
            row[2] = A[vi, 2]
            row[3] = A[vi, 3]
            T.evaluate(T.call_extern("test_double", row.data, dtype="int32"))
            A[vi, 0] = row[0]
            A[vi, 1] = row[1]
            A[vi, 2] = row[2]
            A[vi, 3] = row[3]
""")
DOUBLE = from_source("""
@T.prim_func
def test_double(x: T.handle):
    X = T.match_buffer(x, (4,), "float32")
    Y = T.alloc_buffer((4,), "float32")
    for i in range(4):
        Y[i] = X[3 - i] * T.float32(2)
    for i in range(4):
        X[i] = Y[3 - i]
""")


def double(x):
    x *= 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [double, DOUBLE], ids=["python", "micro-kernel"])
def test_a_local_buffer_is_passed_on(target, function, registered):
    """It may not live in registers, and the callee needs scratch memory besides."""
    registered("test_double", function)
    values = np.arange(16, dtype="float32").reshape(4, 4)
    a = nd.array(values)
    build(LOCAL, target)["main"](a)
    np.testing.assert_array_equal(a.numpy(), 2 * values)


@pytest.mark.parametrize("target", TARGETS)
def test_pointers_that_overlap_stay_one_memory(target, registered):
    registered("test_shift", lambda x, y: x.__setitem__(slice(None), y[: len(x)] + 1))
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    T.evaluate(T.call_extern("test_shift", A.access_ptr("rw", offset=2, extent=3),
                             A.access_ptr("rw"), dtype="int32"))
""")
    a = nd.array(np.arange(8, dtype="int32"))
    build(func, target)["main"](a)
    assert a.numpy().tolist() == [0, 1, 1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize("target", TARGETS)
def test_an_exception_comes_through_the_kernel(target, registered):
    def fail(*arguments):
        raise KeyError("the reason")

    registered("test_tmm16", fail)
    lib = build(TILED, target)
    given = [nd.array(np.ones(shape, "float32")) for shape in ((32, 48), (16, 48), (32, 16))]
    for _ in range(2):
        with pytest.raises(KeyError, match="the reason"):
            lib["main"](*given)
    registered("test_tmm16", in_python)
    lib["main"](*given)
    assert (given[2].numpy() == 48).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_python_function_may_run_kernels_and_make_arrays(target, registered):
    lib = build(LOCAL, target)
    big = []

    def nested(x):
        big.append(nd.empty((1 << 20,), "float32"))
        if len(big) == 1:
            a = nd.array(np.ones((4, 4), "float32"))
            lib["main"](a)
            assert (a.numpy() == 2).all()
        x *= 2

    registered("test_double", nested)
    a = nd.array(np.ones((4, 4), "float32"))
    lib["main"](a)
    assert (a.numpy() == 2).all()
    assert len(big) == 8


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x: T.handle, n: T.int32):\n    X = T.match_buffer(x, (4,), 'float32')", "2 argument"),
        ("(x: T.handle):\n    X = T.match_buffer(x, (4,), 'int32')", 'pointer to int32 for "X"'),
        (
            "(x: T.handle):\n    n = T.int32()\n    X = T.match_buffer(x, (n,), 'float32')",
            'has to take "n", a size of "X", as a parameter',
        ),
    ],
)
def test_calls_that_do_not_fit(target, text, message, registered):
    registered("test_double", from_source(f"@T.prim_func\ndef f{text}\n    X[0] = X[0]\n"))
    with pytest.raises(ExternalCallError, match=message):
        build(LOCAL, target)["main"](nd.array(np.ones((4, 4), "float32")))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_assumed_is_not_computed(target):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("assumptions"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi])
            T.writes()
            T.evaluate(T.assume(vi < 3 or A[vi * 1000] == T.float32(0)))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
""")
    a, b = nd.array(np.arange(4, dtype="float32")), nd.empty((4,))
    lib = build(func, target, config={"mlcweb.bounds_check": True})
    lib["main"](a, b)
    assert b.numpy().tolist() == [1, 2, 3, 4]
    kinds = {"wasm": "WasmKernel", "llvm -mcpu=host": "LlvmKernel"}
    assert type(lib["main"].kernel).__name__ == kinds.get(target, "Kernel")


@pytest.mark.skipif("wasm" not in TARGETS, reason="no WebAssembly engine")
def test_a_module_that_calls_python_goes_with_its_last_user(registered):
    registered("test_double", double)
    gc.collect()
    gc.disable()
    try:
        lib = build(LOCAL, "wasm")
        lib["main"](nd.array(np.ones((4, 4), "float32")))
        store = weakref.ref(lib["main"].kernel.variant(()).instance.store)
        del lib
        assert store() is None
    finally:
        gc.enable()
