"""Builtins that are no operators: read in each TVM's spelling, printed, scheduled over, refused."""

from __future__ import annotations

import pytest

from mlcweb import tir
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.runtime.build import build
from mlcweb.script.parser import parse
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

LOOP = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("block"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            {}
"""


def call_in(line: str) -> E.Call:
    """The first call of a program with a line in its block."""
    func = parse(LOOP.format(line))
    assert isinstance(func, PrimFunc)
    assert structural_equal(parse(func.script()), func)
    return next(node for node in walk(func.body) if isinstance(node, E.Call))


@pytest.mark.parametrize(
    ("line", "name", "dtype", "arguments"),
    [
        ("B[vi] = T.q_multiply_shift(B[vi], 5, 31, 2)", "q_multiply_shift", "int32", 4),
        ('T.tvm_fill_fragment(A.data, 16, 16, 16, 0, T.float32(0), dtype="handle")',
         "tvm_fill_fragment", "handle", 6),
        ("T.tvm_mma_sync(A.data, 0, A.data, 0, A.data, 0, A.data, 0)", "tvm_mma_sync", "handle", 8),
        ('T.ptx_mma("float32", "m16n8k8", "row", "col", A.data, 0)', "ptx_mma", "float32", 5),
        ('T.ptx_mma("m16n8k8", "row", "col", A.data, 0, dtype="float32")', "ptx_mma", "float32", 5),
        ('T.evaluate(T.call_extern("f", A.data, dtype=""))', "call_extern", "void", 2),
        ('T.evaluate(T.ptx_commit_group(dtype=""))', "ptx_commit_group", "void", 0),
        ("T.ptx.cp.async_(A.data, 0, 16)", "ptx.cp.async_", "void", 3),
        ('T.cuda.atomic_add("float32", A.data)', "cuda.atomic_add", "float32", 1),
        ('B[vi] = T.tvm_struct_get(A.data, 0, 1, "int32")', "tvm_struct_get", "int32", 3),
        ('B[vi] = T.tvm_struct_get(A.data, 0, 1, dtype="int32")', "tvm_struct_get", "int32", 3),
        ('T.evaluate(T.tvm_storage_sync("shared", dtype=""))', "tvm_storage_sync", "int32", 1),
        ('T.call_cpacked("f", A.data, dtype="int32")', "tvm_call_cpacked", "int32", 2),
        ('T.call_llvm_intrin("int32", T.uint32(5), A.data)', "call_llvm_intrin", "int32", 2),
        ("B[vi] = T.vscale()", "vscale", "int32", 0),
        ('T.tvm_thread_allreduce(T.uint32(1), A[vi], True, A[0], vi, dtype="handle")',
         "tvm_thread_allreduce", "void", 5),
        ('T.evaluate(T.ptx_wait_group(0, dtype="int32"))', "ptx_wait_group", "void", 1),
    ],
)  # fmt: skip
def test_each_spelling_gives_the_call(line: str, name: str, dtype: str, arguments: int) -> None:
    call = call_in(line)
    assert isinstance(call.op, Op)
    assert (call.op.name, call.dtype, len(call.args)) == (f"tir.{name}", dtype, arguments)


def test_a_call_that_a_program_gives_another_type_keeps_it_in_print() -> None:
    func = parse(LOOP.format('T.call_intrin("handle", "tir.ptx_wait_group", 0)'))
    call = next(node for node in walk(func.body) if isinstance(node, E.Call))
    assert call.dtype == "handle"
    assert structural_equal(parse(func.script()), func)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('A[vi] = T.exp(A[vi], dtype="float32")', "exp"),
        ('A[vi] = T.if_then_else(vi < 3, A[vi], T.float32(0), dtype="float32")', "if_then_else"),
        ('B[vi] = T.shift_right(B[vi], 2, dtype="int32")', "shift_right"),
        ('T.evaluate(T.likely(vi < 3, dtype="bool"))', "likely"),
        ('B[vi] = T.reinterpret(A[vi], dtype="int32")', "reinterpret"),
        ('B[vi] = T.reinterpret("int32", A[vi])', "reinterpret"),
    ],
)
def test_operators_take_the_type_of_their_result_by_name(line: str, name: str) -> None:
    call = call_in(line)
    assert isinstance(call.op, Op)
    assert call.op.name == f"tir.{name}"


def test_a_type_that_an_operator_does_not_give_is_refused() -> None:
    line = 'A[vi] = T.exp(A[vi], dtype="float64")'
    with pytest.raises(DiagnosticError, match=r"gives float32 here.*T\.Cast\(\"float64\""):
        parse(LOOP.format(line))


def test_a_missing_type_is_asked_for() -> None:
    with pytest.raises(DiagnosticError, match=r"T\.masked_load needs the type of its result"):
        parse(LOOP.format("B[vi] = T.masked_load(A.data, 0)"))


def test_names_that_are_no_builtin_are_refused_with_the_next_one() -> None:
    with pytest.raises(DiagnosticError, match="did you mean tvm_mma_sync"):
        parse(LOOP.format("T.tvm_mma_snc(A.data)"))


def test_the_loops_around_a_builtin_are_scheduled() -> None:
    sch = tir.Schedule(parse(LOOP.format('T.ptx_mma("float32", "m16n8k8", A.data)')))
    sch.split(sch.get_loops("block")[0], [4, 4])
    assert 'T.ptx_mma("float32", "m16n8k8", A.data)' in sch.mod.script()


@pytest.mark.parametrize("target", ["interpreter", "wasm"])
def test_targets_refuse_instructions_of_other_machines(target: str) -> None:
    func = parse(LOOP.format("T.tvm_mma_sync(A.data, 0, A.data, 0, A.data, 0, A.data, 0)"))
    with pytest.raises(Exception, match=r"tvm_mma_sync has no .* an instruction of NVIDIA GPUs"):
        build(func, target=target)


def test_only_pure_builtins_count_as_pure() -> None:
    pure = {name: Op.get(f"tir.{name}").pure for name in ("fma", "address_of", "vscale")}
    opaque = {name: Op.get(f"tir.{name}").pure for name in ("atomic_add", "ptx_mma", "masked_load")}
    assert all(pure.values())
    assert not any(opaque.values())


def test_targets_refuse_floats_of_eight_bits() -> None:
    func = parse(LOOP.format('B[vi] = T.Cast("int32", T.Cast("float8_e3m4", A[vi]))'))
    assert structural_equal(parse(func.script()), func)
    with pytest.raises(Exception, match="No target here computes with float8_e3m4"):
        build(func, target="wasm")
