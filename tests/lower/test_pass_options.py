"""Passes that narrow indices and unroll loops, and options of a context: as TVM 0.27 does.

The texts expected are what TVM 0.27 prints after the pass, in our spelling and simplified.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError
from mlcweb.ir.transform import PassContext
from mlcweb.lower import transform
from mlcweb.lower.options import UNUSED
from mlcweb.script import from_source
from tests.lower.test_tvm_names import body

WIDE = """
@T.prim_func
def main(A: T.Buffer((T.int64(4294967296),), "float32"), B: T.Buffer((T.int64(64),), "int64"),
         n: T.int64):
    for i, j in T.grid(T.int64(128), T.int64(64)):
        A[i * T.int64(64) + j] = T.Cast("float32", i * T.int64(64) + j)
    for i in range(n):
        A[i] = T.float32(2)
    for i in range(T.int64(128)):
        k: T.int64 = i * T.int64(4)
        if i + k < T.int64(100):
            A[k] = T.float32(2)
    for i, j in T.grid(T.int64(65536), T.int64(65536)):
        A[i * T.int64(65536) + j] = T.float32(2)
    for i in range(T.int64(64)):
        B[i] = i
    for i in range(T.int64(63)):
        k: T.int64 = i + T.int64(1)
        B[k] = B[i] + k
    t = T.launch_thread("threadIdx.x", T.int64(8))
    B[t * T.int64(8)] = B[t] + T.int64(1)
"""

NARROW = """
for i, j in T.grid(128, 64):
    A[i * 64 + j] = T.Cast("float32", i * 64 + j)
for i in range(n):
    A[i] = T.float32(2)
for i in range(T.int64(128)):
    k: T.int64 = i * T.int64(4)
    if i + k < T.int64(100):
        A[k] = T.float32(2)
for i, j in T.grid(T.int64(65536), T.int64(65536)):
    A[i * T.int64(65536) + j] = T.float32(2)
for i in range(64):
    B[i] = T.Cast("int64", i)
for i in range(63):
    k: T.int32 = i + 1
    B[k] = B[i] + T.Cast("int64", k)
with T.launch_thread("threadIdx.x", 8) as t:
    B[t * 8] = B[t] + T.int64(1)"""

BLOCKS = """
@T.prim_func
def main(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, T.int64(4)))
    for i, j in T.grid(n, T.int64(4)):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.Cast("float32", vi * T.int64(4) + vj)
"""

LOOPS = """
@T.prim_func
def main(A: T.Buffer((128,), "float32")):
    for i in range(2):
        for j in range(4):
            A[i * 4 + j] = T.float32(1)
    for i in range(3):
        A[i] = T.float32(1)
    for j in T.unroll(3):
        A[j] = T.float32(1)
"""
IN_REGISTERS = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    L = T.decl_buffer((2,), scope="local")
    for i in range(2):
        L[i] = A[i]
    for i in range(2):
        A[i] = L[0]
"""
LEADING_ZEROS = """
@T.prim_func
def main(A: T.Buffer((T.int64(4),), "int32")):
    for i in range(T.int64(4)):
        A[i] = T.clz(i)
"""
LAUNCHED = """
@T.prim_func
def main(A: T.Buffer((T.int64(4),), "float32")):
    thread = T.launch_thread("threadIdx.x", T.int64(4))
    A[thread] = T.float32(1)
"""
INNER = "for i, j in T.grid(2, 4):\n    A[i * 4 + j] = T.float32(1)\n"
LAST = "for i in range(3):\n    A[i] = T.float32(1)\n"
WRITTEN = "".join(f"A[{i}] = T.float32(1)\n" for i in range(3))
STEPS = "for i in range(2):\n" + "".join(
    f"    A[i * 4{plus}] = T.float32(1)\n" for plus in ("", " + 1", " + 2", " + 3")
)
EIGHT = "".join(f"A[{i}] = T.float32(1)\n" for i in range(8))


def test_loops_are_narrowed_where_all_index_arithmetic_fits() -> None:
    assert (
        body(transform.NarrowDataType(32)(IRModule({"main": from_source(WIDE)}))) == NARROW.strip()
    )


