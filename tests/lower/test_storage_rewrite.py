"""StorageRewrite under TVM's name. The texts expected are what TVM 0.27 prints, in our spelling and
with names of our own for views."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.ir.transform import PassContext
from mlcweb.ir.visitor import find_nodes
from mlcweb.lower import transform
from mlcweb.script import from_source
from mlcweb.tir import stmt as S
from tests.lower.test_tvm_names import body

HEAD = "@T.prim_func\ndef main(A: T.Buffer((64,), 'float32'), n: T.int32):\n"

CHAIN = """
    B = T.decl_buffer((64,))
    C = T.decl_buffer((64,))
    D = T.decl_buffer((32,))
    E = T.decl_buffer((64,), "int8")
    unused = T.decl_buffer((64,))
    for i in range(64):
        B[i] = A[i] + T.float32(1)
    for i in range(64):
        C[i] = B[63 - i] * T.float32(2)
    for i in range(32):
        D[i] = C[63 - i] * T.float32(2)
    for i in range(64):
        E[i] = T.Cast("int8", D[i // 2])
    for i in range(64):
        A[i] = T.Cast("float32", E[i])"""

IN_PLACE = """
    B = T.decl_buffer((8, 8))
    C = T.decl_buffer((8, 8))
    for i, j in T.grid(8, 8):
        B[i, j] = A[i * 8 + j]
    for i, j in T.grid(8, 8):
        C[i, j] = T.if_then_else(i < n, B[i, j] * T.float32(2), T.float32(3))
    for i, j in T.grid(8, 8):
        A[i * 8 + j] = C[i, j]"""

BRANCHES = """
    for i in range(2):
        if i < n:
            B = T.decl_buffer((64,))
            for j in range(64):
                B[j] = A[63 - j]
            for j in range(64):
                A[j] = B[j]
        else:
            C = T.decl_buffer((64,))
            for j in range(64):
                C[j] = A[63 - j] + T.float32(1)
            for j in range(64):
                A[j] = C[j]"""

PARALLEL = """
    for i in T.parallel(4):
        B = T.decl_buffer((8,))
        for j in range(8):
            B[j] = A[i * 16 + j]
        C = T.decl_buffer((8,))
        for j in range(8):
            C[j] = B[7 - j]
        D = T.decl_buffer((4,))
        for j in range(4):
            D[j] = C[j] + C[j + 4]
        for j in range(4):
            A[i * 16 + j] = D[j]"""

EXPECTED = [
    (CHAIN, """
B = T.decl_buffer((64,))
C = T.decl_buffer((64,))
B_1 = T.decl_buffer((64,), data=B.data)
C_1 = T.decl_buffer((64,), data=C.data)
D = T.decl_buffer((32,), data=B.data)
E = T.decl_buffer((64,), "int8", data=C.data)
for i in range(64):
    B_1[i] = A[i] + T.float32(1)
for i in range(64):
    C_1[i] = B_1[63 - i] * T.float32(2)
for i in range(32):
    D[i] = C_1[63 - i] * T.float32(2)
for i in range(64):
    E[i] = T.Cast("int8", D[i // 2])
for i in range(64):
    A[i] = T.Cast("float32", E[i])"""),
    (IN_PLACE, """
B = T.decl_buffer((8, 8))
C = T.decl_buffer((8, 8), data=B.data)
for i, j in T.grid(8, 8):
    B[i, j] = A[i * 8 + j]
for i, j in T.grid(8, 8):
    C[i, j] = T.if_then_else(i < n, B[i, j] * T.float32(2), T.float32(3))
for i, j in T.grid(8, 8):
    A[i * 8 + j] = C[i, j]"""),
    (BRANCHES, """
B = T.decl_buffer((64,))
for i in range(2):
    if i < n:
        for j in range(64):
            B[j] = A[63 - j]
        for j in range(64):
            A[j] = B[j]
    else:
        C = T.decl_buffer((64,), data=B.data)
        for j in range(64):
            C[j] = A[63 - j] + T.float32(1)
        for j in range(64):
            A[j] = C[j]"""),
]  # fmt: skip


def rewritten(func: tir.PrimFunc) -> IRModule:
    with PassContext(instruments=[VerifyEachPass()]):
        return transform.StorageRewrite()(IRModule({"main": func}))


def allocations(func: tir.PrimFunc) -> list[str]:
    return [
        f"{node.buffer.name}{node.buffer.shape}" for node in find_nodes(func.body, S.AllocBuffer)
    ]


def computed(func: tir.PrimFunc, n: int, target: str = "interpreter") -> list[float]:
    array = tvm.nd.array(np.arange(64, dtype="float32") % 7)
    tvm.build(IRModule({"main": func}), target)["main"](array, n)
    return array.numpy().tolist()


@pytest.mark.parametrize(("text", "expected"), EXPECTED)
def test_buffers_share_memory(text: str, expected: str) -> None:
    func = from_source(HEAD + text)
    new = rewritten(func)
    assert body(new).strip() == expected.strip()
    for n in (0, 1, 5):
        assert computed(new["main"], n) == computed(func, n) == computed(new["main"], n, "wasm")


def test_iterations_that_run_at_once_have_memory_of_their_own() -> None:
    func = from_source(HEAD + PARALLEL)
    new = rewritten(func)
    assert body(new).startswith("for i in T.parallel(4):\n    B = T.decl_buffer((8,))\n")
    assert len(allocations(new["main"])) == 2
    assert computed(new["main"], 0) == computed(func, 0)


def test_special_memory_is_one_allocation() -> None:
    """TVM adds the offset to the indices of a buffer, which it declares without."""
    text = (
        HEAD
        + """
    B = T.decl_buffer((5,), "int8", scope="local.L0A")
    C = T.decl_buffer((8,), scope="local.L0A")
    D = T.decl_buffer((8,), "float64", scope="local.L0A")
    for i in range(5):
        B[i] = T.Cast("int8", A[i])
    for i in range(8):
        C[i] = A[i] + T.float32(1)
        D[i] = T.Cast("float64", C[7 - i] if i > 4 else A[i])
    for i in range(5):
        A[i] = T.Cast("float32", D[i + 3]) + C[i] + T.Cast("float32", B[i])"""
    )
    func = from_source(text)
    new = rewritten(func)["main"]
    assert allocations(new) == ["B(104,)"]
    for line in (
        'C = T.decl_buffer((8,), data=B.data, elem_offset=2, scope="local.L0A")',
        'D = T.decl_buffer((8,), "float64", data=B.data, elem_offset=5, scope="local.L0A")',
    ):
        assert line in new.script()
    assert computed(new, 0) == computed(func, 0)


APART = {
    "elements that are computed twice": """
    B = T.decl_buffer((64,))
    C = T.decl_buffer((64,))
    for i in range(64):
        B[i] = A[i]
    for k, i in T.grid(2, 64):
        C[i] = B[i] + T.float32(1)
    for i in range(64):
        A[i] = C[i]""",
    "elements in another order": """
    B = T.decl_buffer((64,))
    C = T.decl_buffer((64,))
    for i in range(64):
        B[i] = A[i]
    for i in range(64):
        C[i] = B[63 - i]
    for i in range(64):
        A[i] = C[i]""",
    "what each iteration reads": """
    B = T.decl_buffer((8,))
    for i in range(8):
        B[i] = A[i]
    for i in range(4):
        C = T.decl_buffer((8,))
        for j in range(8):
            C[j] = B[7 - j] + T.float32(1)
        for j in range(8):
            A[i * 8 + j] = C[j]""",
    "sizes that depend on loops": """
    for i in range(8):
        B = T.decl_buffer((i + 1,))
        for j in range(i + 1):
            B[j] = A[j]
        C = T.decl_buffer((i + 1,))
        for j in range(i + 1):
            C[j] = B[i - j]
        A[i] = C[i]""",
    "registers": """
    B = T.decl_buffer((1,))
    C = T.decl_buffer((1,))
    for i in range(64):
        B[0] = A[i]
        C[0] = B[0] + T.float32(1)
        A[i] = C[0]""",
}


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_buffers_that_stay_apart(text: str) -> None:
    func = from_source(HEAD + text)
    new = rewritten(func)["main"]
    assert sorted(allocations(new)) == sorted(allocations(func))
    assert computed(new, 0) == computed(func, 0)


def test_blocks_are_lowered_first() -> None:
    func = from_source(HEAD + "    with T.block():\n        A[0] = T.float32(1)")
    with pytest.raises(TVMError, match="run LowerOpaqueBlock first"):
        rewritten(func)


def random_chain(random: Random) -> str:
    """Buffers of different sizes and types that are computed from each other, some in loops."""
    lines, sizes = [], {"A": 64}
    for name in "BCDEFGH":
        size, dtype = random.choice((16, 32, 64)), random.choice(("float32", "int32", "int16"))
        lines.append(f'{name} = T.decl_buffer(({size},), "{dtype}")')
        values = []
        for _ in range(random.choice((1, 1, 2))):
            source = random.choice([*sizes][-3:])
            index = random.choice(("i", f"{size - 1} - i"))
            index = index if sizes[source] >= size else f"({index}) % {sizes[source]}"
            values.append(f'T.Cast("{dtype}", {source}[{index}])')
        loops = random.choice((f"i in range({size})", f"k, i in T.grid(2, {size})"))
        lines.append(
            f"for {loops}:\n        {name}[i] = {' + '.join(values)} + T.Cast('{dtype}', 1)"
        )
        sizes[name] = size
    lines.append(f'for i in range({sizes["H"]}):\n        A[i] = T.Cast("float32", H[i])')
    return HEAD + "".join(f"    {line}\n" for line in lines)


def test_random_chains() -> None:
    fewer = 0
    for seed in range(60):
        func = from_source(random_chain(Random(seed)))
        new = rewritten(func)["main"]
        fewer += len(allocations(new)) < len(allocations(func)) - 1
        assert computed(new, 0) == computed(func, 0), func.script()
    assert fewer > 50
