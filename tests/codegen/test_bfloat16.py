"""bfloat16 on every target: each operation is rounded to the nearest even bfloat16."""

from collections.abc import Callable

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb import relax
from mlcweb.runtime.params import load_param_dict, save_param_dict
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc, Schedule

TARGETS = ("interpreter", "numpy", "wasm", "llvm", "wasm -bounds_check=1")
SIZE = 4096


def nearest(values: np.ndarray) -> np.ndarray:
    """Numbers of bfloat16 as float32."""
    bits = values.astype("float32").view("uint32")
    kept = (bits + (((bits >> 16) & 1) + 0x7FFF)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), values, kept.view("float32"))


def numbers(seed: int) -> np.ndarray:
    """Any bits: zeros, subnormal numbers, infinities and NaNs among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, SIZE).astype("uint32") << 16
    return bits.view("float32")


def array(values: np.ndarray) -> tvm.nd.NDArray:
    return tvm.nd.empty(values.shape, "bfloat16").copyfrom(values)


def test_arrays_round_and_widen() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -0.0, 3e38, 3.4e38, np.nan, 1e-40], "float32")
    kept = array(values)
    assert (kept.dtype, kept.nbytes, kept.numpy().dtype) == ("bfloat16", 16, np.float32)
    np.testing.assert_array_equal(kept.numpy(), nearest(values))
    assert kept.numpy()[1] == 1.0  # half way: to the even one
    assert kept.numpy()[5] == np.inf
    everything = (np.arange(1 << 16, dtype="uint32") << 16).view("float32")
    np.testing.assert_array_equal(array(everything).numpy(), everything)
    kept[2:4] = [0.1, 0.2]
    np.testing.assert_array_equal(kept.numpy()[2:4], nearest(np.float32([0.1, 0.2])))
    other = tvm.nd.empty((8,), "bfloat16")
    kept.copyto(other)
    np.testing.assert_array_equal(other.numpy(), kept.numpy())
    saved = load_param_dict(save_param_dict({"w": kept}))["w"]
    assert saved.dtype == "bfloat16"
    np.testing.assert_array_equal(saved.numpy(), kept.numpy())
    with pytest.raises(tvm.TVMError, match="has no bfloat16"):
        np.from_dlpack(kept)


def test_arrays_of_ml_dtypes_keep_their_type() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.linspace(-3, 3, 100).astype(ml_dtypes.bfloat16)
    kept = tvm.nd.array(values)
    assert kept.dtype == "bfloat16"
    np.testing.assert_array_equal(kept.numpy(), values.astype("float32"))


@T.prim_func
def operations(
    A: T.Buffer((SIZE,), "bfloat16"), B: T.Buffer((SIZE,), "bfloat16"),
    C: T.Buffer((8, SIZE), "bfloat16"), I: T.Buffer((SIZE,), "int32"), K: T.Buffer((SIZE,), "bool"),
):  # fmt: skip
    for i in range(SIZE):
        with T.block("all"):
            v = T.axis.spatial(SIZE, i)
            C[0, v] = A[v] + B[v]
            C[1, v] = A[v] * B[v] - A[v]
            C[2, v] = A[v] / B[v]
            C[3, v] = T.sqrt(T.fabs(A[v]))
            C[4, v] = T.if_then_else(A[v] < B[v], A[v], T.bfloat16(0.1) * B[v])
            C[5, v] = T.Cast("bfloat16", I[v])
            C[6, v] = T.max(A[v], T.min(B[v], T.bfloat16(1)))
            C[7, v] = T.Cast("bfloat16", T.Cast("float32", A[v]) * T.Cast("float32", B[v]) + 1.0)
            K[v] = A[v] * B[v] == B[v]


@pytest.mark.parametrize("target", TARGETS)
def test_each_operation_is_rounded(target: str) -> None:
    a, b = numbers(2), numbers(3)
    i = np.random.default_rng(4).integers(-(1 << 31), 1 << 31, SIZE).astype("int32")
    c, k = tvm.nd.empty((8, SIZE), "bfloat16"), tvm.nd.empty((SIZE,), "bool")
    tvm.build(operations, target=target)["operations"](array(a), array(b), c, tvm.nd.array(i), k)
    with np.errstate(all="ignore"):
        tenth = nearest(np.float32([0.1]))
        wanted = [
            nearest(a + b),
            nearest(nearest(a * b) - a),
            nearest(a / b),
            nearest(np.sqrt(np.abs(a))),
            np.where(a < b, a, nearest(tenth * b)),
            nearest(i.astype("float32")),
            np.maximum(a, np.minimum(b, np.float32(1))),
            nearest(a * b + np.float32(1)),
        ]
        for row, expected in zip(c.numpy(), wanted, strict=True):
            np.testing.assert_array_equal(row, expected)
        np.testing.assert_array_equal(k.numpy(), nearest(a * b) == b)


@T.prim_func
def product(
    A: T.Buffer((32, 48), "bfloat16"), B: T.Buffer((48, 32), "bfloat16"),
    C: T.Buffer((32, 32), "bfloat16"),
):  # fmt: skip
    scaled = T.alloc_buffer((32, 48), "bfloat16")
    for i, j in T.grid(32, 48):
        with T.block("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            scaled[vi, vj] = A[vi, vj] * T.bfloat16(1.1)
    for i, j, k in T.grid(32, 32, 48):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.bfloat16(0)
            C[vi, vj] = C[vi, vj] + scaled[vi, vk] * B[vk, vj]


def scheduled() -> PrimFunc:
    """The product with its sums in a cache, its factor inlined, and its loops as vectors."""
    sch = Schedule(product)
    sch.compute_inline("scaled")
    cached = sch.cache_write("C", 0, "local")
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(j, [None, 8])
    sch.reorder(i, outer, k, inner)
    sch.reverse_compute_at(cached, outer)
    sch.vectorize(inner)
    sch.decompose_reduction("C", k)
    return sch.mod["main"]


@pytest.mark.parametrize("make", [lambda: product, scheduled])
@pytest.mark.parametrize("target", TARGETS)
def test_schedules_change_no_digit(target: str, make: Callable[[], PrimFunc]) -> None:
    random = np.random.default_rng(5)
    a, b = (nearest(random.standard_normal(shape)) for shape in ((32, 48), (48, 32)))
    factor, total = nearest(np.float32([1.1])), np.zeros((32, 32), "float32")
    left = nearest(a * factor)
    for k in range(48):
        total = nearest(total + nearest(left[:, k : k + 1] * b[k]))
    c = tvm.nd.empty((32, 32), "bfloat16")
    tvm.build(make(), target=target, name="main")["main"](array(a), array(b), c)
    np.testing.assert_array_equal(c.numpy(), total)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_views_and_symbolic_shapes(target: str) -> None:
    @T.prim_func
    def main(a: T.handle, factor: T.bfloat16, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "bfloat16")
        C = T.match_buffer(c, (n, 4), "bfloat16")
        for i in range(n):
            with T.block("row"):
                v = T.axis.spatial(n, i)
                row = T.match_buffer(A[v, 0:4], (4,), "bfloat16", offset_factor=1)
                for j in T.vectorized(4):
                    C[v, j] = row[j] * factor

    values = nearest(np.random.default_rng(6).standard_normal((5, 4)))
    c = tvm.nd.empty((5, 4), "bfloat16")
    tvm.build(main, target=target)["main"](array(values), 0.3, c)
    np.testing.assert_array_equal(c.numpy(), nearest(values * nearest(np.float32([0.3]))))


def test_threads_of_a_simulated_gpu() -> None:
    sch = Schedule(product)
    for block in ("scaled", "C"):
        i, *_ = sch.get_loops(block)
        sch.bind(i, "threadIdx.x")
    a, b = (nearest(np.random.default_rng(7).standard_normal(s)) for s in ((32, 48), (48, 32)))
    c, wanted = tvm.nd.empty((32, 32), "bfloat16"), tvm.nd.empty((32, 32), "bfloat16")
    tvm.build(sch.mod, target="simulated")["main"](array(a), array(b), c)
    tvm.build(product, target="interpreter", name="main")["main"](array(a), array(b), wanted)
    np.testing.assert_array_equal(c.numpy(), wanted.numpy())


def test_graphs_and_their_constants() -> None:
    @tvm.script.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "bfloat16"), w: R.Tensor((8, 4), "bfloat16")):
            with R.dataflow():
                y = R.add(R.matmul(x, w), R.const(1.1, "bfloat16"))
                R.output(y)
            return y

    x, w = (nearest(np.random.default_rng(8).standard_normal(shape)) for shape in ((4, 8), (8, 4)))
    sums = np.zeros((4, 4), "float32")
    for k in range(8):
        sums = nearest(sums + nearest(x[:, k : k + 1] * w[k]))
    for target in ("llvm", "wasm", "interpreter"):
        machine = relax.VirtualMachine(relax.build(Module, target=target), tvm.cpu())
        result = machine["main"](array(x), array(w))
        np.testing.assert_array_equal(result.numpy(), nearest(sums + nearest(np.float32([1.1]))))


@pytest.mark.parametrize("target", ["llvm -num-cores 1", "wasm"])
def test_programs_are_tuned(target: str) -> None:
    database = ms.tune_tir(product, target, None, max_trials_global=2, num_trials_per_iter=2)
    records = database.get_all_tuning_records()
    assert records
    assert all(record.is_valid for record in records)
