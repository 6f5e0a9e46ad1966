"""Programs that nest deeper than Python can walk: a clear error, from whatever meets them first."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import numpy as np
import pytest

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.arith import Analyzer, detect_clip_bound
from mlcweb.arith.analyzer import conjuncts
from mlcweb.ir import IRModule, errors, structural_equal, structural_hash
from mlcweb.ir.errors import NestingError
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source
from mlcweb.tir import (
    BufferStore,
    PrimFunc,
    PyStmtExprVisitor,
    arithmetic,
    const,
    decl_buffer,
    transform,
)
from mlcweb.tir import expr as E
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt_functor import post_order_visit, pre_order_visit, substitute
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give

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


@pytest.mark.skipif(not available(), reason="no engine runs WebAssembly here")
@pytest.mark.parametrize("values", ["sum", "names"])
def test_a_pass_takes_few_calls_of_python_for_a_level(values, monkeypatch):
    """A page has room for 1000 calls, 60 of which are those of a test here."""
    monkeypatch.setattr(errors._Stack, "CALLS", 1000)
    steps = "".join(f"        x{n} = A[{n % 4}] * x{n - 1}\n" for n in range(1, 270))
    value = " + ".join(f"A[{n % 4}]" for n in range(270))
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):\n"
        "    for i in range(4):\n        x0 = A[i]\n"
        + (steps + "        B[i] = x269\n" if values == "names" else f"        B[i] = {value}\n")
    )
    result = nd.empty((4,))
    build(func, target="wasm")["main"](nd.array(np.ones(4, "float32")), result)
    np.testing.assert_array_equal(result.numpy(), 1 if values == "names" else 270)


def test_what_is_too_deep_to_be_read_or_printed_says_so():
    with pytest.raises(NestingError, match="nests too deep to be read"):
        from_source(sum_of(3000))
    with pytest.raises(NestingError, match="nests too deep to be printed"):
        repr(deep(arithmetic.add, X))


X = Var("x")


def deep(build, start):
    """An expression of 3,000 terms, as a program builds it."""
    return reduce(lambda value, _: build(value, start), range(3000), start)


BUILDERS = {
    "a sum": lambda: deep(arithmetic.add, X),
    "a condition": lambda: deep(E.And, X < 4),
    "choices": lambda: deep(lambda value, x: E.Select(X < 4, value, x), X),
}


def in_a_function(value):
    buffer = decl_buffer((4,), value.dtype)
    return PrimFunc([X], BufferStore(buffer, value, [0])).with_attr("global_symbol", "main")


DEEP_CALLS = {
    "simplified": lambda value: Analyzer().simplify(value),
    "transformed": lambda value: transform.Simplify()(IRModule({"main": in_a_function(value)})),
    "compared": lambda value: structural_equal(in_a_function(value), in_a_function(value)),
    "hashed": structural_hash,
    "rewritten": lambda value: substitute(value, {X: const(1)}),
    "walked": lambda value: PyStmtExprVisitor().visit_expr(value),
    "analyzed": lambda value: estimate_flops(in_a_function(value)),
    "printed": repr,
}


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("action", DEEP_CALLS)
def test_what_the_api_builds_too_deep_for_an_action_says_so(builder, action):
    value = BUILDERS[builder]()
    assert value.dtype == ("bool" if builder == "a condition" else "int32")
    with pytest.raises(NestingError, match=f"nests too deep to be {action}") as refusal:
        DEEP_CALLS[action](value)
    assert len(refusal.traceback) < 20


@pytest.mark.parametrize("action", DEEP_CALLS)
def test_walks_take_little_of_the_machines_stack(action):
    value = BUILDERS["choices"]()
    usual = threading.stack_size(1 << 18)
    try:
        with ThreadPoolExecutor(1) as threads:
            error = threads.submit(DEEP_CALLS[action], value).exception()
    finally:
        threading.stack_size(usual)
    assert isinstance(error, NestingError)


def test_the_limit_of_python_is_as_it_was_after_a_walk():
    usual = sys.getrecursionlimit()
    from_source(sum_of(400))
    with pytest.raises(NestingError):
        structural_hash(BUILDERS["a sum"]())
    assert sys.getrecursionlimit() == usual


def test_visits_and_conjunctions_have_no_depth_that_is_too_much():
    value = BUILDERS["a condition"]()
    visited = []
    post_order_visit(value, visited.append)
    assert len(visited) == 3001 * 3 + 3000
    assert visited[-1] is value
    pre_order_visit(value, visited.append)
    assert visited[len(visited) // 2] is value
    assert len(list(conjuncts(value))) == 3001
    assert detect_clip_bound(value, [X])[1].value == 3


@pytest.mark.parametrize("target", TARGETS)
def test_a_long_chain_of_buffers_runs(target):
    lines = ['@T.prim_func\ndef main(A: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):']
    lines += [f'    B{n} = T.alloc_buffer((2,), "int32")' for n in range(200)]
    for n in range(200):
        source = f"B{n - 1}" if n else "A"
        lines += [f"    for i{n} in range(2):", f"        B{n}[i{n}] = {source}[i{n}] + 1"]
    lines += ["    for i in range(2):", "        C[i] = B199[i]"]
    func = from_source("\n".join(lines) + "\n")
    arguments = [nd.array(np.zeros(2, "int32")), nd.array(np.zeros(2, "int32"))]
    build(func, target)(*arguments)
    assert arguments[1].numpy().tolist() == [200, 200]


ROW = 500


def bindings_in_a_row(loop: str) -> PrimFunc:
    """Weighted sums of all elements, by bindings of which each adds to the one before."""
    lines = [
        '@T.prim_func\ndef main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):',
        f"    for i in {loop}:",
        "        x0: T.int32 = A[i]",
    ]
    lines += [f"        x{n}: T.int32 = x{n - 1} + A[(i + {n}) % 4] * {n}" for n in range(1, ROW)]
    func = from_source("\n".join([*lines, f"        B[i] = x{ROW - 1}"]) + "\n")
    assert isinstance(func, PrimFunc)
    return func


ELEMENTS = np.array([3, -5, 7, 11], "int32")
SUMS = [sum(int(ELEMENTS[(i + n) % 4]) * max(n, 1) for n in range(ROW)) for i in range(4)]


@pytest.mark.parametrize("target", TARGETS)
def test_bindings_in_a_row_are_no_nest(target):
    func = bindings_in_a_row("range(4)")
    assert structural_equal(from_source(func.script()), func)
    out = nd.array(np.zeros(4, "int32"))
    build(func, target)(nd.array(ELEMENTS), out)
    assert out.numpy().tolist() == SUMS


def test_kernels_have_bindings_in_a_row():
    func = bindings_in_a_row('T.thread_binding(4, thread="threadIdx.x")')
    kernels = build(func, "opencl").imported_modules[0].get_source()
    assert f"int x{ROW - 1} = " in kernels
    assert_kernels_give(func, [ELEMENTS], np.array(SUMS, "int32"))
    if COMPILER is not None:
        out = np.zeros(4, "int32")
        run_cuda_on_cpu(func, [ELEMENTS, out])
        assert out.tolist() == SUMS