def test_all_indices_become_narrow() -> None:
    func = from_source(BLOCKS)
    narrow = transform.ForceNarrowIndexToInt32()(func)
    text = IRModule({"main": narrow}).script()
    assert "int64" not in text and "n: T.int32" in text
    out = tvm.nd.empty((3, 4))
    tvm.build(narrow, target="interpreter")["main"](out, 3)
    np.testing.assert_array_equal(out.numpy().ravel(), np.arange(12))


def test_loops_over_local_memory_are_unrolled() -> None:
    mod = IRModule({"main": from_source(IN_REGISTERS)})
    with PassContext(config={"tir.UnrollLoop": {"unroll_local_access": True}}):
        unrolled = transform.UnrollLoop()(mod)
    loop = "    for i in range(2):\n        L[i] = A[i]\n"
    expected = IN_REGISTERS.replace(loop, "    L[0] = A[0]\n    L[1] = A[1]\n")
    tvm.ir.assert_structural_equal(unrolled["main"], from_source(expected))


def test_narrow_indices_are_of_the_same_buffers() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
    for i in range(T.int64(12)):
        B[i] = T.Cast("int32", T.truncdiv(T.Cast("int64", A[i]), T.max(i % T.int64(4), T.int64(1))))
"""
    outputs = []
    for bits in (64, 16, 32):
        func = transform.NarrowDataType(bits)(from_source(source))
        A, B = (tvm.nd.array(np.arange(12, dtype="int32") * 5 - 20) for _ in range(2))
        tvm.build(func, "interpreter")(A, B)
        outputs.append(B.numpy().tolist())
    assert outputs[0] == outputs[1] == outputs[2]
    assert "for i in range(12):" in func.script()


def test_leading_zeros_are_those_of_the_wide_number() -> None:
    func = from_source(LEADING_ZEROS)
    narrow = transform.ForceNarrowIndexToInt32()(func)
    expected = LEADING_ZEROS.replace("T.clz(i)", "T.clz(i) + 32").replace("T.int64(4)", "4")
    tvm.ir.assert_structural_equal(narrow, from_source(expected))


def test_the_indices_of_launched_threads_become_narrow() -> None:
    func = from_source(LAUNCHED)
    narrow = transform.ForceNarrowIndexToInt32()(func)
    tvm.ir.assert_structural_equal(narrow, from_source(LAUNCHED.replace("T.int64(4)", "4")))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (WIDE, '"B" holds int64'),
        (WIDE.replace('"int64")', '"int32")'), "4294967296 does not fit into int32"),
    ],
)
def test_what_cannot_be_narrow_is_refused(source: str, message: str) -> None:
    with pytest.raises(TVMError, match=message):
        transform.ForceNarrowIndexToInt32()(from_source(source))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, INNER + LAST + WRITTEN),
        ({"auto_max_step": 3}, INNER + WRITTEN + WRITTEN),
        ({"auto_max_step": 4}, STEPS + WRITTEN + WRITTEN),
        ({"auto_max_step": 8}, EIGHT + WRITTEN + WRITTEN),
        ({"auto_max_step": 16, "auto_max_depth": 0}, STEPS + WRITTEN + WRITTEN),
        ({"auto_max_extent": 3}, INNER + WRITTEN + WRITTEN),
        (
            {"explicit_unroll": False},
            INNER + LAST + "for j in T.unroll(3):\n    A[j] = T.float32(1)",
        ),
    ],
)
def test_unroll_loop(options: dict[str, Any], expected: str) -> None:
    for given in (options, transform.UnrollLoopConfig(**options)):
        with PassContext(config={"tir.UnrollLoop": given}):
            unrolled = transform.UnrollLoop()(IRModule({"main": from_source(LOOPS)}))
        assert body(transform.StmtSimplify()(unrolled)) == expected.strip()


def test_copies_of_unrolled_loops_are_not_simplified() -> None:
    """With `auto_max_extent` 1, loops of one iteration are written out even if nothing else is."""
    source = """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for k in range(1):
        for i in T.unroll(2):
            A[i + k] = T.Cast("float32", i)
