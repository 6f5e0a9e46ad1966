"""A model of a hundred tiny calls one after the other: what a call by the virtual machine costs."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.workload import Array, Workload, program, uniform
from mlcweb import relax
from mlcweb.ir import IRModule

LENGTH, SIZE = 100, 16

ADD_ONE = """
@T.prim_func
def main(X: T.Buffer((16,), "float32"), Y: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in T.vectorized(16):
        with T.block("Y"):
            vi = T.axis.spatial(16, i)
            Y[vi] = X[vi] + T.float32(1)
"""


def chain() -> IRModule:
    """One function, called `LENGTH` times, each on the result of the one before."""
    add_one = program(ADD_ONE)["main"].with_attr("global_symbol", "add_one")
    bb = relax.BlockBuilder(IRModule({"add_one": add_one}))
    kernel = bb.get().get_global_var("add_one")
    info = relax.TensorStructInfo((SIZE,), "float32")
    x = relax.Var("x", info)
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for _ in range(LENGTH - 1):
                value = bb.emit(relax.call_tir(kernel, (value,), info))
            result = bb.emit_output(relax.call_tir(kernel, (value,), info))
        bb.emit_func_output(result)
    return bb.get()


def reference(x: Array) -> Array:
    for _ in range(LENGTH):
        x = x + np.float32(1)
    return x


WORKLOADS = (
    Workload(
        name="chain100",
        operator=None,
        inputs=uniform((SIZE,)),
        reference=reference,
        programs={"best": chain},
        model=True,
    ),
)
