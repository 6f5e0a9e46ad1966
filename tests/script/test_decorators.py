# This file has no `from __future__ import annotations`: Python evaluates the annotations below.
"""Decorated Python definitions: where their source and their names come from."""

import linecache
import re
from typing import Any

import pytest

from mlcweb import script as mlcweb_script
from mlcweb.ir import DiagnosticError, IRModule, assert_structural_equal
from mlcweb.script import from_source, parse, script
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc

N = 128
DTYPE = "float32"


@mlcweb_script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer[(128, 128), DTYPE],
        C: T.Buffer((N, N), DTYPE),
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((N, N), dtype="float32")
        for i, j, k in T.grid(128, 128, N):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def test_a_class_becomes_a_module() -> None:
    assert isinstance(MyModule, IRModule)
    assert MyModule["mm_relu"].attrs == {"global_symbol": "mm_relu", "tir.noalias": True}
    assert_structural_equal(parse(script(MyModule)), MyModule)
    span = MyModule["mm_relu"].span
    assert span.filename == __file__
    assert linecache.getline(__file__, span.line).strip() == "def mm_relu("


def _scale(extent: int, dtype: str) -> Any:
    factor = 3

    @T.prim_func
    def scale(A: T.Buffer((extent,), dtype), B: T.Buffer[extent, dtype]):
        for i in range(extent):
            with T.block("B"):
                vi = T.axis.spatial(extent, i)
                B[vi] = A[vi] * factor

    return scale


def test_names_of_the_enclosing_function() -> None:
    function = _scale(17, "int32")
    assert isinstance(function, PrimFunc)
    assert 'A: T.Buffer((17,), "int32")' in script(function)
    assert "B[vi] = A[vi] * 3" in script(function)


def test_a_class_inside_a_function() -> None:
    size = 24

    @I.ir_module
    class Local:
        @T.prim_func(private=True)
        def main(A: T.Buffer((size,), "int8"), a: T.handle, n: T.int32):
            A[n] = T.int8(0)

    assert Local["main"].attrs == {}
    assert Local["main"].parameter_buffers[0].shape[0].value == 24


def test_called_decorators() -> None:
    @T.prim_func(private=True)
    def hidden(A: T.Buffer(4, "int32")):
        A[0] = 1

    @I.ir_module(check_well_formed=True)
    class Called:
        @T.prim_func
        def main(A: T.Buffer(4, "int32")):
            A[0] = 1

    @I.ir_module(check_well_formed=False)
    class Unchecked:
        @T.prim_func
        def main(A: T.Buffer(4, "int32")):
            k = T.int32()
            A[k] = 1

    assert "A[k] = 1" in script(Unchecked)
    assert hidden.attrs == {}
    assert Called["main"].attrs == {"global_symbol": "main"}


CELL = '''
from mlcweb.script import ir as I, tir as T

text = """
class Module:
    pass
"""

SIZE = 8


@T.prim_func
def double(A: T.Buffer((SIZE,), "float32"), B: T.Buffer((SIZE,), "float32")):
    for i in range(SIZE):
        with T.block("B"):
            vi = T.axis.spatial(SIZE, i)
            B[vi] = A[vi] * 2.0  # größer

@I.ir_module
class Module:
    @T.prim_func
    def main(
        A: T.Buffer((SIZE,), "float32"),
    ) -> None:
        A[0] = T.float32(
            1
        )
'''


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_cell_without_a_file(future: str) -> None:
    source = future + CELL
    filename = "<cell 1>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names: dict[str, Any] = {"__name__": "cell"}
    exec(compile(source, filename, "exec", dont_inherit=True), names)
    assert isinstance(names["double"], PrimFunc)
    assert "A[0] = T.float32(1)" in script(names["Module"])
    line = names["double"].body.block.body.span.line
    assert linecache.getline(filename, line).strip() == "for i in range(SIZE):"


def test_source_that_cannot_be_found() -> None:
    names: dict[str, Any] = {"T": T}
    with pytest.raises(DiagnosticError, match=re.escape('The source of "f" is not to be found')):
        exec("@T.prim_func\ndef f():\n    T.evaluate(0)", names)
    with pytest.raises(DiagnosticError, match=re.escape('The source of "M" is not to be found')):
        exec("@I.ir_module\nclass M:\n    pass", {"I": I, "__name__": "cell"})


def test_annotations_are_harmless_outside_scripts() -> None:
    assert T.Buffer((4, "n"), "float32").shape[1].name == "n"
    assert T.Buffer[4, "int8"].dtype == "int8"
    assert (repr(T.Buffer), repr(T.float32), str(T.int8)) == ("T.Buffer", "T.float32", "int8")
    assert T.handle("float32", "local").type_annotation.storage_scope == "local"
    assert str(T.exp(T.float32(2) + T.Var("x", "float32"))) == "T.exp(T.float32(2) + x)"
    assert str(T.float32x4(1)) == "T.Broadcast(T.float32(1), 4)"


def test_lambdas_of_tensor_expressions_can_use_t() -> None:
    x = T.Var("x", "int32")
    assert str((lambda i: T.if_then_else(i < 3, T.float32(0), T.float32(i)))(x)) == (
        'T.if_then_else(x < 3, T.float32(0), T.Cast("float32", x))'
    )


UNDECLARED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        B = T.Buffer((8,))
        B[i] = A[i]
"""


def test_texts_are_read_without_the_checks_of_whole_functions():
    """As TVM reads what it prints of memory that it has lost."""
    with pytest.raises(DiagnosticError, match=r"T\.Buffer describes parameters"):
        from_source(UNDECLARED)
    func = from_source(UNDECLARED, {}, False)
    again = from_source(func.script(), check_well_formed=False)
    assert_structural_equal(again, func, map_free_vars=True)
    with pytest.raises(DiagnosticError, match='"B" is used but not declared'):
        from_source(func.script().replace("):", '):\n    T.func_attr({"target": "llvm"})', 1))


def test_threads_of_a_reduction_are_named_by_the_loops_around_its_block():
    """Which are no values, so the block stays one of its axes."""
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("sum"):
            vi = T.axis.reduce(8, i)
            T.reads(A[vi])
            T.writes(B[0])
            T.tvm_thread_allreduce(T.uint32(1), A[vi], T.bool(True), B[0], i)
"""
    func = from_source(text)
    assert_structural_equal(from_source(func.script()), func)
    with pytest.raises(DiagnosticError, match='uses the loop variable "i"'):
        from_source(text.replace("A[vi], T.bool", "A[i], T.bool"))
