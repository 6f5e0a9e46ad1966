"""The course's network of two layers on one image: linear 784 to 128, relu, linear 128 to 10. As
one function, and as a model of three that a virtual machine runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.kernels.workload import Array, Workload, program, scheduled, uniform
from mlcweb.ir import IRModule
from mlcweb.script import from_source
from mlcweb.tir import Schedule

MLP = """
@T.prim_func
def main(X: T.Buffer((1, 784), "float32"), W0: T.Buffer((128, 784), "float32"),
         B0: T.Buffer((128,), "float32"), W1: T.Buffer((10, 128), "float32"),
         B1: T.Buffer((10,), "float32"), Z: T.Buffer((1, 10), "float32")):
    T.func_attr({"tir.noalias": True})
    Y0 = T.alloc_buffer((1, 128))
    H = T.alloc_buffer((1, 128))
    Y1 = T.alloc_buffer((1, 10))
    for i, j, k in T.grid(1, 128, 784):
        with T.block("Y0"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y0[vi, vj] = T.float32(0)
            Y0[vi, vj] = Y0[vi, vj] + X[vi, vk] * W0[vj, vk]
    for i, j in T.grid(1, 128):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = T.max(Y0[vi, vj] + B0[vj], T.float32(0))
    for i, j, k in T.grid(1, 10, 128):
        with T.block("Y1"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y1[vi, vj] = T.float32(0)
            Y1[vi, vj] = Y1[vi, vj] + H[vi, vk] * W1[vj, vk]
    for i, j in T.grid(1, 10):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Y1[vi, vj] + B1[vj]
"""


MODEL = """
@I.ir_module
class Model:
    @T.prim_func
    def linear0(X: T.Buffer((1, 784), "float32"), W: T.Buffer((128, 784), "float32"),
                B: T.Buffer((128,), "float32"), Z: T.Buffer((1, 128), "float32")):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((1, 128))
        for i, j, k in T.grid(1, 128, 784):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 128):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @T.prim_func
    def relu0(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(1, 128):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear1(X: T.Buffer((1, 128), "float32"), W: T.Buffer((10, 128), "float32"),
                B: T.Buffer((10,), "float32"), Z: T.Buffer((1, 10), "float32")):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((1, 10))
        for i, j, k in T.grid(1, 10, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 10):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, 784), "float32"), w0: R.Tensor((128, 784), "float32"),
             b0: R.Tensor((128,), "float32"), w1: R.Tensor((10, 128), "float32"),
             b1: R.Tensor((10,), "float32")):
        cls = Model
        with R.dataflow():
            lv0 = R.call_tir(cls.linear0, (x, w0, b0), R.Tensor((1, 128), "float32"))
            lv1 = R.call_tir(cls.relu0, (lv0,), R.Tensor((1, 128), "float32"))
            out = R.call_tir(cls.linear1, (lv1, w1, b1), R.Tensor((1, 10), "float32"))
            R.output(out)
        return out
"""


def sum_in_lanes(
    sch: Schedule, name: str, outputs: int, lanes: int, func_name: str | None = None
) -> None:
    """Each of `outputs` neighbouring sums is made in `lanes` partial sums side by side, which are
    added at the end."""
    block = sch.get_block(name, func_name=func_name)
    _, j, k = sch.get_loops(block)
    j_outer, _ = sch.split(j, [None, outputs])
    _, k_inner = sch.split(k, [None, lanes])
    parts = sch.rfactor(k_inner, factor_axis=2)
    sch.set_scope(parts, 0, "local")
    sch.compute_at(parts, j_outer)
    loops = sch.get_loops(parts)
    lane, *_, output, steps = loops[2:]
    sch.reorder(steps, output, lane)
    sch.unroll(output)
    sch.vectorize(lane)
    sch.decompose_reduction(parts, steps)


def schedule(sch: Schedule) -> None:
    """Both layers sum in lanes, since a row of the weights is a row of what is summed."""
    sum_in_lanes(sch, "Y0", outputs=4, lanes=8)
    sum_in_lanes(sch, "Y1", outputs=2, lanes=8)


def model() -> IRModule:
    """The network as a graph function that calls its layers."""
    mod: Any = from_source(MODEL)
    return mod


def scheduled_model() -> IRModule:
    """The same with its layers scheduled as the single function is."""
    sch = Schedule(model())
    sum_in_lanes(sch, "Y", 4, 8, func_name="linear0")
    sum_in_lanes(sch, "Y", 2, 8, func_name="linear1")
    return sch.mod


def linear0(of: Callable[[], IRModule]) -> IRModule:
    """The first layer of the model alone."""
    return IRModule({"main": of()["linear0"].with_attr("global_symbol", "main")})


def reference(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


WORKLOADS = (
    Workload(
        name="mlp",
        operator="mlp",
        inputs=uniform((1, 784), (128, 784), (128,), (10, 128), (10,)),
        reference=reference,
        programs={
            "untransformed": partial(program, MLP),
            "best": partial(scheduled, MLP, schedule),
        },
        flops=2 * (784 * 128 + 128 * 10),
    ),
    Workload(
        name="mlp_model",
        operator=None,
        inputs=uniform((1, 784), (128, 784), (128,), (10, 128), (10,)),
        reference=reference,
        programs={"untransformed": model, "best": scheduled_model},
        flops=2 * (784 * 128 + 128 * 10),
        model=True,
    ),
    Workload(
        name="linear0",
        operator=None,
        inputs=uniform((1, 784), (128, 784), (128,)),
        reference=lambda x, w, b: x @ w.T + b,
        programs={
            "untransformed": partial(linear0, model),
            "best": partial(linear0, scheduled_model),
        },
        flops=2 * 784 * 128,
    ),
)
