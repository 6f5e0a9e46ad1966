"""Passes for programs: they do what TVM 0.27's do, and what is computed stays.

The texts expected are what TVM 0.27 prints after the pass, in our spelling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.ir.errors import InternalError
from mlcweb.ir.transform import PassContext
from mlcweb.lower import lower, transform
from mlcweb.script import from_source
from mlcweb.script import tir as T
from tests.lower.test_tvm_names import body, computed_at, loops, matmul
from tests.random_programs.plain_python import evaluate
from tests.random_programs.stages import random_program

NESTED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        for j in range(8):
            if i < n:
                if n > 2:
                    A[i * 8 + j] = T.float32(1)
                else:
                    A[i * 8 + j] = T.float32(2)
"""

CONJUNCTS = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        for j in range(8):
            if n > 2 and j < 3 and i < 2:
                A[i * 8 + j] = T.if_then_else(n > 3, T.float32(1), T.float32(3))
"""

NAMED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        for j in range(8):
            x = T.float32(3) * T.Cast("float32", n)
            if i < 3 and j < 4:
                A[i * 8 + j] = x
"""

LAUNCHED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    b = T.launch_thread("blockIdx.x", 8)
    for i in range(8):
        if n < 3:
            A[b * 8 + i] = T.float32(1)
"""

REPEATED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        A[i + (n * 3 + 1)] = T.Cast("float32", (n * 3 + 1) * 2) + A[(n * 3 + 1) * 3]
"""

NOTHING = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        A[i] = A[i]
    for i in range(0):
        A[i] = T.float32(1)
    for i in range(1):
        A[i] = T.float32(1)
    if n > 3:
        T.evaluate(0)
    T.evaluate(n * 2)
"""

HELD_ALREADY = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i, j in T.grid(4, 4):
        k: T.int32 = i * 4 + j
        A[j + 4 * i] = A[k]
        if k != 3:
            A[k] = A[3]
        else:
            A[k] = A[3]
"""

UNSAFE = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(8):
        A[i] = T.Select(i < n, A[i + 10], T.float32(0))
        A[i + 8] = T.Select(i < n, T.float32(1), T.float32(0))
"""

VECTORS = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in T.vectorized(4):
        x: T.float32 = A[i] + T.float32(1)
        if n > 2:
            A[i * 2 + 8] = T.max(T.float32(3), x) * T.Cast("float32", i)
        A[i + 28] = T.if_then_else(n > 1, x, T.float32(0))
    for i in T.vectorized(4):
        if i >= n:
            A[i + 16] = T.fabs(A[i])
        A[i + 20] = T.if_then_else(i > 1, A[i + 20], T.float32(2))
        A[24] = A[24] + A[i]
    for j in T.vectorized(1):
        A[j + 40] = T.float32(5)
"""

LANES_OF_THEIR_OWN = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in T.vectorized(4):
        B = T.decl_buffer((8,))
        for k in range(8):
            B[k] = A[k * 4 + i] + T.float32(1)
        for k in range(8):
            A[k * 4 + i] = B[7 - k]
"""

SCOPES = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    if n > 2:
        A[0] = T.Cast("float32", n * 3)
    else:
        A[1] = T.Cast("float32", n * 3 + 7)
    for i in range(n * 2):
        k: T.int32 = i * 4 + n
        if i < 3:
            A[k] = T.Cast("float32", n * 3 + 7) + A[n * 2]
            A[k + 1] = T.Cast("float32", i * 4 + n)
        if n != 0 and i < 2:
            A[2] = T.Cast("float32", T.truncdiv(i, n))
    A[3] = T.if_then_else(
        n != 0, T.Cast("float32", T.truncdiv(8, n) + T.truncdiv(8, n)), T.float32(0)
    )
"""

