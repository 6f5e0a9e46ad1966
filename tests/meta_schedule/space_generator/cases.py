"""Programs whose design spaces are compared with TVM's, and the answers that TVM gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.script import from_source

ANSWERS = Path(__file__).parent / "tvm_spaces.json"

_HEAD = """
@T.prim_func
def main({}):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})
"""


def matmul(n: int) -> str:
    """A product of square matrices."""
    buffers = ", ".join(f'{name}: T.Buffer(({n}, {n}), "float32")' for name in "ABC")
    return f"""{_HEAD.format(buffers)}
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


_LINEAR0 = (
    _HEAD.format(
        'X: T.Buffer((1, 784), "float32"), W: T.Buffer((128, 784), "float32"), '
        'B: T.Buffer((128,), "float32"), Z: T.Buffer((1, 128), "float32")'
    )
    + """
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
"""
)


def bmm_relu(batches: int, n: int) -> str:
    """Products of square matrices, and what is positive in them."""
    shape = f"{batches}, {n}, {n}"
    buffers = ", ".join(f'{name}: T.Buffer(({shape}), "float32")' for name in "ABC")
    return f"""{_HEAD.format(buffers)}
    Y = T.alloc_buffer(({shape}))
    for n, i, j, k in T.grid({shape}, {n}):
        with T.block("Y"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                Y[vn, vi, vj] = T.float32(0)
            Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
    for n, i, j in T.grid({shape}):
        with T.block("C"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))
"""


def conv2d(channels: int, filters: int, size: int) -> str:
    """A convolution with windows of 3 by 3, whose result is of a size."""
    image, result = f"1, {channels}, {size + 2}, {size + 2}", f"1, {filters}, {size}, {size}"
    shapes = {"A": image, "W": f"{filters}, {channels}, 3, 3", "B": result}
    buffers = ", ".join(f'{name}: T.Buffer(({shapes[name]}), "float32")' for name in shapes)
    return f"""{_HEAD.format(buffers)}
    for n, f, y, x, c, p, q in T.grid({result}, {channels}, 3, 3):
        with T.block("B"):
            vn, vf, vy, vx, vc, vp, vq = T.axis.remap("SSSSRRR", [n, f, y, x, c, p, q])
            with T.init():
                B[vn, vf, vy, vx] = T.float32(0)
            B[vn, vf, vy, vx] = (
                B[vn, vf, vy, vx] + A[vn, vc, vy + vp, vx + vq] * W[vf, vc, vp, vq])
"""


_CONV_PAD_BIAS_RELU = (
    _HEAD.format(
        'A: T.Buffer((1, 8, 14, 14), "float32"), W: T.Buffer((16, 8, 3, 3), "float32"), '
        'bias: T.Buffer((16,), "float32"), R: T.Buffer((1, 16, 14, 14), "float32")'
    )
    + """
    P = T.alloc_buffer((1, 8, 16, 16))
    B = T.alloc_buffer((1, 16, 14, 14))
    S = T.alloc_buffer((1, 16, 14, 14))
    zero = T.alloc_buffer(())
    for n, c, y, x in T.grid(1, 8, 16, 16):
        with T.block("P"):
            vn, vc, vy, vx = T.axis.remap("SSSS", [n, c, y, x])
            P[vn, vc, vy, vx] = T.if_then_else(
                1 <= vy and vy < 15 and 1 <= vx and vx < 15, A[vn, vc, vy - 1, vx - 1],
                T.float32(0))
    for n, f, y, x, c, p, q in T.grid(1, 16, 14, 14, 8, 3, 3):
        with T.block("B"):
            vn, vf, vy, vx, vc, vp, vq = T.axis.remap("SSSSRRR", [n, f, y, x, c, p, q])
            with T.init():
                B[vn, vf, vy, vx] = T.float32(0)
            B[vn, vf, vy, vx] = (
                B[vn, vf, vy, vx] + P[vn, vc, vy + vp, vx + vq] * W[vf, vc, vp, vq])
    for n, f, y, x in T.grid(1, 16, 14, 14):
        with T.block("S"):
            vn, vf, vy, vx = T.axis.remap("SSSS", [n, f, y, x])
            S[vn, vf, vy, vx] = B[vn, vf, vy, vx] + bias[vf]
    with T.block("zero"):
        zero[()] = T.float32(0)
    for n, f, y, x in T.grid(1, 16, 14, 14):
        with T.block("R"):
            vn, vf, vy, vx = T.axis.remap("SSSS", [n, f, y, x])
            R[vn, vf, vy, vx] = T.max(S[vn, vf, vy, vx], zero[()])
"""
)

