"""Vectors that are as long as a machine's vectors, `T.vscale()` times a number: they are read,
printed, computed with and made of loops, and refused where code for a machine of vectors of one
length is made."""

from __future__ import annotations

from typing import Any

import pytest

import mlcweb as tvm
from mlcweb import IRModule, tir
from mlcweb.ir.errors import InternalError
from mlcweb.ir.structural import structural_equal
from mlcweb.lower import transform
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir.dtype import DataType

LANES = tir.vscale() * 4
SVE = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+v8.2a", "+sve"]}
RVV = {"kind": "llvm", "mtriple": "riscv64-unknown-linux-gnu", "mattr": ["+v"]}
X86 = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mattr": ["+v"]}


def test_their_types_and_lanes() -> None:
    ramp = tir.Ramp(0, 1, 4 * tir.vscale())
    assert (ramp.dtype, str(ramp.lanes)) == ("int32xvscalex4", "T.vscale() * 4")
    assert tir.Broadcast(tir.const(True, "bool"), LANES).dtype == "boolxvscalex4"
    assert (ramp < 5).dtype == "boolxvscalex4"
    assert str(ramp * 2) == "T.Ramp(0, 1, T.vscale() * 4) * T.Broadcast(2, T.vscale() * 4)"
    assert tir.Cast("float32xvscalex4", ramp).dtype == "float32xvscalex4"
    assert DataType("float16xvscalex8").lanes == -8
    with pytest.raises(ValueError, match="as many lanes as the vectors of the machine"):
        _ = DataType("float16xvscalex8").itemsize


@pytest.mark.parametrize(
    "make",
    [
        lambda: tir.Broadcast(1, tir.vscale()),
        lambda: tir.Broadcast(1, tir.vscale() + 4),
        lambda: tir.Ramp(0, 1, tir.Var("n", "int32")),
        lambda: tir.Ramp(tir.Ramp(0, 1, 4), 1, LANES),
        lambda: tir.Cast("int32x4", tir.Ramp(0, 1, LANES)),
        lambda: tir.Ramp(0, 1, LANES) + tir.Ramp(0, 1, 4),
    ],
)
def test_what_is_no_such_vector(make: Any) -> None:
    with pytest.raises((tvm.TVMError, TypeError)):
        make()


def test_they_are_simplified() -> None:
    n, analyzer = tir.Var("n", "int32"), tvm.arith.Analyzer()
    total = tir.Ramp(n, 1, LANES) + tir.Broadcast(n - n + 3, LANES)
    assert str(analyzer.simplify(total)) == "T.Ramp(n + 3, 1, T.vscale() * 4)"
    lanes = analyzer.const_int_bound(tir.Ramp(2, 1, LANES))
    assert lanes.max_value == 2**31 - 1


def test_what_is_printed_is_read() -> None:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((8,), "int32xvscalex8")):
        A[1 : 1 + T.vscale() * 4] = A[T.Ramp(0, 1, 4 * T.vscale())] * T.float32(2)
        A[T.Ramp(0, 2, T.vscale() * 4)] = T.Broadcast(T.float32(1), T.vscale() * 4)
        B[0] = B[1]
        T.evaluate(T.get_active_lane_mask("uint1xvscalex4", 0, 13))

    lines = [line.strip() for line in main.script().splitlines()]
    twice = "A[0:T.vscale() * 4] * T.Broadcast(T.float32(2), T.vscale() * 4)"
    assert f"A[1:1 + T.vscale() * 4] = {twice}" in lines
    assert "A[T.Ramp(0, 2, T.vscale() * 4)] = T.Broadcast(T.float32(1), T.vscale() * 4)" in lines
    assert structural_equal(from_source(main.script()), main)