EXPECTED: list[tuple[str, Any, dict[str, Any], str]] = [
    (NESTED, transform.HoistIfThenElse, {}, """
if 2 < n:
    for i in range(8):
        if i < n:
            for j in range(8):
                A[i * 8 + j] = T.float32(1)
else:
    for i in range(8):
        if i < n:
            for j in range(8):
                A[i * 8 + j] = T.float32(2)"""),
    (CONJUNCTS, transform.HoistIfThenElse, {}, """
for i, j in T.grid(8, 8):
    if 2 < n and j < 3 and i < 2:
        A[i * 8 + j] = T.if_then_else(3 < n, T.float32(1), T.float32(3))"""),
    (CONJUNCTS, transform.HoistExpression, {}, """
if 2 < n:
    if 3 < n:
        for i in range(8):
            if i < 2:
                for j in range(8):
                    if j < 3:
                        A[i * 8 + j] = T.float32(1)
    else:
        for i in range(8):
            if i < 2:
                for j in range(8):
                    if j < 3:
                        A[i * 8 + j] = T.float32(3)"""),
    (NAMED, transform.HoistExpression, {}, """
x: T.float32 = T.float32(3) * T.Cast("float32", n)
for i in range(8):
    if i < 3:
        for j in range(8):
            if j < 4:
                A[i * 8 + j] = T.float32(3) * T.Cast("float32", n)"""),
    (CONJUNCTS, transform.HoistExpression, {"tir.HoistExpression": {
        "hoisted_conditionals": transform.HoistedConditionals.Never.value}}, """
for i, j in T.grid(8, 8):
    if 2 < n and j < 3 and i < 2:
        A[i * 8 + j] = T.if_then_else(3 < n, T.float32(1), T.float32(3))"""),
    (CONJUNCTS, transform.HoistExpression, {"tir.HoistExpression": {
        "hoisted_conditionals": transform.HoistedConditionals.IfElseExpr.value}}, """
if 3 < n:
    for i, j in T.grid(8, 8):
        if j < 3 and i < 2:
            A[i * 8 + j] = T.float32(1)
else:
    for i, j in T.grid(8, 8):
        if 2 < n and j < 3 and i < 2:
            A[i * 8 + j] = T.float32(3)"""),
    (LAUNCHED, transform.HoistExpression, {"tir.HoistExpression": {
        "hoisted_conditionals": transform.HoistedConditionals.All.value}}, """
if n < 3:
    with T.launch_thread("blockIdx.x", 8) as b:
        for i in range(8):
            A[b * 8 + i] = T.float32(1)"""),
    (LAUNCHED, transform.HoistExpression, {}, """
with T.launch_thread("blockIdx.x", 8) as b:
    if n < 3:
        for i in range(8):
            A[b * 8 + i] = T.float32(1)"""),
    (NAMED, transform.HoistExpression, {"tir.HoistExpression": {"hoisted_let_bindings": 0}}, """
for i in range(8):
    if i < 3:
        for j in range(8):
            x: T.float32 = T.float32(3) * T.Cast("float32", n)
            if j < 4:
                A[i * 8 + j] = T.float32(3) * T.Cast("float32", n)
    else:
        for j in range(8):
            x: T.float32 = T.float32(3) * T.Cast("float32", n)
            T.evaluate(0)"""),
    (REPEATED, transform.CommonSubexprElim, {}, """
for i in range(8):
    cse_v1: T.int32 = n * 3 + 1
    A[i + cse_v1] = T.Cast("float32", cse_v1 * 2) + A[cse_v1 * 3]"""),
    (NOTHING, transform.RemoveNoOp, {}, """
for i in range(1):
    A[i] = T.float32(1)"""),
    (HELD_ALREADY, transform.RemoveNoOp, {}, """
for i, j in T.grid(4, 4):
    k: T.int32 = i * 4 + j
    if k != 3:
        A[k] = A[3]"""),
    (UNSAFE, transform.RewriteUnsafeSelect, {}, """
for i in range(8):
    A[i] = T.if_then_else(i < n, A[i + 10], T.float32(0))
    A[i + 8] = T.Select(i < n, T.float32(1), T.float32(0))"""),
    (SCOPES, transform.CommonSubexprElim, {}, """
cse_v3: T.int32 = n * 3
cse_v1: T.float32 = T.Cast("float32", cse_v3 + 7)
if n > 2:
    A[0] = T.Cast("float32", cse_v3)
else:
    A[1] = cse_v1
cse_v4: T.int32 = n * 2
for i in range(cse_v4):
    cse_v2: T.int32 = i * 4 + n
    k: T.int32 = cse_v2
    if i < 3:
        A[k] = cse_v1 + A[cse_v4]
        A[k + 1] = T.Cast("float32", cse_v2)
    if n != 0 and i < 2:
        A[2] = T.Cast("float32", T.Div(i, n))
A[3] = T.if_then_else(n != 0, T.Cast("float32", T.Div(8, n) + T.Div(8, n)), T.float32(0))"""),
    (VECTORS, transform.VectorizeLoop, {}, """
with T.LetStmt(A[0:4] + T.Broadcast(T.float32(1), 4)) as x:
    if n > 2:
        A[8:16:2] = T.max(T.Broadcast(T.float32(3), 4), x) * T.Cast("float32x4", T.Ramp(0, 1, 4))
    A[28:32] = T.if_then_else(n > 1, x, T.Broadcast(T.float32(0), 4))
for i_s in range(4):
    if i_s >= n:
        A[i_s + 16] = T.fabs(A[i_s])
for i_s in range(4):
    A[i_s + 20] = T.if_then_else(i_s > 1, A[i_s + 20], T.float32(2))
for i_s in range(4):
    A[24] = A[24] + A[i_s]
for j in range(1):
    A[j + 40] = T.float32(5)"""),
    (LANES_OF_THEIR_OWN, transform.VectorizeLoop, {}, """
B = T.decl_buffer((32,))
for k in range(8):
    B[k * 4:k * 4 + 4] = A[k * 4:k * 4 + 4] + T.Broadcast(T.float32(1), 4)
for k in range(8):
    A[k * 4:k * 4 + 4] = B[(7 - k) * 4:(7 - k) * 4 + 4]"""),
]  # fmt: skip


