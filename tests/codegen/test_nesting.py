"""Programs that nest deeper than Python can walk: a clear error, from whatever meets them first."""

import numpy as np
import pytest

from mlcweb.ir.errors import NestingError
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import Var

TARGETS = ["interpreter", "numpy", *(["wasm"] if available() else [])]
TARGETS += ["llvm -mcpu=host"] if has_llvm() else []


def sum_of(terms: int) -> str:
    return (
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        f"    for i in range(4):\n        B[i] = {' + '.join(['A[i]'] * terms)}\n"
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("terms", [50, 120, 250, 400])
def test_a_long_sum_runs_or_is_refused(target, terms):
    arguments = [nd.array(np.ones(4, "float32")), nd.array(np.zeros(4, "float32"))]
    try:
        build(from_source(sum_of(terms)), target)(*arguments)
    except NestingError:
        assert terms > 120
        return
    assert arguments[1].numpy().tolist() == [terms] * 4


def test_what_is_too_deep_to_be_read_or_printed_says_so():
    with pytest.raises(NestingError, match="nests too deep to be read"):
        from_source(sum_of(3000))
    x = Var("x")
    value = x
    for _ in range(3000):
        value = arithmetic.add(value, x)
    assert value.dtype == "int32"
    with pytest.raises(NestingError, match="nests too deep to be printed"):
        repr(value)


@pytest.mark.parametrize("target", TARGETS)
def test_a_long_chain_of_buffers_runs_or_is_refused(target):
    lines = ['@T.prim_func\ndef main(A: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):']
    lines += [f'    B{n} = T.alloc_buffer((2,), "int32")' for n in range(200)]
    for n in range(200):
        source = f"B{n - 1}" if n else "A"
        lines += [f"    for i{n} in range(2):", f"        B{n}[i{n}] = {source}[i{n}] + 1"]
    lines += ["    for i in range(2):", "        C[i] = B199[i]"]
    func = from_source("\n".join(lines) + "\n")
    arguments = [nd.array(np.zeros(2, "int32")), nd.array(np.zeros(2, "int32"))]
    try:
        build(func, target)(*arguments)
    except NestingError:
        assert target in ("wasm", "llvm -mcpu=host")
        return
    assert arguments[1].numpy().tolist() == [200, 200]
