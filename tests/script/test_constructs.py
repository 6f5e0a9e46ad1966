"""What TensorIR can say: each construct is read, printed in both spellings, interpreted and
compiled, and computes what NumPy does."""

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import assert_structural_equal
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", "wasm"]

OPAQUE_BLOCK = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(4):
            with T.block("opaque"):
                T.reads(A[i * 2:i * 2 + 2])
                T.writes(B[i * 2:i * 2 + 2])
                B[i * 2] = A[i * 2 + 1]
                B[i * 2 + 1] = A[i * 2]
"""

NESTED_BLOCKS = """
    @T.prim_func
    def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(4):
            with T.block("outer"):
                vo = T.axis.spatial(4, i)
                T.reads(A[vo * 2:vo * 2 + 2, 0:6])
                T.writes(B[vo * 2:vo * 2 + 2])
                for j, k in T.grid(2, 6):
                    with T.block("inner"):
                        vj, vk = T.axis.remap("SR", [j, k])
                        with T.init():
                            B[vo * 2 + vj] = T.float32(0)
                        B[vo * 2 + vj] = B[vo * 2 + vj] + A[vo * 2 + vj, vk]
"""

VIEW_OF_A_REGION = """
    @T.prim_func
    def main(A: T.Buffer((8, 12), "float32"), B: T.Buffer((8, 12), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                s0 = T.int32()
                s1 = T.int32()
                X = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4),
                                   strides=[s0, 1], offset_factor=4)
                Y = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4),
                                   strides=[s1, 1], offset_factor=4)
                for r, c in T.grid(4, 4):
                    Y[r, c] = X[c, r] * T.Cast("float32", Y.strides[0])
"""

SCOPED_VIEW = """
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        S = T.alloc_buffer((4, 8), scope="shared")
        for i, j in T.grid(4, 8):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi, vj] + T.float32(1)
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(S[vi, 0:8])
                T.writes(B[vi, 0:8])
                row = T.match_buffer(S[vi, 0:8], (8,), scope="shared", offset_factor=8)
                for j in range(8):
                    B[vi, j] = row[7 - j]
"""

WHERE = """
    @T.prim_func
    def main(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i * 4 + j)
                T.where(i * 4 + j < 10)
                B[vi] = A[vi] * T.float32(2)
"""

LET_STATEMENTS = """
    @T.prim_func
    def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                T.reads(A[vi])
                T.writes(B[vi])
                x = T.float32()
                with T.LetStmt(A[vi] * A[vi]) as square:
                    B[vi] = square + T.Let(x * x, where={x: A[vi] + T.float32(1)})
                twice: T.float32 = B[vi] * T.float32(2)
                B[vi] = twice - A[vi]
"""

WHILE_LOOP = """
    @T.prim_func
    def main(A: T.Buffer((5,), "int32"), B: T.Buffer((5,), "int32")):
        for i in range(5):
            with T.block("halvings"):
                vi = T.axis.spatial(5, i)
                T.reads(A[vi])
                T.writes(B[vi])
                rest = T.alloc_buffer((1,), "int32")
                rest[0] = A[vi]
                B[vi] = 0
                while 1 < rest[0]:
                    rest[0] = rest[0] // 2
                    B[vi] = B[vi] + 1
"""

ARGMAX = """
    @T.prim_func
    def main(A: T.Buffer((3, 9), "float32"), I: T.Buffer((3,), "int32"),
             V: T.Buffer((3,), "float32")):
        for i, k in T.grid(3, 9):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = -1
                    V[vi] = T.min_value("float32")
                v_I: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
                v_V: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
                I[vi] = v_I
                V[vi] = v_V
"""

SYMBOLIC_SHAPES = """
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (m,))
        C = T.match_buffer(c, (n,))
        for i, k in T.grid(n, m):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk] * B[vk]