def computed(func: tir.PrimFunc, n: int) -> list[float]:
    """What a function makes of small numbers; the interpreter checks all accesses."""
    array = tvm.nd.array(np.arange(len_of(func), dtype="float32") % 7)
    tvm.build(IRModule({"main": func}), "interpreter")["main"](array, n)
    return array.numpy().tolist()


def len_of(func: tir.PrimFunc) -> int:
    [buffer] = func.parameter_buffers
    [extent] = buffer.shape
    assert isinstance(extent, tir.IntImm)
    return extent.value


@pytest.mark.parametrize(("text", "make", "config", "expected"), EXPECTED)
def test_what_a_pass_makes(text: str, make: Any, config: dict[str, Any], expected: str) -> None:
    func = from_source(text)
    with PassContext(config=config, instruments=[VerifyEachPass()]):
        new = make()(IRModule({"main": func}))
    assert body(new).strip() == expected.strip()
    for n in (2, 3, 5):
        assert computed(new["main"], n) == computed(func, n)


PASSES = ["HoistIfThenElse", "HoistExpression", "CommonSubexprElim", "RemoveNoOp",
          "RewriteUnsafeSelect", "StorageRewrite", "UnrollLoop", "CanonicalizeLoop", "StmtSimplify",
          "VectorizeLoop"]  # fmt: skip


@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_passes_keep_what_random_programs_compute(seed: int) -> None:
    program = random_program(seed)
    arrays = program.inputs()
    wanted = evaluate(program.text, arrays)
    func = lower(from_source(program.text))
    for name in PASSES:
        new = getattr(transform, name)()(IRModule({"main": func}))
        given = [tvm.nd.array(array) for array in arrays]
        tvm.build(new, "interpreter")["main"](*given)
        for array, want in zip(given, wanted, strict=True):
            np.testing.assert_array_equal(array.numpy(), want, err_msg=f"{name}\n{program.text}")


