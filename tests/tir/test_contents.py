"""What is in a statement or expression."""

import gc
import weakref

from mlcweb.ir.node import replace
from mlcweb.tir import Add, BufferLoad, BufferStore, Evaluate, SeqStmt, Var, const, decl_buffer, exp
from mlcweb.tir.contents import accesses_in, buffers_written, calls_in, variables_used

I, J = Var("i", "int32"), Var("j", "int32")
A, B = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "B")
X = decl_buffer((8,), "float32", "X")


def test_accesses_come_in_the_order_of_the_text():
    inner = BufferLoad(B, (I,))
    outer = BufferLoad(A, (inner,))
    store = BufferStore(A, Add(outer, const(1)), (J,))
    for _ in range(2):  # the second time from what was found
        assert accesses_in(store) == (store, outer, inner)
        assert accesses_in(outer) == (outer, inner)
        assert accesses_in(store.indices[0]) == ()
    other = replace(store, value=inner)
    assert accesses_in(SeqStmt((store, other))) == (store, outer, inner, other, inner)
    assert buffers_written(SeqStmt((store, other))) == [A]


def test_calls_come_in_the_order_of_the_text():
    inner = exp(BufferLoad(X, (I,)))
    outer = exp(inner + inner)
    assert calls_in(Evaluate(outer)) == (outer, inner, inner)
    assert calls_in(inner) == (inner,)
    assert calls_in(BufferStore(A, const(1), (I,))) == ()


def test_variables_used_are_those_that_occur():
    assert variables_used(I) == {I}
    assert variables_used(const(1)) == frozenset()
    assert variables_used(I + J * 2) == {I, J}
    assert variables_used(BufferStore(A, BufferLoad(B, (I,)), (J,))) == {I, J}


def test_what_is_found_keeps_no_node_alive():
    """Not even until garbage is collected: no node refers to itself."""
    gc.disable()
    try:
        store = BufferStore(X, exp(BufferLoad(X, (I + 1,))), (J,))
        body = SeqStmt((store, store))
        assert accesses_in(body) and calls_in(body) and variables_used(body)
        gone = weakref.ref(store)
        del store, body
        assert gone() is None
    finally:
        gc.enable()