"""

TWO_FUNCTIONS = """
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def other(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] - T.float32(1)
"""

EXTERNAL_CALL = """
    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for i in range(4):
            with T.block("rows"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 2:vi * 2 + 2, 0:4])
                T.writes(B[vi * 2:vi * 2 + 2, 0:4])
                X = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:4], (2, 4), strides=("sx", 1),
                                   offset_factor=4)
                Y = T.match_buffer(B[vi * 2:vi * 2 + 2, 0:4], (2, 4), strides=("sy", 1),
                                   offset_factor=4)
                T.call_extern("int32", "swap_rows", Y.access_ptr("w"), X.access_ptr("r"),
                              X.strides[0])
"""


def draw(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


A8, A86, A812, A48 = draw((8,)), draw((8, 6)), draw((8, 12)), draw((4, 8))
TILES = A812.reshape(2, 4, 3, 4).transpose(0, 3, 2, 1).reshape(8, 12) * np.float32(12)
ROWS = np.stack([np.random.default_rng(s).permutation(9) for s in range(3)]).astype("float32")
HALVED = np.array([1, 2, 3, 9, 1000], "int32")
A6 = draw((6,))

CONSTRUCTS = {
    "opaque block": (OPAQUE_BLOCK, [A8], [A8.reshape(4, 2)[:, ::-1].ravel()]),
    "nested blocks": (NESTED_BLOCKS, [A86], [A86.sum(1)]),
    "view of a region": (VIEW_OF_A_REGION, [A812], [TILES]),
    "view in a scope": (SCOPED_VIEW, [A48], [A48[:, ::-1] + 1]),
    "where": (WHERE, [draw((10,))], [draw((10,)) * 2]),
    "let": (LET_STATEMENTS, [A6], [2 * (A6 * A6 + (A6 + 1) ** 2) - A6]),
    "while": (WHILE_LOOP, [HALVED], [np.array([0, 1, 1, 3, 9], "int32")]),
    "argmax": (ARGMAX, [ROWS], [ROWS.argmax(1).astype("int32"), ROWS.max(1)]),
    "symbolic shapes": (SYMBOLIC_SHAPES, [A86, A6], [A86 @ A6]),
    "two functions": (TWO_FUNCTIONS, [A8[:4]], [A8[:4] + 1]),
}


def module(functions):
    return from_source("@I.ir_module\nclass Module:" + functions)


def run(mod, target, inputs, outputs, function="main"):
    results = [mlcweb.nd.array(np.zeros_like(array)) for array in outputs]
    built = mlcweb.build(mod, target=target)
    built[function](*[mlcweb.nd.array(array) for array in inputs], *results)
    for got, wanted in zip(results, outputs, strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("dialect", ["tir", "s_tir"])
@pytest.mark.parametrize("functions", [*[c[0] for c in CONSTRUCTS.values()], EXTERNAL_CALL])
def test_prints_and_reads_back(functions, dialect):
    mod = module(functions)
    text = mod.script(dialect=dialect)
    assert ("T.sblock(" in text) == (dialect == "s_tir") == ("T.block(" not in text)
    assert_structural_equal(from_source(text), mod)
    assert from_source(text).script(dialect=dialect) == text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_computes(name, target):
    functions, inputs, outputs = CONSTRUCTS[name]
    run(module(functions), target, inputs, outputs)


@pytest.mark.parametrize("target", TARGETS)
def test_the_other_function_of_a_module(target):
    run(module(TWO_FUNCTIONS), target, [A8[:4]], [A8[:4] - 1], "other")


@pytest.mark.parametrize("target", TARGETS)
def test_external_calls_find_a_registered_function(target):
    """Pointers arrive as the memory that they point to, from the element on."""

    def swap_rows(to, source, stride):
        to[0:4], to[4:8] = source[stride : stride + 4], source[0:4]

    register_func("swap_rows", swap_rows)
    try:
        a = draw((8, 4))
        run(module(EXTERNAL_CALL), target, [a], [a.reshape(4, 2, 4)[:, ::-1].reshape(8, 4)])
    finally:
        remove_global_func("swap_rows")
