"""Packed functions get the buffers that a program passes whole as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import TVMError, te, tir


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm -mcpu=host"])
def test_te_extern_calls_a_python_function_on_arrays(target: str) -> None:
    @tvm.register_func("test.add_one", override=True)
    def add_one(x: Any, y: Any) -> None:
        assert x.shape == (4, 3)
        tvm.nd.array(x.numpy() + 1).copyto(y)

    a = te.placeholder((4, 3), name="a")
    b = te.extern(a.shape, [a], lambda i, o: tir.call_packed("test.add_one", i[0], o[0]), name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] * 2, name="c")
    kernel = tvm.build(te.create_prim_func([a, c]), target=target)
    given, out = np.arange(12, dtype="float32").reshape(4, 3), tvm.nd.empty((4, 3))
    kernel["main"](tvm.nd.array(given), out)
    np.testing.assert_array_equal(out.numpy(), (given + 1) * 2)


def test_a_buffer_with_strides_is_refused() -> None:
    tvm.register_func("test.strided", lambda *arguments: None, override=True)
    a = te.placeholder((4,), name="a")
    strided = tir.decl_buffer((4,), strides=[2], name="a")
    b = te.extern(
        (4,), [a], lambda i, o: tir.call_packed("test.strided", i[0], o[0]), in_buffers=[strided]
    )
    with pytest.raises(TVMError, match="Only compact buffers"):
        tvm.build(te.create_prim_func([a, b]), target="interpreter")
