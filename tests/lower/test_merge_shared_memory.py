"""One allocation of dynamic shared memory for each launch. Where buffers begin in it is what TVM
0.27 prints."""

from textwrap import dedent

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import rewrite_nodes
from mlcweb.lower import transform
from mlcweb.script import from_source
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.substitute import substitute

HEAD = """@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    with T.launch_thread("blockIdx.x", 4) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
"""


def program(text, buffers):
    """A kernel with buffers by name, size and type; `{S}` in an index is where S begins: at 0."""
    text = text.format(**{name: "" for name, *_ in buffers})
    allocations = (
        f'            {name} = T.decl_buffer(({size},), "{dtype}", scope="shared.dyn")\n'
        for name, size, dtype in buffers
    )
    return from_source(HEAD + "".join(allocations) + text)


def merged(func):
    return transform.MergeSharedMemoryAllocations()(func)


def first_thread(func):
    def body(statement):
        if not S.is_launch(statement):
            return statement
        return substitute(statement.body, {statement.node.var: const(0)})

    return func.with_body(rewrite_nodes(func.body, S.AttrStmt, body))


def inside(func):
    """The lines below the launch of blocks, without their common indentation."""
    lines = func.script().splitlines()
    start = next(n for n, line in enumerate(lines) if "blockIdx" in line)
    return dedent("\n".join(lines[start + 1 :])).splitlines()


ONE_AFTER_THE_OTHER = """
            for i in range(4):
                S[i * 32 + tx{S}] = A[bx * 128 + i * 32 + tx]
            if tx < 8:
                H[tx{H}] = T.Cast("float16", S[tx + 8{S}])
            for i in range(8):
                U[i * 32 + tx{U}] = T.Cast("float32", H[tx{H}])
            for i in range(2):
                W[i * 32 + tx{W}] = U[i{U}]
            B[bx * 32 + tx] = W[tx{W}]
"""
SMALLER_ONES_TOGETHER = """
            S[tx{S}] = A[tx]
            H[tx{H}] = T.Cast("float16", A[tx])
            B[tx] = S[tx{S}] + T.Cast("float32", H[tx{H}])
            U[tx{U}] = A[tx]
            W[tx{W}] = A[tx] + U[tx{U}]
            B[tx] = W[tx{W}] + U[tx{U}]
            X[tx{X}] = T.Cast("int8", A[tx])
            B[tx] = T.Cast("float32", X[tx{X}])
"""
IN_LOOPS = """
            for i in range(4):
                S[tx{S}] = A[tx]
                for j in range(4):
                    U[tx + j{U}] = S[tx{S}] + T.float32(1)
                    H[tx{H}] = U[j{U}]
                    B[tx] = H[tx{H}]
                W[tx{W}] = T.Cast("float16", U[tx{U}])
                B[tx] = T.Cast("float32", W[tx{W}])
            Z[tx{Z}] = A[tx]
            B[tx] = Z[tx{Z}] + B[tx]
"""
CASES = [
    (
        ONE_AFTER_THE_OTHER,
        [("S", 128, "float32"), ("H", 100, "float16"), ("U", 256, "float32"), ("W", 64, "float32")],
        1280, "WUHS", {"S": 64, "U": 64},
    ),
    (
        SMALLER_ONES_TOGETHER,
        [("S", 128, "float32"), ("H", 100, "float16"), ("U", 1024, "float32"),
         ("W", 64, "float32"), ("X", 5000, "int8")],
        5000, "XWUHS", {"H": 256, "W": 192},
    ),
    (
        IN_LOOPS,
        [("S", 128, "float32"), ("H", 4, "float32"), ("U", 128, "float32"),
         ("W", 64, "float16"), ("Z", 8192, "float32")],
        32768, "ZWHUS", {"S": 128, "H": 288, "W": 512},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "buffers", "nbytes", "order", "starts"), CASES)
def test_buffers_begin_where_tvm_has_them_begin(text, buffers, nbytes, order, starts):
    allocation, *rest = inside(merged(program(text, buffers)))
    declared, (launch, *kernel) = rest[: len(buffers)], rest[len(buffers) :]
    assert allocation == f'buf_dyn_shmem = T.decl_buffer(({nbytes},), "uint8", scope="shared.dyn")'
    assert [line.partition(" ")[0] for line in declared] == list(order)
    assert all('data=buf_dyn_shmem.data, scope="shared.dyn")' in line for line in declared)
    assert launch == 'with T.launch_thread("threadIdx.x", 32) as tx:'
    moved = {name: f" + {starts[name]}" if name in starts else "" for name, *_ in buffers}
    assert dedent("\n".join(kernel)) == dedent(text.format(**moved)).strip()


@pytest.mark.parametrize(("text", "buffers", "nbytes", "order", "starts"), CASES[1:])
def test_merged_memory_gives_the_same_numbers(text, buffers, nbytes, order, starts):
    """In the first thread, as if it were alone: those here do not wait for each other. In the
    first program it reads what only others write."""
    func = program(text, buffers)
    a = np.arange(1024, dtype="float32") % 100 + 1
    results = []
    for each in (func, merged(func)):
        arrays = [tvm.nd.array(a), tvm.nd.array(np.zeros_like(a))]
        tvm.build(first_thread(each), target="llvm")["main"](*arrays)
        results.append(arrays[1].numpy())
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_numbers_share_nothing_and_pointers_begin_in_the_whole():
    """TVM has no place for a single number, and leaves pointers where they were."""
    text = """
            V[0] = A[tx]
            S[tx] = A[tx] + V[0]
            T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), V.data, 0, 1, 1))
            B[tx] = S[tx]
"""
    shown = [
        line.strip()
        for line in inside(merged(program(text, [("V", 1, "float32"), ("S", 128, "float32")])))
    ]
    assert shown[0] == 'buf_dyn_shmem = T.decl_buffer((516,), "uint8", scope="shared.dyn")'
    assert "V[128] = A[tx]" in shown
    pointer = 'T.tvm_access_ptr(T.type_annotation("float32"), buf_dyn_shmem.data, 128, 1, 1)'
    assert pointer in shown


def test_one_buffer_stays_and_what_cannot_be_merged_is_refused():
    text = "            S[tx] = A[tx]\n            B[tx] = S[tx]\n"
    one = program(text, [("S", 128, "float32")])
    assert merged(one) is one
    two = [("S", 128, "float32"), ("W", 64, "float32")]
    call = '            T.evaluate(T.call_extern("int32", "f", W.data))\n'
    with pytest.raises(TVMError, match='"W" points to shared memory that is merged'):
        merged(program(text + call, two))
    with pytest.raises(TVMError, match=r'"W" has shape \(8, 8\)'):
        merged(program(text + "            W[0, 0] = A[0]\n", [two[0], ("W", "8, 8", "float32")]))
