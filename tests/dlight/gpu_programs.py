"""Functions for the rules of devices with threads, with sizes that divide nothing where they can,
and the rules that know them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlcweb import te, topi
from mlcweb.ir import IRModule
from mlcweb.script import from_source
from mlcweb.tir.function import PrimFunc

OPERATORS = Path(__file__).parents[1] / "meta_schedule/space_generator/tvm_operators.json"


def _inputs(*shapes: Any, dtype: str = "float32") -> list[Any]:
    return [te.placeholder(shape, dtype, f"x{n}") for n, shape in enumerate(shapes)]


def _func(build: Callable[..., Any], *shapes: Any, dtype: str = "float32") -> PrimFunc:
    inputs = _inputs(*shapes, dtype=dtype)
    return te.create_prim_func([*inputs, build(*inputs)])


def _matvec(x: Any, w: Any) -> Any:
    k = te.reduce_axis((0, w.shape[1]), "k")
    return te.compute((w.shape[0],), lambda i: te.sum(w[i, k] * x[k], axis=k), "y")


def _batch_matvec(x: Any, w: Any) -> Any:
    k = te.reduce_axis((0, w.shape[2]), "k")
    return te.compute(w.shape[:2], lambda b, i: te.sum(x[b, k] * w[b, i, k], axis=k), "y")


def _packed(x: Any, w: Any) -> Any:
    """A product with numbers of four bits, eight of them in each of the matrix."""
    k = te.reduce_axis((0, x.shape[0]), "k")

    def unpacked(i: Any, j: Any) -> Any:
        bits = (w[i, j // 8] >> (j % 8 * 4).astype("uint32")) & te.const(15, "uint32")
        return bits.astype("float32") - 7.0

    numbers = te.compute((w.shape[0], x.shape[0]), unpacked, "numbers")
    return te.compute((w.shape[0],), lambda i: te.sum(x[k] * numbers[i, k], axis=k), "y")


def _packed_func() -> PrimFunc:
    x, w = te.placeholder((256,), "float32", "x"), te.placeholder((48, 32), "uint32", "w")
    return te.create_prim_func([x, w, _packed(x, w)])


def _half_matmul() -> PrimFunc:
    return _func(topi.matmul, (128, 96), (96, 128), dtype="float16")


HALF_RMS_NORM = """
@T.prim_func
def main(A: T.Buffer((1, 3, 4096), "float16"), G: T.Buffer((4096,), "float16"),
         B: T.Buffer((1, 3, 4096), "float16")):
    wide = T.alloc_buffer((1, 3, 4096))
    square = T.alloc_buffer((1, 3, 4096))
    total = T.alloc_buffer((1, 3))
    factor = T.alloc_buffer((1, 3))
    product = T.alloc_buffer((1, 3, 4096))
    for b, i, k in T.grid(1, 3, 4096):
        with T.block("wide"):
            vb, vi, vk = T.axis.remap("SSS", [b, i, k])
            wide[vb, vi, vk] = T.Cast("float32", A[vb, vi, vk])
    for b, i, k in T.grid(1, 3, 4096):
        with T.block("square"):
            vb, vi, vk = T.axis.remap("SSS", [b, i, k])
            square[vb, vi, vk] = wide[vb, vi, vk] * wide[vb, vi, vk]
    for b, i, k in T.grid(1, 3, 4096):
        with T.block("total"):
            vb, vi, vk = T.axis.remap("SSR", [b, i, k])
            with T.init():
                total[vb, vi] = T.float32(0)
            total[vb, vi] = total[vb, vi] + square[vb, vi, vk]
    for b, i in T.grid(1, 3):
        with T.block("factor"):
            vb, vi = T.axis.remap("SS", [b, i])
            factor[vb, vi] = T.rsqrt(total[vb, vi] / T.float32(4096) + T.float32(1e-5))
    for b, i, k in T.grid(1, 3, 4096):
        with T.block("product"):
            vb, vi, vk = T.axis.remap("SSS", [b, i, k])
            product[vb, vi, vk] = factor[vb, vi] * wide[vb, vi, vk] * T.Cast("float32", G[vk])
    for b, i, k in T.grid(1, 3, 4096):
        with T.block("B"):
            vb, vi, vk = T.axis.remap("SSS", [b, i, k])
            B[vb, vi, vk] = T.Cast("float16", product[vb, vi, vk])