_SOFTMAX = (
    _HEAD.format('A: T.Buffer((128, 1000), "float32"), B: T.Buffer((128, 1000), "float32")')
    + """
    largest = T.alloc_buffer((128,))
    power = T.alloc_buffer((128, 1000))
    total = T.alloc_buffer((128,))
    for i, k in T.grid(128, 1000):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], A[vi, vk])
    for i, j in T.grid(128, 1000):
        with T.block("power"):
            vi, vj = T.axis.remap("SS", [i, j])
            power[vi, vj] = T.exp(A[vi, vj] - largest[vi])
    for i, k in T.grid(128, 1000):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + power[vi, vk]
    for i, j in T.grid(128, 1000):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = power[vi, vj] / total[vi]
"""
)

_NORM = (
    _HEAD.format('A: T.Buffer((8, 64, 48), "float32"), B: T.Buffer((8,), "float32")')
    + """
    for n, i, j in T.grid(8, 64, 48):
        with T.block("B"):
            vn, vi, vj = T.axis.remap("SRR", [n, i, j])
            with T.init():
                B[vn] = T.float32(0)
            B[vn] = B[vn] + A[vn, vi, vj] * A[vn, vi, vj]
"""
)

_CHAIN = (
    _HEAD.format('A: T.Buffer((60, 96), "float32"), D: T.Buffer((96, 60), "float32")')
    + """
    B = T.alloc_buffer((60, 96))
    C = T.alloc_buffer((60, 96))
    for i, j in T.grid(60, 96):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(60, 96):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(96, 60):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vj, vi] * C[vj, vi]
"""
)

_SUM_OF_EXP = (
    _HEAD.format('A: T.Buffer((4, 30, 40), "float32"), B: T.Buffer((4, 40), "float32")')
    + """
    E = T.alloc_buffer((4, 30, 40))
    F = T.alloc_buffer((4, 30, 40))
    for n, i, j in T.grid(4, 30, 40):
        with T.block("E"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            E[vn, vi, vj] = T.exp(A[vn, vi, vj])
    for n, i, j in T.grid(4, 30, 40):
        with T.block("F"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            F[vn, vi, vj] = E[vn, vi, vj] + A[vn, 0, vj]
    for n, j, i in T.grid(4, 40, 30):
        with T.block("B"):
            vn, vj, vi = T.axis.remap("SSR", [n, j, i])
            with T.init():
                B[vn, vj] = T.float32(0)
            B[vn, vj] = B[vn, vj] + F[vn, vi, vj]
"""
)

_DENSE = """
@T.prim_func
def main(
    X: T.Buffer((32, 96), "{x}"), W: T.Buffer((64, 96), "int8"), Y: T.Buffer((32, 64), "int32")
):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})
    for i, j, k in T.grid(32, 64, 96):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = 0
            Y[vi, vj] = Y[vi, vj] + T.cast(X[vi, vk], "int32") * T.cast(W[vj, vk], "int32")
"""

_CONV_NCHW16C = (
    _HEAD.format(
        'A: T.Buffer((1, 2, 10, 10, 16), "uint8"), W: T.Buffer((4, 2, 3, 3, 4, 16, 4), "int8"), '
        'R: T.Buffer((1, 4, 8, 8, 16), "int32")'
    )
    + """
    B = T.alloc_buffer((1, 4, 8, 8, 16), "int32")
    for n, f, y, x, fb, p, q, c, cf, cs in T.grid(1, 4, 8, 8, 16, 3, 3, 2, 4, 4):
        with T.block("B"):
            vn, vf, vy, vx, vfb, vp, vq, vc, vcf, vcs = T.axis.remap(
                "SSSSSRRRRR", [n, f, y, x, fb, p, q, c, cf, cs])
            with T.init():
                B[vn, vf, vy, vx, vfb] = 0
            B[vn, vf, vy, vx, vfb] = B[vn, vf, vy, vx, vfb] + T.cast(
                A[vn, vc, vy + vp, vx + vq, vcf * 4 + vcs], "int32") * T.cast(
                W[vf, vc, vp, vq, vcf, vfb, vcs], "int32")
    for n, f, y, x, fb in T.grid(1, 4, 8, 8, 16):
        with T.block("R"):
            vn, vf, vy, vx, vfb = T.axis.remap("SSSSS", [n, f, y, x, fb])
            R[vn, vf, vy, vx, vfb] = T.max(B[vn, vf, vy, vx, vfb], 0)
"""
)