"""
    options = {"auto_max_extent": 1, "explicit_unroll": False}
    for option, expected in (
        ({}, 'for k in range(1):\n    A[T.Add(0, k)] = T.Cast("float32", 0)\n'),
        (options, 'for i in T.unroll(2):\n    A[T.Add(i, 0)] = T.Cast("float32", i)'),
    ):
        with PassContext(config={"tir.UnrollLoop": option}):
            text = body(transform.UnrollLoop()(IRModule({"main": from_source(source)})))
        assert text.startswith(expected)


def test_undefined_values_are_not_stored() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((128,), "float32")):
    for i in range(128):
        A[i] = T.undef(dtype="float32")
    for i in range(128):
        A[i] = T.float32(1)
    if A[0] > T.float32(0):
        A[0] = T.undef(dtype="float32") + T.float32(1)
""")
    text = body(transform.RemoveStoreUndef()(IRModule({"main": func})))
    assert text == "for i in range(128):\n    A[i] = T.float32(1)"


def test_variables_of_undefined_values_go_and_indices_are_refused() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    open: T.int32 = T.undef()
    {statement}
    A[1] = 2
"""
    func = from_source(source.format(statement="A[0] = open + 1"))
    mod = transform.RemoveStoreUndef()(IRModule({"main": func}))
    assert body(mod) == "A[1] = 2"
    for refused in (
        "A[open] = 1",
        "A[0] = A[open]",
        "A[0] = A[T.undef()] + open",
        "T.evaluate(A[open])",
    ):
        with pytest.raises(TVMError, match=r'An index of "A" is T\.undef'):
            transform.RemoveStoreUndef()(from_source(source.format(statement=refused)))


def test_loops_that_are_left_early_are_marked() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((128,), "float32")):
    for i in range(16):
        for j in range(4):
            if A[i] > T.float32(4):
                T.continue_loop()
            A[j] = T.float32(1)
""")
    text = body(transform.AnnotateIrregularLoop()(IRModule({"main": func})))
    assert text.splitlines()[:2] == [
        "for i in range(16):",
        '    for j in T.serial(4, annotations={"irregular_loop_mark": 1}):',
    ]


def test_an_unknown_setting_is_refused_by_name() -> None:
    context = PassContext(config={"tirx.UnrollLoop": {"steps": 3}})
    with context, pytest.raises(TVMError, match=r"has auto_max_step.*not steps"):
        transform.UnrollLoop()(IRModule({"main": from_source(LOOPS)}))


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
def test_assertions_are_left_out_where_that_is_asked_for(target: str) -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), n: T.int32):
    assert n < 3, "small"
    for i in range(4):
        A[i] = n
""")
    out = tvm.nd.empty((4,), "int32")
    with pytest.raises(Exception, match="small"):
        tvm.build(func, target=target)["main"](out, 5)
    with PassContext(config={"tir.disable_assert": True}):
        tvm.build(func, target=target)["main"](out, 5)
    np.testing.assert_array_equal(out.numpy(), [5] * 4)


def test_bounds_are_checked_under_tvms_name() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), n: T.int32):
    A[n] = 1
""")
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        kernel = tvm.build(func, target="wasm")
    with pytest.raises(TVMError, match="4"):
        kernel["main"](tvm.nd.empty((4,), "int32"), 4)


@pytest.mark.parametrize("kind", list(UNUSED))
def test_options_for_what_is_not_chosen_here_are_taken(kind: type) -> None:
    for name in UNUSED[kind].split():
        PassContext(config={name: kind()})


def test_an_undefined_value_is_an_integer_if_nothing_else_is_said() -> None:
    # As TVM 0.27 reads and prints it.
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    A[0] = T.undef()
    B[0] = T.undef(dtype="float32")
"""
    assert body(IRModule({"main": from_source(text)})).splitlines() == [
        "A[0] = T.undef()",
        'B[0] = T.undef(dtype="float32")',
    ]