@T.prim_func
def loop(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(n):
        for j in T.vectorized(T.vscale() * 4):
            A[i * (T.vscale() * 4) + j] = A[j] + T.Cast("float32", i)


def vectorized(func: tir.PrimFunc, target: Any = SVE) -> str:
    bound = transform.BindTarget(tvm.target.Target(target))(IRModule({"main": func}))
    return transform.VectorizeLoop()(bound)["main"].script()


@pytest.mark.parametrize("target", [SVE, RVV])
def test_loops_become_such_vectors_for_machines_that_have_them(target: Any) -> None:
    assert (
        "A[i * (T.vscale() * 4):i * (T.vscale() * 4) + T.vscale() * 4] = A[0:T.vscale() * 4] + "
        'T.Broadcast(T.Cast("float32", i), T.vscale() * 4)'
    ) in vectorized(loop, target)


def test_lanes_that_differ_are_computed_one_by_one() -> None:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), n: T.int32):
        for i in T.vectorized(T.vscale() * 4):
            if i <= n:
                A[i] = A[i] + T.float32(1)

    assert "for i_s in range(T.vscale() * 4):\n        if i_s <= n:" in vectorized(main)


def test_the_target_in_use_counts() -> None:
    with tvm.target.Target(SVE):
        mod = transform.VectorizeLoop()(IRModule({"main": loop}))
    assert "T.vectorized" not in mod["main"].script()


def test_they_are_refused_for_other_machines() -> None:
    with pytest.raises(InternalError, match=r"extent T.vscale\(\) \* 4 for target"):
        vectorized(loop, X86)


def test_no_vectors_of_vectors() -> None:
    @T.prim_func
    def of_vectors(A: T.Buffer((64,), "float32")):
        for j in T.vectorized(T.vscale() * 4):
            A[T.Ramp(j * 4, 1, 4)] = T.Broadcast(T.float32(1), 4)

    @T.prim_func
    def of_scalable(A: T.Buffer((64,), "float32")):
        for j in T.vectorized(4):
            A[T.Ramp(j * T.vscale() * 4, 1, T.vscale() * 4)] = T.Broadcast(
                T.float32(1), T.vscale() * 4
            )

    @T.prim_func
    def of_elements(A: T.Buffer((64,), "float32xvscalex4")):
        for j in T.vectorized(4):
            A[j] = T.Broadcast(T.float32(1), T.vscale() * 4)

    for func, reason in (
        (of_vectors, "from existing vectors"),
        (of_scalable, "over existing scalable vectors"),
        (of_elements, "over scalable buffer elements"),
    ):
        with pytest.raises(InternalError, match=reason):
            vectorized(func)


@T.prim_func
def straight(A: T.Buffer((64,), "float32")):
    A[0 : T.vscale() * 4] = A[T.Ramp(0, 1, T.vscale() * 4)] + T.float32(1)


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
@pytest.mark.parametrize("func", [straight, loop])
def test_code_for_vectors_of_one_length_is_refused(func: tir.PrimFunc, target: str) -> None:
    arguments = tvm.nd.empty((64,)), 4
    reason = r"of machines with scalable vectors|in place of T.vscale"
    with pytest.raises(tvm.TVMError, match=reason):
        tvm.build(func, target=target)(*arguments[: len(func.params)])


@T.prim_func
def guarded(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for j in T.vectorized(4):
            if i * 4 + j < 14:
                B[i * 4 + j] = A[i * 4 + j] + T.float32(1)


@T.prim_func
def guarded_elsewhere(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for j in T.vectorized(4):
            if i * 4 + j < 14:
                B[i * 4 + j] = A[i] + T.float32(1)


def with_masks(func: tir.PrimFunc, masks: bool | None, target: Any) -> str:
    config = {} if masks is None else {"tir.enable_buffer_level_predication": masks}
    with tvm.transform.PassContext(config=config):
        return vectorized(func, target)


def test_conditions_of_lanes_are_masks_of_accesses() -> None:
    mask = 'T.get_active_lane_mask("uint1x4", i * 4, 14)'
    load = f'T.masked_load("float32x4", A.data, T.Ramp(i * 4, 1, 4), {mask})'
    value = f"{load} + T.Broadcast(T.float32(1), 4)"
    store = f"T.masked_store(B.data, {value}, T.Ramp(i * 4, 1, 4), {mask})"
    for masks, target in ((True, X86), (None, SVE)):
        text = with_masks(guarded, masks, target)
        assert store in text
        assert from_source(text).script() == text
    for masks, target in ((False, SVE), (None, X86)):
        assert "if i * 4 + j_s < 14:" in with_masks(guarded, masks, target)
    assert "if i * 4 + j_s < 14:" in with_masks(guarded_elsewhere, True, X86)
