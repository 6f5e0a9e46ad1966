"""LoopPartition under TVM's name. The texts expected are what TVM 0.27 prints after the pass and
Simplify, in our spelling."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.ir.node import replace
from mlcweb.ir.transform import PassContext
from mlcweb.ir.visitor import rewrite_nodes
from mlcweb.lower import lower, transform
from mlcweb.script import from_source
from mlcweb.tir import stmt as S
from mlcweb.tir.intrinsics import likely
from tests.lower.test_tvm_names import body
from tests.random_programs.plain_python import evaluate
from tests.random_programs.stages import random_program

HEAD = "@T.prim_func\ndef main(A: T.Buffer((136,), 'float32'), n: T.int32):\n"

TILED = """
    for i, j in T.grid(8, 17):
        if T.likely(i * 17 + j < 128):
            A[i * 17 + j] = A[i * 17 + j] + T.float32(1)"""

HINTED = """
    for i in T.serial(64, annotations={"pragma_loop_partition_hint": 1, "kept": 1}):
        if i == 0:
            A[i] = T.float32(1)
        elif i < 60 and T.ignore_loop_partition(i < n):
            A[i] = A[i - 1]
        else:
            A[i] = T.float32(2)"""

OVERLAPPING = """
    for i in T.serial(4, annotations={"pragma_loop_partition_hint": 1}):
        for j in range(16):
            if 3 <= i + j and i + j < 18:
                A[i * 16 + j] = A[i * 16 + j] + T.float32(1)"""

LAUNCHED = """
    b = T.launch_thread("blockIdx.x", 4)
    t = T.launch_thread("threadIdx.x", 32)
    if T.likely(b * 32 + t < 100):
        A[b * 32 + t] = A[b * 32 + t] + T.float32(1)"""

SYMBOLIC_LAUNCH = """
    b = T.launch_thread("blockIdx.x", (n + 31) // 32)
    t = T.launch_thread("threadIdx.x", 32)
    if T.likely(b * 32 + t < n):
        A[b * 32 + t] = A[b * 32 + t] + T.float32(1)"""

CONSTANT = {"partition_const_loop": True}

EXPECTED: list[tuple[str, dict[str, Any], str]] = [
    (TILED, {}, """
for i, j in T.grid(8, 17):
    if i * 17 + j < 128:
        A[i * 17 + j] = A[i * 17 + j] + T.float32(1)"""),
    (TILED, CONSTANT, """
for i, j in T.grid(7, 17):
    A[i * 17 + j] = A[i * 17 + j] + T.float32(1)
for j in range(9):
    A[j + 119] = A[j + 119] + T.float32(1)"""),
    (TILED, {**CONSTANT, "no_unroll_loop_with_extent_one": True}, """
for i, j in T.grid(7, 17):
    A[i * 17 + j] = A[i * 17 + j] + T.float32(1)
for i, j in T.grid(1, 9):
    A[j + 119] = A[j + 119] + T.float32(1)"""),
    (HINTED, {}, """
for i in T.serial(1, annotations={"kept": 1}):
    A[0] = T.float32(1)
for i in T.serial(59, annotations={"kept": 1}):
    if i + 1 < n:
        A[i + 1] = A[i]
    else:
        A[i + 1] = T.float32(2)
for i in T.serial(4, annotations={"kept": 1}):
    A[i + 60] = T.float32(2)"""),
    (OVERLAPPING, {"unroll_loop_with_partition_hint_no_interval": True}, """
for i in T.unroll(3):
    for j in range(16):
        if 3 <= i + j:
            A[i * 16 + j] = A[i * 16 + j] + T.float32(1)
for j in range(16):
    if j < 15:
        A[j + 48] = A[j + 48] + T.float32(1)"""),
    (LAUNCHED, CONSTANT, """
with T.launch_thread("blockIdx.x", 4) as b:
    with T.launch_thread("threadIdx.x", 32) as t:
        if b < 3:
            A[b * 32 + t] = A[b * 32 + t] + T.float32(1)
        elif b * 32 + t < 100:
            A[b * 32 + t] = A[b * 32 + t] + T.float32(1)"""),
    (SYMBOLIC_LAUNCH, {}, """
with T.launch_thread("blockIdx.x", (n + 31) // 32) as b:
    with T.launch_thread("threadIdx.x", 32) as t:
        if b < n // 32:
            A[b * 32 + t] = A[b * 32 + t] + T.float32(1)
        elif b * 32 + t < n:
            A[b * 32 + t] = A[b * 32 + t] + T.float32(1)"""),
]  # fmt: skip


def partitioned(func: tir.PrimFunc, **config: bool) -> tir.PrimFunc:
    with PassContext(config={"tir.LoopPartition": config}, instruments=[VerifyEachPass()]):
        return transform.LoopPartition()(IRModule({"main": func}))["main"]


def computed(func: tir.PrimFunc, n: int) -> list[float]:
    """What a function makes of small numbers; the interpreter checks all accesses."""
    array = tvm.nd.array(np.arange(136, dtype="float32") % 7)
    tvm.build(IRModule({"main": func}), "interpreter")["main"](array, n)
    return array.numpy().tolist()


@pytest.mark.parametrize(("text", "config", "expected"), EXPECTED)
def test_parts_of_loops(text: str, config: dict[str, bool], expected: str) -> None:
    func = from_source(HEAD + text)
    new = partitioned(func, **config)
    simple = tvm.transform.Sequential([transform.Simplify(), transform.RemoveNoOp()])
    assert body(simple(IRModule({"main": new}))) == expected.strip()
    unmarked = from_source(HEAD + text.replace("T.ignore_loop_partition", ""))
    for n in (0, 3, 40, 100):
        assert computed(new, n) == computed(unmarked, n)


BOUNDS = """
    for i in range(n, 60):
        if T.likely(i < 20):
            A[i + 20] = T.float32(1)
        else:
            A[i + 20] = T.float32(2)
    for i in range(n - 30):
        if T.likely(i >= n - 40):
            A[i + 60] = T.float32(3)
        else:
            A[i + 60] = T.float32(4)
    for i in range((n + 7) // 8):
        for j in range(8):
            if T.likely(i * 8 + j < n):
                A[i * 8 + j] = A[i * 8 + j] + T.float32(1)"""


def test_parts_stay_within_symbolic_bounds() -> None:
    """A part that TVM takes to be in the loop may be before or after it."""
    func = from_source(HEAD + BOUNDS)
    new = partitioned(func)
    assert new.script().count("for i") == 6
    for n in (-20, -3, 0, 5, 19, 20, 21, 29, 31, 39, 40, 41, 60, 70):
        assert computed(new, n) == computed(func, n)


UNDECIDABLE = """
    for i in T.serial(16, annotations={"pragma_loop_partition_hint": 1}):
        if i < T.Cast("int32", A[100]):
            A[i + 85] = T.float32(1)
        k: T.int32 = T.Cast("int32", A[i])
        if i < k:
            A[i] = T.float32(2)
    for i in T.serial(T.Cast("int32", A[2]), annotations={"pragma_loop_partition_hint": 1}):
        if i < 1:
            A[2] = T.float32(9)
        else:
            A[i] = T.float32(3)
    for i in T.serial(16, annotations={"pragma_loop_partition_hint": 1}):
        if i > 8:
            A[i] = T.float32(4)
        if A[i] > T.float32(3):
            T.break_loop()"""


def test_loops_stay_whose_parts_are_not_known_before_they_run() -> None:
    func = from_source(HEAD + UNDECIDABLE)
    new = partitioned(func)
    assert new.script().count("for i") == 3
    assert computed(new, 0) == computed(func, 0)


def test_options_have_names() -> None:
    with pytest.raises(TVMError, match=r"partition_const_loop, no_unroll.* not constant_loops"):
        partitioned(from_source(HEAD + TILED), constant_loops=True)


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_random_programs(seed: int) -> None:
    """Hints and marks are put everywhere; what the program computes stays."""
    random, program = Random(seed), random_program(seed)

    def marked(node: Any) -> Any:
        if isinstance(node, S.IfThenElse):
            return replace(node, condition=likely(node.condition))
        if random.random() < 0.3:
            return node
        return replace(node, annotations={**node.annotations, "pragma_loop_partition_hint": 1})

    func = lower(from_source(program.text))
    func = func.with_body(rewrite_nodes(func.body, (S.For, S.IfThenElse), marked))
    fields = transform.LoopPartitionConfig.__slots__
    new = partitioned(func, **{field: random.random() < 0.5 for field in fields})
    arrays = program.inputs()
    results = [tvm.nd.array(array) for array in arrays]
    tvm.build(new, "interpreter")["main"](*results)
    for result, expected in zip(results, evaluate(program.text, arrays), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected, err_msg=new.script())
