"""Scheduled programs with weights, for `RewriteLayout`, and what a real TVM 0.27 makes of them.

Run by the interpreter that has TVM, this writes `layouts.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

ANSWERS = Path(__file__).with_name("layouts.json")

_PRODUCT = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), W: T.Buffer((16, 32), "float32"),
         C: T.Buffer((16, 32), "float32")):
    T.func_attr({{"layout_free_buffers": [1]}})
    for {loops} in T.grid({extents}):
        with T.sblock("C"):
            vi = T.axis.spatial(16, {i})
            vj = T.axis.spatial(32, {j})
            vk = T.axis.reduce(16, {k})
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]
"""

_CONV = """
@T.prim_func(s_tir=True)
def main(X: T.Buffer((1, 8, 10, 10), "float32"), W: T.Buffer((16, 8, 3, 3), "float32"),
         Y: T.Buffer((1, 16, 8, 8), "float32")):
    T.func_attr({{"layout_free_buffers": [1]}})
    for {loops} in T.grid({extents}):
        with T.sblock("Y"):
            vo = T.axis.spatial(16, {o})
            vy, vx = T.axis.remap("SS", [y, x])
            vc = T.axis.reduce(8, {c})
            vp, vq = T.axis.remap("RR", [p, q])
            with T.init():
                Y[0, vo, vy, vx] = T.float32(0)
            Y[0, vo, vy, vx] = Y[0, vo, vy, vx] + X[0, vc, vy + vp, vx + vq] * W[vo, vc, vp, vq]
"""


def _conv(loops: str, extents: str, o: str = "o", c: str = "c") -> str:
    return _CONV.format(loops=loops, extents=extents, o=o, c=c)


_TILED = {"i": "i0 * 4 + i1", "j": "j0 * 8 + j1", "k": "k0 * 4 + k1"}

CASES: dict[str, str] = {
    "product_tiled": _PRODUCT.format(
        loops="i0, j0, k0, i1, k1, j1", extents="4, 4, 4, 4, 4, 8", **_TILED
    ),
    "product_columns_first": _PRODUCT.format(
        loops="j0, i0, k0, k1, i1, j1", extents="4, 4, 4, 4, 4, 8", **_TILED
    ),
    "product_as_it_is": _PRODUCT.format(loops="i, k, j", extents="16, 16, 32", i="i", j="j", k="k"),
    "product_transposed": _PRODUCT.format(
        loops="i, j, k", extents="16, 32, 16", i="i", j="j", k="k"
    ),
    "product_fused": _PRODUCT.format(
        loops="ij, k, l", extents="64, 16, 8", i="ij // 4", j="ij % 4 * 8 + l", k="k"
    ),
    "conv_channels_last": _conv("y, x, c, p, q, o", "8, 8, 8, 3, 3, 16"),
    "conv_tiled": _conv(
        "o0, y, c0, p, q, c1, x, o1", "2, 8, 2, 3, 3, 4, 8, 8", "o0 * 8 + o1", "c0 * 4 + c1"
    ),
    "conv_as_it_is": _conv("o, y, x, c, p, q", "16, 8, 8, 8, 3, 3"),
}


def _answers() -> dict[str, str]:
    import tvm
    from tvm.s_tir import Schedule
    from tvm.s_tir.meta_schedule.postproc import RewriteLayout

    found = {}
    for name, program in CASES.items():
        sch = Schedule(tvm.IRModule({"main": tvm.script.from_source(program)}))
        sch.enter_postproc()
        assert RewriteLayout().apply(sch)
        found[name] = sch.mod["main"].script()
    return found


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(_answers(), indent=1) + "\n")
