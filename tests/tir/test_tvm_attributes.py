"""Attributes and methods of nodes under TVM's names."""

from __future__ import annotations

from mlcweb import tir
from mlcweb.tir.arithmetic import const


def test_stores_and_offsets_of_a_buffer() -> None:
    buffer = tir.decl_buffer((4, 8), "float32", name="A")
    assert [int(offset) for offset in buffer.offset_of([1, 2])] == [10]
    store = buffer.vstore([0, 1], const(1.0, "float32"))
    assert str(store) == "A[0, 1] = T.float32(1)"
    vector = buffer.vstore([0, 4], tir.Broadcast(const(1.0, "float32"), 4))
    assert str(vector) == "A[0, 4:8] = T.Broadcast(T.float32(1), 4)"


def test_kinds_of_iterators() -> None:
    kinds = (tir.IterVar.DataPar, tir.IterVar.ThreadIndex, tir.IterVar.CommReduce)
    assert [int(kind) for kind in kinds] == [0, 1, 2]


def test_sequences_are_sequences() -> None:
    parts = [tir.Evaluate(const(1)), tir.Evaluate(const(2))]
    both = tir.SeqStmt(parts)
    assert len(both) == 2
    assert both[1] is parts[1]
    assert both.seq == tuple(parts)


def test_calls_by_name() -> None:
    call = tir.call_intrin("float32", "tir.exp", const(1.0, "float32"))
    assert isinstance(call, tir.Call)
    assert str(call) == "T.exp(T.float32(1))"


def test_names_since_2026() -> None:
    x, pointer = tir.Var("x", "int32"), tir.Var("p", tir.PointerType("float32"))
    buffer = tir.decl_buffer((4,), "float32")
    assert x.ty.dtype == "int32" and (x < 3).ty.dtype == "bool"
    assert pointer.ty is pointer.type_annotation
    assert buffer[0].ty.dtype == "float32"
    assert buffer[0].source is buffer[0:2].source is buffer
