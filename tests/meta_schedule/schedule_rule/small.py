"""Small programs for rules, and what they compute on each target."""

import re
from dataclasses import replace
from functools import lru_cache

import mlcweb as tvm
from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule.space_generator import cases

TARGETS = ("numpy", "wasm")

SUM = """
@T.prim_func
def main(A: T.Buffer((3, 5, 16), "float32"), B: T.Buffer((), "float32")):
    for n, i, j in T.grid(3, 5, 16):
        with T.block("B"):
            vn, vi, vj = T.axis.remap("RRR", [n, i, j])
            with T.init():
                B[()] = T.float32(0)
            B[()] = B[()] + A[vn, vi, vj]
"""
COLUMNS = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((24,), "float32")):
    for j, i in T.grid(24, 6):
        with T.block("B"):
            vj, vi = T.axis.remap("SR", [j, i])
            with T.init():
                B[vj] = T.float32(0)
            B[vj] = B[vj] + A[vi, vj]
"""
LAYER_NORM = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6, 24), "float32")):
    total = T.alloc_buffer((6,))
    squares = T.alloc_buffer((6,))
    mean = T.alloc_buffer((6,))
    factor = T.alloc_buffer((6,))
    for i, k in T.grid(6, 24):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vk]
    for i in range(6):
        with T.block("mean"):
            vi = T.axis.spatial(6, i)
            mean[vi] = total[vi] / T.float32(24)
    for i, k in T.grid(6, 24):
        with T.block("squares"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                squares[vi] = T.float32(0)
            squares[vi] = squares[vi] + (A[vi, vk] - mean[vi]) * (A[vi, vk] - mean[vi])
    for i in range(6):
        with T.block("factor"):
            vi = T.axis.spatial(6, i)
            factor[vi] = T.float32(1) / T.sqrt(squares[vi] / T.float32(24) + T.float32(1e-5))
    for i, j in T.grid(6, 24):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi, vj] - mean[vi]) * factor[vi]
"""
SCALED_ROWS = LAYER_NORM.replace(
    "B: T.Buffer", 'G: T.Buffer((24,), "float32"), B: T.Buffer'
).replace("* factor[vi]", "* factor[vi] * G[vj]")
SUMS_IN_PRODUCT = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
         C: T.Buffer((16, 16), "float32")):
    S = T.alloc_buffer((16,))
    for i, k in T.grid(16, 16):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * S[vi] * B[vk, vj]
"""
"""A product one of whose factors is scaled by the sums of its rows."""
CHAIN = """
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6, 10), "float32")):
    B = T.alloc_buffer((6, 10))
    half = T.alloc_buffer(())
    with T.block("half"):
        half[()] = T.float32(0.5)
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * half[()]
    for i, j in T.grid(6, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def _smaller(name, **sizes):
    """One of the programs that TVM was asked about, with other numbers in it."""
    text = cases.PROGRAMS[name]
    for old, new in sizes.items():
        text = re.sub(rf"\b{old[1:]}\b", str(new), text)
    return text


PROGRAMS = {
    "matmul": _smaller("matmul", _128=16),
    "matmul_relu": _smaller("bmm_relu", _16=3, _128=8),
    "linear": _smaller("linear0", _128=10, _784=24),
    "conv": _smaller("conv2d", _32=8, _30=6, _16=8),
    "conv_relu_free": (
        _smaller("conv2d", _32=8, _30=6, _16=8)
        .replace('"tir.noalias"', '"layout_free_buffers": [1], "tir.noalias"')
        .replace("    for n, f", '    S = T.alloc_buffer((1, 8, 6, 6), "float32")\n    for n, f')
        .replace("B[", "S[")
        + """
    for n, f, y, x in T.grid(1, 8, 6, 6):
        with T.block("R"):
            vn, vf, vy, vx = T.axis.remap("SSSS", [n, f, y, x])
            B[vn, vf, vy, vx] = T.max(S[vn, vf, vy, vx], T.float32(0.5))
"""
    ),
    "softmax": _smaller("softmax", _128=6, _1000=20),
    "layer_norm": LAYER_NORM,
    "scaled_rows": SCALED_ROWS,
    "sum": SUM,
    "columns": COLUMNS,
    "chain": CHAIN,
}


@lru_cache
def module(name):
    """The module of a program, whose only function is "main"."""
    return IRModule({"main": from_source(PROGRAMS[name]).with_attr("global_symbol", "main")})


def computed(mod, workload, target):
    arguments = [tvm.nd.array(array) for array in workload.inputs]
    tvm.build(mod, target=target)["main"](*arguments)
    return tuple(argument.numpy() for argument in arguments)


@lru_cache
def expected(name):
    """Random inputs of a program, and what the interpreter makes of them."""
    workload = random_inputs(module(name), "main")
    return replace(workload, expected=computed(module(name), workload, "interpreter"))


def check(name, mod, targets=TARGETS):
    """Compare what a scheduled program computes with the interpreter's numbers."""
    for target in targets:
        expected(name).check(computed(mod, expected(name), target))


def spaces(name, *rules):
    """The design spaces that rules make of a program for WebAssembly."""
    made = PostOrderApply(sch_rules=list(rules), postprocs=[], mutator_probs={})
    TuneContext(module(name), target="wasm", space_generator=made, rand_state=1)
    return made.generate_design_space(module(name))


def drawn(name, space, seed):
    """A schedule of a design space with decisions of its own."""
    sch = Schedule(module(name), seed=seed)
    space.trace.apply_to_schedule(sch, decision_provider=lambda *_: None)
    return sch


def steps(sch):
    """The methods that a schedule called, in order."""
    return [inst.kind.method for inst in sch.trace.insts]
