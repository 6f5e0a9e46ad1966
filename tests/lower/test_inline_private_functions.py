"""InlinePrivateFunctions."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.lower import transform
from mlcweb.script import ir as I
from mlcweb.script import tir as T


@I.ir_module
class Sums:
    @T.prim_func
    def main(A: T.Buffer((10, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for i in range(7):
            Sums.sums(T.address_of(A[i, 0]), T.address_of(B[i, 0]), i)

    @T.prim_func(private=True)
    def sums(a: T.handle("float32"), b: T.handle("float32"), n: T.int32):
        A = T.decl_buffer((4, 4), "float32", data=a)
        B = T.decl_buffer((4,), "float32", data=b)
        for j in range(4):
            B[j] = T.Cast("float32", n)
            for k in range(4):
                B[j] = B[j] + A[j, k]
        Sums.double(b)

    @T.prim_func(private=True)
    def double(b: T.handle("float32")):
        B = T.decl_buffer((4,), "float32", data=b)
        for j in range(4):
            B[j] = B[j] * T.float32(2)


def inlined(mod: IRModule) -> IRModule:
    return transform.InlinePrivateFunctions()(mod)


def test_functions_are_put_where_they_are_called() -> None:
    alone = inlined(Sums)
    assert [var.name_hint for var in alone.functions] == ["main"]
    numbers = np.arange(40, dtype="float32").reshape(10, 4)
    expected = np.zeros((8, 4), "float32")
    for i in range(7):
        expected[i] = 2 * (i + numbers[i : i + 4].sum(1))
    for target in ("interpreter", "llvm"):
        b = tvm.nd.array(np.zeros((8, 4), "float32"))
        tvm.build(alone, target=target)["main"](tvm.nd.array(numbers), b)
        np.testing.assert_array_equal(b.numpy(), expected)


@I.ir_module
class Recursive:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        Recursive.add(T.address_of(A[0]), 16)

    @T.prim_func(private=True)
    def add(a: T.handle("float32"), n: T.int32):
        A = T.decl_buffer((n,), "float32", data=a)
        A[1] = A[0] + A[1]
        if n > 2:
            Recursive.add(T.address_of(A[1]), n - 1)


@I.ir_module
class OtherTarget:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        T.func_attr({"target": T.target("llvm")})
        OtherTarget.clear(T.address_of(A[0]))

    @T.prim_func(private=True)
    def clear(a: T.handle("float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80"})})
        A = T.decl_buffer((16,), "float32", data=a)
        A[0] = T.float32(0)


@I.ir_module
class Blocks:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        Blocks.clear(T.address_of(A[0]))

    @T.prim_func(private=True)
    def clear(a: T.handle("float32")):
        A = T.decl_buffer((16,), "float32", data=a)
        for i in range(16):
            with T.block("clear"):
                vi = T.axis.spatial(16, i)
                A[vi] = T.float32(0)


@I.ir_module
class Public:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        Public.clear(T.address_of(A[0]))

    @T.prim_func
    def clear(a: T.handle("float32")):
        A = T.decl_buffer((16,), "float32", data=a)
        A[0] = T.float32(0)


@pytest.mark.parametrize("mod", [Recursive, OtherTarget, Blocks, Public])
def test_other_calls_stay(mod: IRModule) -> None:
    assert structural_equal(inlined(mod), mod)


def test_views_of_other_types_are_refused() -> None:
    @I.ir_module
    class OtherType:
        @T.prim_func
        def main(A: T.Buffer((16,), "float32")):
            OtherType.clear(T.address_of(A[4]))

        @T.prim_func(private=True)
        def clear(a: T.handle("int8")):
            A = T.decl_buffer((16,), "int8", data=a)
            A[0] = T.int8(0)

    with pytest.raises(tvm.TVMError, match=r'"A" views int8 from .* on'):
        inlined(OtherType)
