"""Comparing an axis with `==` in a formula gives a condition, not what Python thinks of it."""

from __future__ import annotations

import numpy as np

import mlcweb as tvm
from mlcweb import te, tir


def test_first_element_by_its_index() -> None:
    source = te.placeholder((4,), "float32", name="A")
    picked = te.compute((4,), lambda i: tir.if_then_else(i == 0, source[i], -source[i]), name="B")
    kernel = tvm.build(te.create_prim_func([source, picked]))
    a, b = tvm.nd.array(np.arange(1, 5, dtype="float32")), tvm.nd.empty((4,))
    kernel(a, b)
    assert b.numpy().tolist() == [1, -2, -3, -4]


def test_the_same_output_of_an_operation_is_one_tensor() -> None:
    a = te.placeholder((4,), name="A")
    b, c = te.compute((4,), lambda i: (a[i], a[i] + 1), name="B")
    assert b.op.output(0) == b and b.op.output(1) == c and b != c
    assert {b.op.output(0): 1}[b] == 1