_SHORT_ROWS = (
    _HEAD.format(
        'A: T.Buffer((8, 24, 40), "float16"), B: T.Buffer((40, 20), "float16"), '
        'C: T.Buffer((8, 24, 20), "float16")'
    )
    + """
    for n, i, j, k in T.grid(8, 24, 20, 40):
        with T.block("C"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                C[vn, vi, vj] = T.float16(0)
            C[vn, vi, vj] = C[vn, vi, vj] + A[vn, vi, vk] * B[vk, vj]
"""
)

_THREE_OPERANDS = (
    _HEAD.format(
        'A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), '
        'S: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")'
    )
    + """
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] * S[vi, vk]
"""
)

PROGRAMS = {
    "matmul": matmul(128),
    "linear0": _LINEAR0,
    "bmm_relu": bmm_relu(16, 128),
    "conv2d": conv2d(channels=3, filters=16, size=30),
    "conv_pad_bias_relu": _CONV_PAD_BIAS_RELU,
    "softmax": _SOFTMAX,
    "norm": _NORM,
    "chain": _CHAIN,
    "sum_of_exp": _SUM_OF_EXP,
}
TILED_BY_INSTRUCTIONS = {
    "dense_u8": _DENSE.format(x="uint8"),
    "dense_i8": _DENSE.format(x="int8"),
    "conv_nchw16c": _CONV_NCHW16C,
    "short_rows": _SHORT_ROWS,
}
NOT_TWO_COPIES = {"three_operands": _THREE_OPERANDS}
"""Tiles of it have no asynchronous copies in TVM."""


def module(name: str) -> IRModule:
    """The module of a program, whose only function is "main"."""
    return IRModule(
        {"main": from_source({**PROGRAMS, **TILED_BY_INSTRUCTIONS, **NOT_TWO_COPIES}[name])}
    )


_TILING = "ms.schedule_rule.MultiLevelTiling({})"
_AUTO_INLINE = "ms.schedule_rule.AutoInline({})"


def _case(
    program: str,
    rules: str = "",
    postprocs: str = "",
    cores: int = 1,
    seeds: int = 2,
    target: Any = "",
    kind: str = "",
):
    return {
        "program": program, "kind": kind, "rules": rules, "postprocs": postprocs,
        "target": target or {"kind": "llvm", "num-cores": cores},
        "seeds": list(range(1, seeds + 1)),
    }  # fmt: skip


_INSTRUCTIONS: dict[str, Any] = {
    "vnni": {"kind": "llvm", "mcpu": "cascadelake", "num-cores": 4},
    "avx512": {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4},
    "asimd": {
        "kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "num-cores": 4,
    },
    "dotprod": {
        "kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+v8.2a", "+dotprod"],
        "num-cores": 4,
    },
    "hexagon": {"kind": "hexagon", "mtriple": "hexagon", "num-cores": 4},
}  # fmt: skip
"""Targets whose default rules know vectors or instructions, by the kind of these rules."""

_AMPERE = "nvidia/nvidia-a100"
"""A GPU of compute capability 8.0, which copies asynchronously to shared memory."""

_REUSE = 'ms.schedule_rule.ReuseType("{}", {}, "{}")'

_DP4A = {
    "rules": "[ms.schedule_rule.MultiLevelTilingWithIntrin("
    '"dp4a_s8s8s32", structure="SSSRRSRS", '
    'tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"], max_innermost_factor=64, '
    "vector_load_lens=[1, 2, 3, 4, 8, 16], "
    f"reuse_read={_REUSE.format('must', [4], 'shared')}, "
    f"reuse_write={_REUSE.format('must', [3], 'local')})]",
    "postprocs": "[ms.postproc.DisallowDynamicLoop(), ms.postproc.RewriteCooperativeFetch(), "
    "ms.postproc.RewriteReductionBlock(), ms.postproc.RewriteTensorize()]",
}

