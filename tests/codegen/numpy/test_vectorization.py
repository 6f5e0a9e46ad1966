"""Which loops become array operations, and which have to stay."""

import numpy as np
import pytest

from mlcweb.codegen.numpy.dependence import can_run_after, keeps_order
from mlcweb.codegen.numpy.leaves import leaves_of
from mlcweb.codegen.numpy.support import contract
from mlcweb.runtime import build, nd
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import Schedule
from tests.codegen.corpus import PROGRAMS
from tests.programs import matmul


def source_of(program) -> str:
    return build(program, "numpy").get_source()


def loops_in(program) -> int:
    return sum(line.lstrip().startswith("for ") for line in source_of(program).splitlines())


def check_matmul(module, rows=128, inner=128, columns=128):
    generator = np.random.default_rng(0)
    a = generator.random((rows, inner), "float32")
    b = generator.random((inner, columns), "float32")
    c = nd.empty((rows, columns))
    build(module, "numpy")["main"](nd.array(a), nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_a_matrix_product_is_one_operation():
    body = source_of(matmul()).split("\n", 1)[1]
    assert body == (
        "    # C\n    C[0:128, 0:128] = float32(0.0)\n"
        "    # C\n    C[0:128, 0:128] += A[0:128, 0:128] @ B[0:128, 0:128]\n"
    )


@pytest.mark.parametrize("factor", [1, 2, 3, 7, 16, 24, 128])
def test_scheduled_products_stay_one_operation(factor):
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, [None, factor])
    sch.reorder(i, outer, k, inner)
    if 128 % factor == 0:
        sch.decompose_reduction(block, k)
    assert source_of(sch.mod).count(" @ ") == 1
    assert loops_in(sch.mod) == 0
    check_matmul(sch.mod)


def test_fused_and_tiled_products_stay_one_operation():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [2, 4, 16])
    j0, j1, j2 = sch.split(j, [2, 8, 8])
    k0, k1 = sch.split(k, [64, 2])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    written = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(written, j1)
    sch.parallel(sch.fuse(i0, j0, i1, j1))
    assert loops_in(sch.mod) == 0
    check_matmul(sch.mod)


@pytest.mark.parametrize(
    ("name", "loops"),
    [
        ("pad_conv", 0), ("softmax", 0), ("triangle", 0), ("int8dot", 0), ("tensorized", 0),
        ("uneven_split", 0), ("floatmath", 0), ("transpose_sum", 0), ("gather_rows", 0),
        ("rowscan", 1), ("scan", 1),
        ("shared_scalar", 1), ("stencil_inplace", 2), ("moving_average", 1),
    ],
)  # fmt: skip
def test_loops_stay_only_where_iterations_depend_on_each_other(name, loops):
    assert loops_in(PROGRAMS[name]) == loops


def leaves(source):
    return leaves_of(from_source(source).body, [])


PRODUCER_AND_CONSUMER = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i + {write}] = A[i]
        C[i] = B[i + {read}]
"""


@pytest.mark.parametrize(("write", "read", "allowed"), [(0, 0, True), (0, 1, False), (1, 0, True)])
def test_a_loop_is_split_unless_a_later_iteration_overwrites_what_was_read(write, read, allowed):
    first, second = leaves(PRODUCER_AND_CONSUMER.format(write=write, read=read))
    assert can_run_after(first, second, 0) is allowed


def test_the_order_of_a_recurrence_is_found():
    (leaf,) = leaves(
        """
@T.prim_func
def main(A: T.Buffer((6, 9), "float32")):
    for i, k in T.grid(6, 8):
        A[i, k + 1] = A[i, k] + T.float32(1)
"""
    )
    rows, columns = leaf.loops
    assert not keeps_order(leaf, 0, ())
    assert not keeps_order(leaf, 0, (rows,))
    assert keeps_order(leaf, 0, (columns,))


@pytest.mark.parametrize(
    ("spec", "x", "y"),
    [
        ("ik,kj->ij", (2, 3), (3, 4)),
        ("ik,jk->ji", (2, 3), (4, 3)),
        ("bik,bkj->bij", (5, 2, 3), (5, 3, 4)),
        ("a,a->", (7,), (7,)),
        ("a,b->ba", (3,), (4,)),
        ("acd,bc->ab", (2, 3, 4), (5, 3)),
        ("nchwij,ocij->nohw", (2, 3, 4, 4, 3, 3), (5, 3, 3, 3)),
    ],
)
def test_contractions_are_einsums(spec, x, y):
    generator = np.random.default_rng(1)
    a, b = generator.integers(-9, 9, x), generator.integers(-9, 9, y)
    np.testing.assert_array_equal(contract(spec, a, b), np.einsum(spec, a, b))


def test_symbolic_shapes_are_compiled_for_each_shape():
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    kernel = build(main, "numpy")
    for size in (0, 1, 5, 64):
        values = np.arange(size, dtype="float32")
        result = nd.empty((size,))
        kernel(nd.array(values), result)
        np.testing.assert_array_equal(result.numpy(), 2 * values)


def test_arrays_that_share_memory_are_handled_in_order():
    @T.prim_func
    def shift(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(7):
            B[i + 1] = A[i]

    same = nd.array(np.arange(8, dtype="int32"))
    build(shift, "numpy")(same, same)
    assert same.numpy().tolist() == [0] * 8


def test_out_of_bounds_accesses_are_errors_here_too():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i - 1]

    with pytest.raises(IndexError, match=r"Reading A\[-1\]"):
        build(main, "numpy")(nd.empty((8,)), nd.empty((8,)))


def test_gathered_rows_are_checked_while_running():
    @T.prim_func
    def main(
        A: T.Buffer((4, 2), "float32"), I: T.Buffer((3,), "int32"), B: T.Buffer((3, 2), "float32")
    ):
        for i, j in T.grid(3, 2):
            with T.block("take"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[I[vi], vj]

    assert loops_in(main) == 0
    kernel, table = build(main, "numpy"), nd.array(np.arange(8, dtype="float32").reshape(4, 2))
    result = nd.empty((3, 2))
    kernel(table, nd.array(np.array([3, 0, 3], "int32")), result)
    assert result.numpy().tolist() == [[6, 7], [0, 1], [6, 7]]
    with pytest.raises(IndexError, match=r'Reading A\[4, 0\] in block "take" is out of bounds'):
        kernel(table, nd.array(np.array([0, 4, 1], "int32")), result)


def test_statements_of_different_loops_are_not_compared(monkeypatch):
    """Lowering stays near linear in the number of statements."""
    compared = []

    def counted(earlier, later, depth):
        compared.append((earlier, later))
        return can_run_after(earlier, later, depth)

    monkeypatch.setattr("mlcweb.codegen.numpy.source.can_run_after", counted)
    text = "@T.prim_func\ndef main(A: T.Buffer((8,), 'int32'), B: T.Buffer((64,), 'int32')):\n"
    for n in range(50):
        text += f"    for i in range(8):\n        B[i + {n}] = A[i] + {n}\n"
        text += f"        A[i] = B[i + {n}]\n"
    kernel = build(from_source(text), "numpy")
    assert len(compared) == 50
    a, b = nd.array(np.arange(8, dtype="int32")), nd.empty((64,), "int32")
    kernel["main"](a, b)
    np.testing.assert_array_equal(a.numpy(), np.arange(8) + sum(range(50)))
