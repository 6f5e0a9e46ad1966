"""`tvm_ffi.structural_walk`, over our programs."""

from __future__ import annotations

from typing import Any

import pytest

from mlcweb.compat.walks import VisitInterrupt, WalkOrder, WalkResult, structural_walk
from mlcweb.script.parser import parse
from mlcweb.tir.expr import Add, BufferLoad, Mul
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BufferStore, For

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("first"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("second"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + T.float32(1)
"""


@pytest.fixture
def body() -> Any:
    func = parse(PROGRAM)
    assert isinstance(func, PrimFunc)
    return func.body


def test_children_come_first_or_last(body: Any) -> None:
    names: list[str] = []
    assert structural_walk(body, (Block, lambda block: names.append(block.name_hint))) is None
    assert names == ["first", "second", "root"]
    names.clear()
    structural_walk(body, (Block, lambda b: names.append(b.name_hint)), order=WalkOrder.PREORDER)
    assert names == ["root", "first", "second"]


def test_the_first_fitting_callback_is_called(body: Any) -> None:
    seen: list[str] = []
    callbacks = [
        ((Add, Mul), lambda node: seen.append(type(node).__name__)),
        (Add, lambda node: seen.append("never")),
        (BufferStore, lambda node: seen.append("store")),
    ]
    structural_walk(body, callbacks)
    assert seen == ["Mul", "store", "Add", "store"]


def test_what_is_below_a_node_can_be_left_out(body: Any) -> None:
    seen: list[type] = []

    def visit(node: Any) -> WalkResult:
        seen.append(type(node))
        return WalkResult.SKIP if isinstance(node, For) else WalkResult.ADVANCE

    structural_walk(body, visit, order="pre")
    assert seen.count(For) == 2
    assert BufferStore not in seen


def test_a_walk_can_be_ended(body: Any) -> None:
    found = structural_walk(body, (BufferLoad, VisitInterrupt), order="pre")
    assert found is not None
    assert found.value.buffer.name == "A"


def test_unknown_orders(body: Any) -> None:
    with pytest.raises(ValueError, match="no order 'in'"):
        structural_walk(body, order="in")
