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