def test_what_an_init_and_its_body_share_has_no_place_for_a_name() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((16,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi * 2] = vi * 2
            B[vi * 2] = B[vi * 2] + A[vi, vk]
"""
    func = from_source(text)
    new = transform.CommonSubexprElim()(IRModule({"main": func}))
    assert "B[vi * 2] = vi * 2\n" in new.script()
    assert new.script().endswith("B[cse_v1] = B[cse_v1] + A[vi, vk]")
    numbers, sums = np.arange(64, dtype="int32").reshape(8, 8), tvm.nd.empty((16,), "int32")
    tvm.build(new, "interpreter")["main"](tvm.nd.array(numbers), sums)
    assert sums.numpy()[::2].tolist() == (numbers.sum(1) + 2 * np.arange(8)).tolist()


def test_memory_outside_of_threads_is_found() -> None:
    bound = from_source(NESTED).with_attr("target", tvm.target.Target("cuda"))
    with pytest.raises(TVMError, match=r"Memory verification failed: .* outside of its threads"):
        transform.VerifyMemory()(IRModule({"main": bound}))
    launched = from_source(LAUNCHED).with_attr("target", tvm.target.Target("cuda"))
    for func in (computed_at, loops, matmul, launched):
        module = IRModule({"main": func})
        assert transform.VerifyMemory()(module)["main"] is func


def test_what_never_runs_is_removed():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            for j in range(i - 8):
                A[i] = j
            if i < 4:
                T.evaluate(0)
            else:
                A[i] = 1

    @T.prim_func(private=True)
    def after(A: T.Buffer((8,), "int32")):
        for i in range(8):
            if not i < 4:
                A[i] = 1

    made = tvm.tir.transform.RemoveNoOp()(tvm.IRModule.from_expr(before))["main"]
    tvm.ir.assert_structural_equal(made, after)


def test_a_loop_that_a_condition_never_lets_run_is_removed():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        if n < 1:
            for i in range(n):
                A[i] = T.float32(1)
        else:
            A[0] = T.float32(2)

    @T.prim_func(private=True)
    def after(A: T.Buffer((16,), "float32"), n: T.int32):
        if not n < 1:
            A[0] = T.float32(2)

    made = tvm.tir.transform.RemoveNoOp()(tvm.IRModule.from_expr(before))["main"]
    tvm.ir.assert_structural_equal(made, after)


def test_a_condition_that_is_the_same_for_all_lanes_stays_one():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4,), "float32"), n: T.int32, x: T.int32):
        for i in T.vectorized(4):
            if x < n:
                A[i] = A[i] + T.float32(1)
            else:
                if i < n:
                    A[i] = T.float32(2)

    @T.prim_func(private=True)
    def after(A: T.Buffer((4,), "float32"), n: T.int32, x: T.int32):
        if x < n:
            A[0:4] = A[0:4] + T.Broadcast(T.float32(1), 4)
        else:
            for i in range(4):
                if i < n:
                    A[i] = T.float32(2)

    made = tvm.tir.transform.VectorizeLoop()(tvm.IRModule.from_expr(before))["main"]
    tvm.ir.assert_structural_equal(made, after)


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for i in T.vectorized(1, 5):\n        A[i] = 1", "begins at 1, not at 0"),
        ("for i in T.vectorized(n):\n        A[i] = 1", "with extent n for target"),
        (
            "for i in T.vectorized(4):\n        while A[i] < 3:\n            A[i] = A[i] + 1",
            "while loop inside a vectorized loop",
        ),
    ],
)
def test_loops_that_are_no_vectors_are_refused(loop: str, reason: str) -> None:
    func = from_source(
        f'@T.prim_func\ndef main(A: T.Buffer((8,), "int32"), n: T.int32):\n    {loop}\n'
    )
    with pytest.raises(InternalError, match=reason):
        transform.VectorizeLoop()(func)


def test_each_variable_is_defined_once() -> None:
    A = tir.decl_buffer((16,), "int32", "A")
    i = tir.Var("i", "int32")

    def loop(body: tir.Stmt) -> tir.Stmt:
        return tir.For(i, 0, 4, tir.ForKind.SERIAL, body)

    store = tir.BufferStore(A, tir.BufferLoad(A, [i * 2]) + i * 2, [i * 2 + 1])
    twice = tir.PrimFunc([A], tir.SeqStmt([loop(store), loop(store), loop(loop(store))]))
    new = transform.ConvertSSA()(twice)
    assert (tir.analysis.verify_ssa(twice), tir.analysis.verify_ssa(new)) == (False, True)
    assert transform.ConvertSSA()(new) is new
    shared = transform.CommonSubexprElim()(twice)
    assert shared.script().count("cse_v") == 3 * 4
    outputs = []
    for func in (twice, new, shared):
        array = tvm.nd.array(np.arange(16, dtype="int32"))
        tvm.build(IRModule({"main": func}), "interpreter")["main"](array)
        outputs.append(array.numpy().tolist())
    assert outputs[0] == outputs[1] == outputs[2]
