"""Programs and schedules whose features are compared with TVM's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.script import from_source
from tests.meta_schedule.space_generator import cases as spaces

ANSWERS = Path(__file__).parent / "tvm_features.json"

SPACES = {
    "matmul": (0, 1, 2),
    "matmul_4_cores": (0,),
    "conv2d": (0,),
    "conv_pad_bias_relu": (0,),
    "softmax": (0, 4, 8),
    "sum_of_exp": (2,),
    "matmul_gpu": (0,),
    "conv2d_gpu": (0,),
    "softmax_gpu": (0, 3),
    "norm_gpu": (1,),
    "sum_of_exp_gpu": (1,),
}
"""Spaces, with the decisions that TVM made first: cases of design spaces, and numbers of spaces."""

_HEAD = """
@T.prim_func
def main({}):
    T.func_attr({{"global_symbol": "main"}})
"""

PLAIN = {
    # Nothing is read of a choice between constants; negative and repeated factors; a remainder.
    "choices": _HEAD.format(
        'A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")'
    ) + """
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.Select(vi < 8, T.float32(1), T.float32(2)) + T.Select(
                A[15 - vi, (vi * 3 + vj * 2) % 8] > T.float32(0), A[vi, vj], T.sqrt(A[vi, vj]))
""",
    # Integers, booleans, conversions, an index that is read from memory.
    "integers": _HEAD.format(
        'A: T.Buffer((64,), "int32"), I: T.Buffer((32,), "int32"), B: T.Buffer((32,), "float16"), '
        'C: T.Buffer((32,), "bool")'
    ) + """
    for i in T.parallel(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = T.cast(A[T.max(I[vi], 0)] // 3 - A[vi * 2] % 5, "float16")
    for i in T.unroll(32):
        with T.block("C"):
            vi = T.axis.spatial(32, i)
            C[vi] = A[vi] < I[vi] and not A[vi + 32] == 1
""",
    # Several statements store to and read one buffer; there is a store in no loop.
    "serial": _HEAD.format('A: T.Buffer((64,), "float64"), B: T.Buffer((64,), "float64")') + """
    C = T.alloc_buffer((64,), "float64")
    D = T.alloc_buffer((1,), "float64")
    with T.block("D"):
        D[0] = A[3] * T.float64(2)
    for i in range(16):
        for j in range(4):
            with T.block("C"):
                vi = T.axis.spatial(64, i * 4 + j)
                C[vi] = A[vi] + D[0]
        for j in T.vectorized(4):
            with T.block("B"):
                vi = T.axis.spatial(64, i * 4 + j)
                B[vi] = C[vi] * C[vi // 4 * 4 + 3 - vi % 4] + C[vi]
""",
}  # fmt: skip

OPTIONS: dict[str, Mapping[str, Any]] = {
    "matmul": {"extract_workload": True, "cache_line_bytes": 32},
    "softmax": {"buffers_per_store": 2, "arith_intensity_curve_num_samples": 3},
}
"""Options of `PerStoreFeature` for some of the cases, beside the defaults."""


def cases() -> dict[str, tuple[str, int | None, Mapping[str, Any]]]:
    """By name: a program or a case of spaces, the number of the space, options."""
    found: dict[str, tuple[str, int | None, Mapping[str, Any]]] = {
        name: (name, None, {}) for name in PLAIN
    }
    for name, numbers in SPACES.items():
        for number in numbers:
            found[f"{name}_{number}"] = name, number, {}
        if name in OPTIONS:
            found[f"{name}_options"] = name, numbers[0], OPTIONS[name]
    return found


def program(name: str) -> IRModule:
    """The module that a case schedules."""
    if name in PLAIN:
        return IRModule({"main": from_source(PLAIN[name])})
    return spaces.module(spaces.CASES[name]["program"])


def target(name: str) -> Any:
    """What a case is for."""
    return "llvm" if name in PLAIN else spaces.CASES[name]["target"]


def lines(name: str, number: int | None) -> Sequence[str]:
    """The schedule that TVM made first."""
    return () if number is None else spaces.answers()[name][0][number]["lines"]


def questions() -> list[dict[str, Any]]:
    """The cases as `ask_tvm_features` takes them."""
    return [
        {
            "module": program(name).script(dialect="s_tir"),
            "lines": lines(name, number),
            "target": target(name),
            "options": options,
        }
        for name, number, options in cases().values()
    ]


def packed(rows: Sequence[Sequence[float]]) -> list[Any]:
    """Rows of mostly zeros in short: how long they are, then for each the numbers that are not 0,
    by their position."""
    length = len(rows[0]) if rows else 0
    return [length, *({n: round(x, 6) for n, x in enumerate(row) if x} for row in rows)]


def answers() -> dict[str, list[list[float]]]:
    """TVM's rows by case."""
    stored = json.loads(ANSWERS.read_text())
    return {
        name: [[row.get(str(n), 0.0) for n in range(length)] for row in rows]
        for name, (length, *rows) in stored.items()
    }
