"""Golden texts of the printer."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from mlcweb.ir import IRModule
from mlcweb.ir.module import GlobalVar
from mlcweb.script import parse, script
from mlcweb.tir import (
    Block,
    BlockRealize,
    Evaluate,
    For,
    ForKind,
    IterVar,
    PrimFunc,
    Range,
    SeqStmt,
    Var,
    const,
    decl_buffer,
)  # fmt: skip
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import BufferRegion, full_region

i, j = Var("i"), Var("j")
A = decl_buffer((16, 16), "float32", "A")


def _text(body: str, parameters: str = 'A: T.Buffer((16, 16), "float32")') -> str:
    """A standalone function with this body."""
    lines = dedent(body).strip("\n").replace("\n", "\n    ")
    return (
        "# from tvm.script import tir as T\n\n"
        f"@T.prim_func\ndef main({parameters}):\n    {lines}".replace("\n    \n", "\n\n")
    )


def assert_prints_itself(text: str) -> None:
    assert script(parse(text)) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((i + j) * 3, "(i + j) * 3"),
        (i + j * 3, "i + j * 3"),
        (i - (j - 1), "i - (j - 1)"),
        (i - j - 1, "i - j - 1"),
        (i * (j // 4), "i * (j // 4)"),
        (i // 8 % 4 * 2, "i // 8 % 4 * 2"),
        (i % (j * 2), "i % (j * 2)"),
        (E.LT(E.LT(i, j), const(True)), "(i < j) < T.bool(True)"),
        (E.And(E.Or(i < 1, j < 2), E.Not(i < 3)), "(i < 1 or j < 2) and not i < 3"),
        (E.Not(E.And(i < 1, j < 2)), "not (i < 1 and j < 2)"),
        (E.Or(E.And(i < 1, j < 2), j < 3), "i < 1 and j < 2 or j < 3"),
        ((i & j) | (i << 2), "i & j | i << 2"),
        (~(i + 1), "~(i + 1)"),
        (E.Add(const(3), const(4)), "T.Add(3, 4)"),
        (E.Div(i, j), "T.Div(i, j)"),
        (E.Mod(i, j), "T.truncmod(i, j)"),
        (E.Min(i, j), "T.min(i, j)"),
        (E.Select(i < 3, i, j), "T.Select(i < 3, i, j)"),
        (E.Cast("int64", i), 'T.Cast("int64", i)'),
        (const(5, "int64") + Var("n", "int64"), "T.int64(5) + n"),
        (const(-1), "-1"),
        (const(True), "T.bool(True)"),
        (E.StringImm('a "b"'), '"a \\"b\\""'),
        (E.Ramp(i, const(1), 4), "T.Ramp(i, 1, 4)"),
        (E.Broadcast(i, 4), "T.Broadcast(i, 4)"),
        (E.Let(i, const(3), i + 1), "T.Let(i + 1, where={i: 3})"),
        (A[i, j], "A[i, j]"),
        (E.BufferLoad(A, (i, E.Ramp(const(0), const(1), 4))), "A[i, 0:4]"),
        (E.BufferLoad(A, (i, E.Ramp(j, const(2), 4))), "A[i, j:j + 8:2]"),
        (E.Call("int32", GlobalVar("f"), (i,)), "Module.f(i)"),
    ],
)
def test_expressions(expression: E.PrimExpr, text: str) -> None:
    assert script(expression) == text
    assert str(expression) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "-0.0"), (2.0, "2"), (0.5, "0.5"), (0.1, "0.1"), (1e-5, "1e-05"),
        (1.5e10, "15000000000"), (float("inf"), '"inf"'), (float("-inf"), '"-inf"'),
        (float("nan"), '"nan"'),
        (-3.4028234663852886e38, "-340282346638528859811704183484516925440"),
    ],
)  # fmt: skip
def test_floats(value: float, text: str) -> None:
    assert script(const(value, "float32")) == f"T.float32({text})"
    assert script(const(value, "float64")) == f"T.float64({text})"


def test_regions() -> None:
    assert script(full_region(A)) == "A[0:16, 0:16]"
    region = BufferRegion(A, (Range(i * 4, const(4)), Range(j, const(1))))
    assert str(region) == "A[i * 4:i * 4 + 4, j]"
    assert str(A) == "A"


def test_scalar_buffer() -> None:
    assert_prints_itself(_text("A[()] = T.float32(1)", 'A: T.Buffer((), "float32")'))


def test_loops_and_annotations() -> None:
    assert_prints_itself(
        _text("""
        for i, j in T.grid(4, 16):
            for k in T.thread_binding(4, thread="threadIdx.x", annotations={"a": [1, 2.5, "c"]}):
                for l in T.vectorized(2, 4):
                    for m in T.serial(3, annotations={"b": True, "c": {"d": 1}}):
                        A[i, j] = T.float32(0)
        for i in range(4):
            for j in range(i):
                A[i, j] = T.float32(0)
        for i in T.parallel(16):
            for j in T.unroll(16):
                A[i, j] = T.float32(0)
        """)
    )


def test_blocks() -> None:
    assert_prints_itself(
        _text("""
        # with T.block("root"):
        for i, j, k in T.grid(4, 4, 16):
            with T.block("X"):
                vi = T.axis.spatial((2, 6), i + 2)
                vj, vk = T.axis.remap("SR", [j, k])
                vo = T.axis.opaque(4, i)
                vs = T.axis.scan(4, j)
                T.where(i < 3)
                T.reads(A[vi, vk])
                T.writes(A[vi, vj])
                T.block_attr({"kind": "demo"})
                B = T.alloc_buffer((4,), "int8", scope="local")
                C = T.match_buffer(A[vi, 0:16], (16,), strides=("s", ), offset_factor=1)
                with T.init():
                    A[vi, vj] = T.float32(0)
                A[vi, vj] = A[vi, vj] + A[vi, vk]
        """).replace('("s", )', '("s",)')
    )


def test_root_block_is_explicit_where_it_says_more() -> None:
    assert_prints_itself(
        _text("""
        with T.block("root"):
            T.reads()
            T.writes()
            T.block_attr({"meta_schedule.parallel": 16})
            B = T.alloc_buffer((16,))
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    T.reads(A[vi, 0])
                    T.writes(B[vi])
                    B[vi] = A[vi, 0]
        """)
    )


def test_statements() -> None:
    assert_prints_itself(
        _text(
            """
        if n < 3:
            A[0, 0] = T.float32(0)
        elif n < 4:
            A[0, 1] = T.float32(0)
        else:
            A[0, 2] = T.float32(0)
        while A[0, 0] < T.float32(8):
            A[0, 0] = A[0, 0] + T.float32(1)
        with T.LetStmt(n + 1) as m:
            A[0, m] = T.float32(0)
        with T.attr(0, "pragma_x", 1):
            T.evaluate(0)
        with T.launch_thread("threadIdx.x", 4) as tx:
            A[0, tx] = T.float32(0)
        with T.Assert(n < 3, "first"):
            T.evaluate(n)
        with T.decl_buffer((8,), "int8") as B:
            B[0] = T.int8(1)
        assert n < 16, "n is too large"
        k: T.int32 = n * 2
        C = T.decl_buffer((4,), scope="local")
        C[0] = A[0, k]
        T.call_extern("int32", "done", C.data, k)
        """,
            'A: T.Buffer((16, 16), "float32"), n: T.int32',
        )
    )


def test_vectors_in_the_newer_spelling() -> None:
    """There, a slice is a vector only where it is stored to, and has no step."""
    program = _text(
        """
        A[0, 0:4] = A[1, 0:4] + A[2, 0:8:2]
        A[0, 0:8:2] = A[1, 0:4]
        """,
        'A: T.Buffer((16, 16), "float32")',
    )
    function = parse(program)
    assert function.script() == program
    text = function.script(dialect="s_tir")
    assert text.splitlines()[-2:] == [
        "    A[0, 0:4] = A[1, T.Ramp(0, 1, 4)] + A[2, T.Ramp(0, 2, 4)]",
        "    A[0, T.Ramp(0, 2, 4)] = A[1, T.Ramp(0, 1, 4)]",
    ]
    assert parse(text).script() == program


def test_match_buffer_of_parameters() -> None:
    assert_prints_itself(
        _text(
            """
        T.func_attr({"tir.noalias": True})
        n = T.int32()
        s = T.int32()
        A = T.match_buffer(a, (n, 16), strides=(s, 1), offset_factor=8)
        B = T.match_buffer(b, (n * 16,), "int8", scope="shared", align=128)
        # with T.block("root"):
        for i in range(n):
            with T.block("X"):
                vi = T.axis.spatial(n, i)
                T.reads(A[vi, 0])
                T.writes(B[vi])
                B[vi] = T.Cast("int8", A[vi, 0])
        """,
            'a: T.handle, b: T.handle, p: T.handle("float32", "local")',
        )
    )


def test_names_are_unique_and_free_again_after_their_scope() -> None:
    first, second = Var("i"), Var("i")
    inner = For(second, const(0), first, ForKind.SERIAL, Evaluate(first + second))
    loop = For(first, const(0), const(4), ForKind.SERIAL, inner)
    assert script(SeqStmt((loop, loop))) == "\n".join(
        ["for i in range(4):", "    for i_1 in range(i):", "        T.evaluate(i + i_1)"] * 2
    )


def test_names_that_are_no_identifiers() -> None:
    loops = [Var("A_global.x"), Var("lambda"), Var("T"), Var("0"), Var("")]
    body: Any = Evaluate(const(0))
    for var in reversed(loops):
        body = For(var, const(0), const(2), ForKind.SERIAL, body)
    assert script(body).startswith("for A_global_x, lambda_1, T_1, v0, v in T.grid(2, 2, 2, 2, 2):")


def test_a_block_without_its_realize() -> None:
    axis = IterVar(Range(const(0), const(16)), i)
    block = Block((axis,), (), (), "X", Evaluate(i))
    assert script(block).splitlines()[:2] == [
        'with T.block("X", no_realize=True):',
        "    i = T.axis.spatial(16)",
    ]
    realize = BlockRealize((j,), const(True), block)
    assert script(realize, declares=True).splitlines()[:3] == [
        "j = T.int32()",
        'with T.block("X"):',
        "    i = T.axis.spatial(16, j)",
    ]


def test_module_prints_attrs_and_sorts_functions() -> None:
    def function(**attrs: Any) -> PrimFunc:
        return PrimFunc((), Evaluate(const(0)), attrs=attrs)

    module = IRModule({"b": function(global_symbol="b"), "a": function()}, {"x": 1})
    assert script(module) == dedent("""\
        # from tvm.script import ir as I
        # from tvm.script import tir as T

        @I.ir_module
        class Module:
            I.module_attrs({"x": 1})
            @T.prim_func(private=True)
            def a():
                T.evaluate(0)

            @T.prim_func
            def b():
                T.evaluate(0)""")
    assert script(IRModule()).endswith("class Module:\n    pass")


def test_a_symbol_other_than_the_name_is_shown() -> None:
    function = PrimFunc((), Evaluate(const(0)), attrs={"global_symbol": "not a name"})
    text = script(function)
    assert "def not_a_name():" in text
    assert parse(text).attrs == {"global_symbol": "not a name"}


def test_long_programs_print_in_linear_time() -> None:
    stores = tuple(S.BufferStore(A, const(0.0), (const(n), const(0))) for n in range(4000))
    assert len(script(SeqStmt(stores)).splitlines()) == 4000