CASES: dict[str, dict[str, Any]] = {
    **{name: _case(name) for name in PROGRAMS},
    **{
        f"{name}_gpu": _case(name, seeds=4, target="nvidia/tesla-p100")
        for name in PROGRAMS
    },
    **{
        f"{name}_4_cores": _case(name, cores=4)
        for name in ("matmul", "bmm_relu", "softmax", "conv2d")
    },
    "matmul_8_cores": _case("matmul", cores=8),
    "norm_8_cores": _case("norm", cores=8),
    "matmul_reuse": _case(
        "matmul",
        "[" + _TILING.format(
            'structure="SSSRRSRS", max_innermost_factor=16, vector_load_lens=[1, 2, 3, 4], '
            'reuse_read=ms.schedule_rule.ReuseType("must", [4], "shared"), '
            'reuse_write=ms.schedule_rule.ReuseType("must", [3], "local")'
        ) + "]",
        "[ms.postproc.DisallowDynamicLoop()]",
        seeds=1,
    ),
    "conv_reuse_two_levels": _case(
        "conv2d",
        "[" + _TILING.format(
            'structure="SRSRS", '
            'reuse_read=ms.schedule_rule.ReuseType("must", [1, 2], "global"), '
            'reuse_write=ms.schedule_rule.ReuseType("no", [], "")'
        ) + "]",
        "[ms.postproc.DisallowDynamicLoop()]",
        seeds=1,
    ),
    "into_producer": _case(
        "conv_pad_bias_relu",
        "[ms.schedule_rule.InlineConstantScalars(), " + _AUTO_INLINE.format(
            "into_producer=True, into_consumer=True, inline_const_tensor=True, "
            "disallow_if_then_else=False, require_injective=False, require_ordered=False"
        ) + "]",
        "[ms.postproc.DisallowDynamicLoop()]",
        seeds=1,
    ),
    "chain_unordered": _case(
        "chain",
        "[" + _AUTO_INLINE.format(
            "into_producer=False, into_consumer=True, inline_const_tensor=True, "
            "disallow_if_then_else=True, require_injective=True, require_ordered=False"
        ) + "]",
        "[ms.postproc.DisallowDynamicLoop()]",
        seeds=1,
    ),
    "unroll_implicit": _case(
        "matmul",
        "[ms.schedule_rule.ParallelizeVectorizeUnroll(max_jobs_per_core=-1, "
        "max_vectorize_extent=32, unroll_max_steps=[0, 8], unroll_explicit=False)]",
        seeds=2,
    ),
    **{
        f"{program}_{kind}": _case(program, kind=kind, target=_INSTRUCTIONS[kind], seeds=1)
        for kind, programs in {
            "vnni": "dense_u8 dense_i8 conv_nchw16c matmul conv_pad_bias_relu",
            "avx512": "dense_u8 conv_nchw16c",
            "asimd": "dense_i8 matmul",
            "dotprod": "dense_i8",
            "hexagon": "matmul conv2d bmm_relu dense_u8 short_rows softmax",
        }.items()
        for program in programs.split()
    },
    "dense_i8_dp4a": _case("dense_i8", **_DP4A, target="nvidia/tesla-p100", seeds=1),
    "dense_i8_dp4a_ampere": _case("dense_i8", **_DP4A, target=_AMPERE, seeds=1),
    **{
        f"{name}_ampere": _case(name, target=_AMPERE)
        for name in ("matmul", "bmm_relu", "conv2d", "norm", "three_operands")
    },
    "wide_vectors_read": _case(
        "short_rows",
        '[ms.schedule_rule.MultiLevelTilingWideVector("SRSRS", 256, None, '
        f"{_REUSE.format('must', [1, 2], 'global')}, {_REUSE.format('must', [3], 'global')})]",
        "[ms.postproc.DisallowDynamicLoop()]",
        seeds=1,
    ),
    "random_compute_location": _case(
        "softmax", "[ms.schedule_rule.RandomComputeLocation()]", seeds=2
    ),
}  # fmt: skip


def answers() -> dict[str, Any]:
    """TVM's answers by case: for each seed the list of its spaces."""
    return json.loads(ANSWERS.read_text())


def questions() -> list[dict[str, Any]]:
    """The cases as `ask_tvm_spaces` takes them."""
    return [
        {**case, "module": module(case["program"]).script(dialect="s_tir")}
        for case in CASES.values()
    ]