"""


def _n() -> Any:
    return te.var("n")


def prim_func(text: str) -> PrimFunc:
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    return func


PROGRAMS: dict[str, Callable[[], PrimFunc]] = {
    "relu_of_sum": lambda: _func(lambda a, b: topi.nn.relu(topi.add(a, b)), (7, 33), (33,)),
    "elementwise_symbolic": lambda: _func(lambda a: topi.exp(topi.add(a, a)), (_n(), 33)),
    "row_sum": lambda: _func(lambda a: topi.sum(a, 1), (7, 100)),
    "row_sum_symbolic": lambda: _func(lambda a: topi.sum(a, 1), (7, _n())),
    "row_mean": lambda: _func(lambda a: topi.divide(topi.sum(topi.exp(a), 1), 3.0), (7, 1100)),
    "row_scaled": lambda: _func(lambda a: topi.divide(a, topi.sum(a, 1, keepdims=True)), (7, 100)),
    "sum_all": lambda: _func(topi.sum, (5, 3, 7)),
    "sum_of_middle": lambda: _func(lambda a: topi.sum(a, 1), (5, 30, 7)),
    "column_sum": lambda: _func(lambda a: topi.sum(a, 0), (100, 48)),
    "column_sum_uneven": lambda: _func(lambda a: topi.sum(a, 0), (33, 35)),
    "column_mean": lambda: _func(lambda a: topi.divide(topi.sum(a, 0), 3.0), (100, 48)),
    "column_scaled": lambda: _func(
        lambda a: topi.divide(a, topi.sum(a, 0, keepdims=True)), (20, 32)
    ),
    "row_max": lambda: _func(lambda a: topi.max(a, 1), (7, 100)),
    "argmax": lambda: _func(lambda a: topi.argmax(a, 1), (7, 100)),
    "softmax": lambda: _func(lambda a: topi.nn.softmax(a, -1), (7, 100)),
    "softmax_symbolic": lambda: _func(lambda a: topi.nn.softmax(a, -1), (2, _n(), _n())),
    "softmax_columns": lambda: _func(lambda a: topi.nn.softmax(a, 0), (20, 9)),
    "layer_norm": lambda: _func(
        lambda a, g, b: topi.nn.layer_norm(a, g, b, [1]), (7, 100), (100,), (100,)
    ),
    "rms_norm": lambda: _func(lambda a, g: topi.nn.rms_norm(a, g, [1]), (3, 4096), (4096,)),
    "rms_norm_half": lambda: prim_func(HALF_RMS_NORM),
    "transpose": lambda: _func(lambda a: topi.transpose(a), (33, 70)),
    "transpose_of_sum": lambda: _func(
        lambda a, b: topi.transpose(topi.add(a, b)), (33, 70), (33, 70)
    ),
    "transpose_relu": lambda: _func(lambda a: topi.nn.relu(topi.transpose(a)), (32, 64)),
    "matvec": lambda: _func(_matvec, (256,), (80, 256)),
    "matvec_uneven": lambda: _func(_matvec, (100,), (37, 100)),
    "matvec_relu": lambda: _func(lambda x, w: topi.nn.relu(_matvec(x, w)), (512,), (64, 512)),
    "matvec_scaled": lambda: _func(
        lambda x, w: topi.divide(w, topi.reshape(_matvec(x, w), (16, 1))), (64,), (16, 64)
    ),
    "matvec_batch": lambda: _func(_batch_matvec, (3, 128), (3, 48, 128)),
    "matvec_packed": _packed_func,
    "matvec_matmul": lambda: _func(topi.matmul, (1, 256), (256, 80)),
    "matvec_dense": lambda: _func(lambda a, b: topi.nn.dense(a, b), (1, 256), (80, 256)),
    "matmul": lambda: _func(topi.matmul, (70, 33), (33, 50)),
    "batch_matmul_symbolic": lambda: _func(
        lambda a, b: topi.nn.relu(topi.matmul(a, b)), (3, _n(), 16), (3, 16, te.var("m"))
    ),
    "matmul_relu": lambda: _func(
        lambda a, b: topi.nn.relu(topi.matmul(a, b)), (128, 64), (64, 128)
    ),
    "matmul_symbolic": lambda: _func(topi.matmul, (_n(), 64), (64, 96)),
    "matmul_of_sum": lambda: _func(
        lambda a, b, c: topi.matmul(topi.add(a, b), c), (70, 33), (70, 33), (33, 50)
    ),
    "matmul_transposed": lambda: _func(
        lambda a, b: topi.matmul(a, b, False, True), (70, 33), (50, 33)
    ),
    "batch_matmul": lambda: _func(
        lambda a, b: topi.nn.batch_matmul(a, b), (3, 40, 33), (3, 50, 33)
    ),
    "matmul_half": _half_matmul,
    "dense_few_rows": lambda: _func(lambda a, b: topi.nn.dense(a, b), (_n(), 256), (80, 256)),
    "conv2d": lambda: _func(
        lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1), (1, 3, 9, 9), (5, 3, 3, 3)
    ),
    "pool": lambda: _func(
        lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), (1, 3, 8, 8)
    ),
}


def program(name: str) -> IRModule:
    """The module of a program, whose only function is "main"."""
    return IRModule({"main": PROGRAMS[name]().with_attr("global_symbol", "main")})


def operators() -> dict[str, IRModule]:
    """The operators that a real TVM lowered and fused."""
    stored = json.loads(OPERATORS.read_text())
    modules = {name: from_source(one["module"]) for name, one in stored.items()}
    return {name: module for name, module in modules.items() if isinstance(module, IRModule)}
