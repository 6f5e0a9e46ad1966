"""`tvm.tir.ir_builder`: statements that nested `with` builds."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.script.ir_builder import nested
from mlcweb.te import thread_axis
from mlcweb.tir import AttrStmt, Evaluate, LetStmt, PrimFunc, Var, call_extern, decl_buffer, stmt


def text(ib: nested.IRBuilder) -> list[str]:
    return str(ib.get()).splitlines()


def test_loops_branches_and_stores_compute() -> None:
    ib = nested.create()
    n = Var("n", "int32")
    buffer = decl_buffer((16,), "int32", name="A")
    A = ib.buffer_ptr(buffer)
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(i < 12):
            A[i] = A[i] + 1
        with ib.else_scope():
            A[i] = 7
    func = PrimFunc([buffer, n], ib.get()).with_attr("global_symbol", "main")
    array = tvm.nd.array(np.arange(16, dtype="int32"))
    tvm.build(func, target="interpreter")["main"](array, 14)
    assert array.numpy().tolist() == [*range(1, 13), 7, 7, 14, 15]


def test_what_reaches_over_all_that_follows() -> None:
    ib = nested.create()
    ib.scope_attr(thread_axis((0, 32), "threadIdx.x"), "thread_extent", 32)
    with ib.new_scope():
        tile = ib.allocate("float32", 8, name="tile", scope="shared")
        half = ib.let("half", 4)
        tile[half] = 1
    ib.emit(call_extern("int32", "after"))
    built = ib.get()
    assert isinstance(built, AttrStmt) and built.attr_key == "thread_extent"
    wanted = from_source("""
@T.prim_func(private=True)
def main():
    with T.launch_thread("threadIdx.x", 32) as tx:
        with T.decl_buffer((8,), scope="shared") as tile:
            half: T.int32 = 4
            tile[half] = T.float32(1)
        T.call_extern("int32", "after")
""")
    assert_structural_equal(PrimFunc([], built), wanted)


def test_bounds_types_and_kinds_of_loops() -> None:
    ib = nested.create()
    for kind in ("serial", "parallel", "vectorize", "unroll"):
        with ib.for_range(2, 10, kind=kind) as i:
            ib.emit(i)
    assert text(ib) == [
        "for i in range(2, 10):", "    T.evaluate(i)",
        "for i_1 in T.parallel(2, 10):", "    T.evaluate(i_1)",
        "for i_2 in T.vectorized(2, 10):", "    T.evaluate(i_2)",
        "for i_3 in T.unroll(2, 10):", "    T.evaluate(i_3)",
    ]  # fmt: skip
    with ib.for_range(0, Var("n", "int64")) as i:
        assert i.dtype == "int64"
    with ib.while_loop(Var("x") < 3):
        pass
    assert text(ib)[-2:] == ["while x < 3:", "    T.evaluate(0)"]


def test_one_index_counts_elements_of_several_dimensions() -> None:
    ib = nested.create()
    A = ib.buffer_ptr(decl_buffer((4, 3, 5), "float32", name="A"))
    k = Var("k")
    assert str(A[k]) == "A[k // 5 // 3, k // 5 % 3, k % 5]"
    assert str(A[1, 2, k]) == "A[1, 2, k]"
    with pytest.raises(TVMError, match="content type"):
        A[0, 0, 0] = Var("x", "int8")


def test_pointers_are_parameters() -> None:
    ib = nested.create()
    A = ib.pointer("float16", name="A", scope="local")
    A[3] = A[2] * A[1]
    func = PrimFunc([A], LetStmt(Var("n"), 10, ib.get()))
    assert func.params[0].type_annotation.storage_scope == "local"
    assert isinstance(func.body.body, stmt.BufferStore)


def test_a_function_wraps_what_follows() -> None:
    ib = nested.create()
    v = Var("v", "float32")
    ib.emit(lambda body: LetStmt(v, 2.0, body))
    ib.emit(Evaluate(v))
    assert text(ib) == ["v: T.float32 = T.float32(2)", "T.evaluate(v)"]
    assert text(ib) == ["T.evaluate(0)"]


def test_else_follows_if() -> None:
    ib = nested.create()
    with ib.if_scope(Var("c", "bool")):
        ib.emit(Evaluate(1))
    ib.emit(Evaluate(2))
    with pytest.raises(TVMError, match="can only follow an if_scope"):
        ib.else_scope()


def test_a_thread_axis_has_a_tag() -> None:
    axis = thread_axis((0, 32), "threadIdx.x", name="tx")
    assert (axis.var.name, axis.thread_tag, axis.dom.extent.value) == ("tx", "threadIdx.x", 32)
    with pytest.raises(ValueError, match="needs a tag"):
        thread_axis((0, 32))
