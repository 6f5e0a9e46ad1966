"""bfloat16 in float32 and in 16 bits."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.runtime.target import Target
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import transform


def legal(mod: tvm.IRModule, target: str = "llvm") -> tvm.IRModule:
    mod = transform.BindTarget(Target(target))(mod)
    return transform.BF16StorageLegalize()(transform.BF16ComputeLegalize()(mod))


def wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("uint32") << 16).view("float32")


def rounded(values: np.ndarray) -> np.ndarray:
    bits = values.view("uint32")
    return ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16).astype("uint16")


@I.ir_module
class Numbers:
    @T.prim_func
    def main(X: T.Buffer((256,), "uint16"), Y: T.Buffer((256,), "uint16")):
        for i in range(256):
            x = T.reinterpret("bfloat16", X[i])
            Y[i] = T.reinterpret(
                "uint16", T.Select(x < T.bfloat16(0), x * T.bfloat16(1.5), x + T.bfloat16(3))
            )


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
def test_what_is_computed_is_rounded_to_even(target):
    bits = rounded(np.random.default_rng(5).standard_normal(256).astype("float32") * 100)
    x, y = tvm.nd.array(bits), tvm.nd.empty((256,), "uint16")
    mod = legal(Numbers)
    assert "bfloat16" not in mod.script()
    tvm.build(mod, target=target)["main"](x, y)
    values = wide(bits)
    expected = np.where(values < 0, values * np.float32(1.5), values + np.float32(3))
    np.testing.assert_array_equal(y.numpy(), rounded(expected))


@I.ir_module
class Memory:
    @T.prim_func
    def main(a: T.handle("bfloat16"), c: T.handle("bfloat16")):
        A = T.decl_buffer((8,), "bfloat16", data=a)
        C = T.decl_buffer((8,), "bfloat16", data=c)
        B = T.decl_buffer((8,), "bfloat16")
        for i in range(8):
            B[i] = A[i]
            C[i] = T.exp(B[i])


def test_memory_of_its_own_is_float32_and_that_of_others_16_bits():
    text = legal(Memory).script()
    assert 'a: T.handle("uint16"), c: T.handle("uint16")' in text
    assert "B = T.decl_buffer((8,))" in text
    assert 'B[i] = T.reinterpret("float32", T.Cast("uint32", A[i]) << T.uint32(16))' in text
    once = transform.BF16ComputeLegalize()(Memory)
    tvm.ir.assert_structural_equal(transform.BF16ComputeLegalize()(once), once)


def test_targets_that_know_the_type_keep_it():
    bound = transform.BindTarget(Target({"kind": "cuda", "arch": "sm_86"}))(Memory)
    tvm.ir.assert_structural_equal(legal(bound, "cuda -arch=sm_86"), bound)
    assert "uint16" in legal(Memory, "cuda -arch=sm_75").script()


def test_arrays_of_the_caller_keep_their_type():
    @T.prim_func
    def copy(A: T.Buffer((8,), "bfloat16"), C: T.Buffer((8,), "bfloat16")):
        for i in range(8):
            C[i] = A[i]

    with pytest.raises(tvm.TVMError, match="is an array of the caller's"):
        legal(tvm.IRModule.from_expr(copy))
