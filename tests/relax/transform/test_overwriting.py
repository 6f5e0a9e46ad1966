"""Functions that write over an argument compute what they computed before, and no others do."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.relax.transform.overwriting import may_write_over
from mlcweb.script import from_source
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from tests.relax.transform.running import arguments

TARGETS = ("llvm", "wasm")


@pytest.mark.parametrize(
    ("program", "places"),
    [
        ("i, j in T.grid(8, 8)|vi, vj|i, j|C[vi, vj] = A[vi, vj] + B[vj, vi]", [0]),
        ("i, j in T.grid(8, 8)|vi, vj|i, j|C[vi, vj] = A[vi, vj] + B[vi, vj] * A[vi, vj]", [0, 1]),
        ("i, j in T.grid(8, 8)|vi, vj|i, j|C[vi, vj] = A[vi, vj] + A[vi, 0]", []),
        ("i, j in T.grid(8, 8)|vi, vj|i, j|C[7 - vi, vj] = A[7 - vi, vj] + B[vi, vj]", [0]),
        # The last tile sticks out.
        ("i, j in T.grid(8, 9)|vi, vj|i, j % 8|C[vi, vj] = A[vi, vj] + B[vi, vj]", []),
        # Each element is written twice.
        ("i, j, k in T.grid(8, 8, 2)|vi, vj|i, j|C[vi, vj] = A[vi, vj] + B[vi, vj]", []),
        ("i, j in T.grid(8, 8)|vi, vj|i, j|C[vi, 0] = A[vi, 0] + B[vi, vj]", []),
        # Tiles, whose last one sticks out and is cut off.
        ("i, j, k in T.grid(8, 3, 3)|vi, vj|i, j * 3 + k|T.where(j * 3 + k < 8)\n"
         "            C[vi, vj] = A[vi, vj] + B[vi, vj]", [0, 1]),
        ("p in range(64)|vp|p|C[vp // 8, vp % 8] = A[vp // 8, vp % 8] + B[vp % 8, vp // 8]", [0]),
    ],
)  # fmt: skip
def test_which_arguments_may_be_written_over(program: str, places: list[int]) -> None:
    loops, names, values, statement = program.split("|")
    pairs = zip(names.split(", "), values.split(", "), strict=True)
    extent = 64 if names == "vp" else 8
    axes = "\n            ".join(f"{n} = T.axis.spatial({extent}, {v})" for n, v in pairs)
    func = from_source(f"""
@T.prim_func(private=True)
def f(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
    for {loops}:
        with T.block("C"):
            {axes}
            {statement}
""")
    assert [place for place in (0, 1) if may_write_over(func, place)] == places


@I.ir_module
class Kept:
    """Functions that read what they would have written over, or write it several times."""

    @T.prim_func(private=True)
    def two_blocks(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("second"):
                vi = T.axis.spatial(8, i)
                C[vi] = C[vi] + A[7 - vi]

    @T.prim_func(private=True)
    def later(A: T.Buffer((8,)), C: T.Buffer((8,))):
        total = T.alloc_buffer((1,))
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("sum"):
                vi = T.axis.reduce(8, i)
                total[0] = total[0] + A[vi]

    @T.prim_func(private=True)
    def other_type(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.Cast("float32", A[vi])

    @T.prim_func(private=True)
    def twice(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for k in range(2):
            with T.block("around"):
                vk = T.axis.spatial(2, k)
                for i in range(8):
                    with T.block("C"):
                        vi = T.axis.spatial(8, i)
                        C[vi] = A[vi] + T.float32(1)

    @T.prim_func(private=True)
    def reversed_first(A: T.Buffer((8,)), C: T.Buffer((8,))):
        copy = T.decl_buffer((8,), data=A.data)
        total = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("total"):
                vi = T.axis.spatial(8, i)
                total[vi] = copy[7 - vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + total[vi]


@pytest.mark.parametrize("var", Kept.functions, ids=str)
def test_what_reads_or_writes_otherwise_stays(var: tvm.ir.GlobalVar) -> None:
    assert not may_write_over(Kept[var], 0)


RESIDUAL = """
@R.function
def main(x: R.Tensor((48, 64), "float32"), w: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        a = R.nn.relu(x)
        b = R.nn.relu(R.matmul(a, w))
        c = R.add(R.matmul(b, w), a)
        d = R.nn.relu(R.matmul(c, w))
        e = R.add(R.matmul(d, w), c)
        f = R.add(R.matmul(e, w), e)
        gv = R.add(R.matmul(f, w), x)
        R.output(gv)
    return gv
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_is_written_over_an_operand_that_dies_there(target: str) -> None:
    mod = IRModule.from_expr(from_source(RESIDUAL))
    executable = relax.build(mod, target)
    x, w = inputs = arguments(mod["main"])
    a = np.maximum(x, 0)
    c = np.maximum(a @ w, 0) @ w + a
    e = np.maximum(c @ w, 0) @ w + c
    expected = (e @ w + e) @ w + x
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    taken = [tvm.nd.array(each) for each in inputs]
    for _ in range(2):
        np.testing.assert_allclose(main(*taken).numpy(), expected, rtol=1e-4)
    for array, content in zip(taken, inputs, strict=True):
        np.testing.assert_array_equal(array.numpy(), content)
    # c over a, and e over c; f reads e as an operand of its product, and x is the caller's.
    assert executable.as_text().count("_inplace(") == 2
