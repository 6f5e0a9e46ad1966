"""What each construct of the language means."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest

from mlcweb import te
from mlcweb.ir import DiagnosticError, GlobalVar, IRModule, assert_structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.script import parse, script
from mlcweb.tir import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    LetStmt,
    PrimFunc,
    Ramp,
    SeqStmt,
    Var,
    While,
)  # fmt: skip
from mlcweb.tir.dtype import NARROW_FLOATS

HEADER = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "int32"), n: T.int32):
"""


def body(text: str, **names: Any) -> Any:
    """The body of a function with the buffers A, B and the scalar n."""
    function = parse(HEADER + indent(text, "    "), names)
    assert isinstance(function, PrimFunc)
    return function.body


def stored(expression: str, **names: Any) -> str:
    """The text of an expression after reading it, stored to the int32 buffer B."""
    statement = body(f"B[0] = {expression}", **names)
    assert isinstance(statement, BufferStore)
    return str(statement.value)


def block(text: str) -> BlockRealize:
    """The block inside the loops of a body."""
    return next(
        node
        for node in walk(body(text))
        if isinstance(node, BlockRealize) and node.block.name_hint != "root"
    )


# Functions


def test_parameters() -> None:
    function = parse("""
@T.prim_func
def main(a: T.handle, n: T.int64, p: T.handle("float32", "shared"), B: T.Buffer[4, "int8"]) -> None:
    m = T.int32()
    A = T.match_buffer(a, [m, 16], "float16", strides=[m, 1], scope="local", align=128)
    T.evaluate(n)
""")
    assert isinstance(function, PrimFunc)
    a, n, p, b = function.params
    assert [v.dtype for v in function.params] == ["handle", "int64", "handle", "handle"]
    assert p.type_annotation is not None
    assert p.type_annotation.storage_scope == "shared"
    matched = function.buffer_map[a]
    assert (matched.dtype, matched.scope(), matched.data_alignment) == ("float16", "local", 128)
    assert matched.shape[0] is matched.strides[0]
    assert function.buffer_map[b].dtype == "int8"
    assert (a.name, b.name, function.buffer_map[b].name) == ("a", "B_handle", "B")
    assert (function.attrs, n.name) == ({"global_symbol": "main"}, "n")


@pytest.mark.parametrize(
    "annotation",
    [
        'T.Buffer((128, 4), "float32")', 'T.Buffer[(128, 4), "float32"]', "T.Buffer((128, 4))",
        "T.Buffer[(128, 4), T.float32]", "T.Buffer((N, M), dtype)", 'T.Buffer([N, 4], "float32")',
        "T.Buffer((N, M * 2 - 4), dtype=dtype)", "'T.Buffer((N, 4), \"float32\")'",
    ],
)  # fmt: skip
def test_spellings_of_buffers(annotation: str) -> None:
    text = "@T.prim_func\ndef main(A: {}):\n    A[0, 0] = 0.0"
    names = {"N": 128, "M": 4, "dtype": "float32"}
    expected = parse(text.format('T.Buffer((128, 4), "float32")'))
    assert_structural_equal(parse(text.format(annotation), names), expected)


def test_numbers_of_numpy_are_plain_constants() -> None:
    numpy = pytest.importorskip("numpy")
    names = {"N": numpy.int64(4), "shape": numpy.empty((4, 2)), "half": numpy.float32(0.5)}
    text = "@T.prim_func\ndef f(A: T.Buffer((N, shape.size), 'int32')):\n    A[0, 0] = N * half"
    expected = "@T.prim_func\ndef f(A: T.Buffer((4, 8), 'int32')):\n    A[0, 0] = 4 * 0.5"
    assert_structural_equal(parse(text, names), parse(expected))


def test_one_dimensional_buffers() -> None:
    for annotation in (
        'T.Buffer[128, "int8"]',
        'T.Buffer((128,), "int8")',
        'T.Buffer(128, "int8")',
    ):
        function = parse(f"@T.prim_func\ndef main(A: {annotation}):\n    A[0] = T.int8(0)")
        (buffer,) = function.buffer_map.values()
        assert [int(extent) for extent in buffer.shape] == [128]


def test_a_name_in_a_shape_may_be_a_parameter_that_follows() -> None:
    """As TVM 0.27 prints functions of symbolic shapes."""
    function = parse("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, "n"), "int32"), B: T.Buffer((4, n), "int32"), n: T.int64):
    for i, j in T.grid(4, n):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    assert isinstance(function, PrimFunc)
    n = function.params[2]
    assert n.dtype == "int64"
    assert [buffer.shape[1] is n for buffer in function.buffer_map.values()] == [True, True]
    assert function.body.block.body.body.extent is n


def test_string_shapes_name_variables() -> None:
    function = parse("""
@T.prim_func
def main(A: T.Buffer(("n", 16), "float32"), B: T.Buffer((n, "n * m"), "float32")):
    n = T.int64()
    T.func_attr({"tir.noalias": True})
    B[0, 0] = A[n - T.int64(1), 0]
""")
    assert isinstance(function, PrimFunc)
    first, second = function.buffer_map.values()
    assert first.shape[0] is second.shape[0]
    assert first.shape[0].dtype == "int64"
    assert str(second.shape[1]) == 'n * T.Cast("int64", m)'


def test_variables_that_python_makes_are_declared() -> None:
    text = """
@T.prim_func
def f(a: T.handle):
    n = {}
    A = T.match_buffer(a, (n,), "float32")
    A[n - 1] = T.float32(0)
"""
    expected = parse(text.format("T.int64()"))
    for made in ('te.var("n", "int64")', 'te.size_var("n", "int64")', 'T.Var("n", "int64")'):
        assert_structural_equal(parse(text.format(made), {"te": te}), expected)


def test_function_attributes() -> None:
    text = "@T.prim_func{}\ndef f():\n    T.func_attr({})\n    T.evaluate(0)"
    assert parse(text.format("", '{"x": [1, 2]}')).attrs == {"x": [1, 2], "global_symbol": "f"}
    assert parse(text.format("", '{"global_symbol": "g"}')).attrs == {"global_symbol": "g"}
    assert parse(text.format("(private=True)", "{}")).attrs == {}
    with pytest.raises(DiagnosticError, match='is private, so it has no "global_symbol"'):
        parse(text.format("(private=True)", '{"global_symbol": "g"}'))


def test_a_function_may_only_declare() -> None:
    text = """@T.prim_func
def f(a: T.handle):
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (4,))"""
    assert_structural_equal(parse(text), parse(f"{text}\n    T.evaluate(0)"))


def test_modules() -> None:
    module = parse("""
from tvm.script import ir as I

@I.ir_module
class Demo:
    '''A docstring.'''
    I.module_attrs({"target": "wasm"})

    @T.prim_func
    def inner(A: T.Buffer((4,), "float32")):
        A[0] = 1.0

    @T.prim_func(private=True)
    def outer(A: T.Buffer((4,), "float32")):
        Demo.inner(A.data)
        cls.inner(A.data)
""")
    assert isinstance(module, IRModule)
    assert module.attrs == {"target": "wasm"}
    assert [var.name_hint for var in module.get_global_vars()] == ["inner", "outer"]
    assert module["outer"].attrs == {}
    calls = [node for node in walk(module["outer"].body) if isinstance(node, Call)]
    assert [call.op for call in calls] == [GlobalVar("inner")] * 2
    assert_structural_equal(parse(script(module)), module)


# Loops


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("range(4)", ForKind.SERIAL), ("T.serial(4)", ForKind.SERIAL),
        ("T.serial(0, 4)", ForKind.SERIAL), ("T.parallel(4)", ForKind.PARALLEL),
        ("T.vectorized(4)", ForKind.VECTORIZED), ("T.unroll(4)", ForKind.UNROLLED),
        ('T.thread_binding(4, "threadIdx.x")', ForKind.THREAD_BINDING),
        ('T.thread_binding(0, 4, thread="threadIdx.x")', ForKind.THREAD_BINDING),
    ],
)  # fmt: skip
def test_loop_kinds(call: str, kind: ForKind) -> None:
    loop = body(f"for i in {call}:\n    B[i] = 0")
    assert isinstance(loop, For)
    assert (loop.kind, str(loop.min), str(loop.extent)) == (kind, "0", "4")
    tag = loop.thread_binding.thread_tag if loop.thread_binding else None
    assert tag == ("threadIdx.x" if kind is ForKind.THREAD_BINDING else None)


def test_grid_is_a_nest() -> None:
    outer = body("for i, j in T.grid(4, n):\n    A[i, j] = 0.0")
    assert (outer.loop_var.name, outer.body.loop_var.name) == ("i", "j")
    assert outer.body.extent.name == "n"


def test_loop_annotations_and_types() -> None:
    loop = body('for i in T.serial(T.int64(2), T.int64(8), annotations={"k": 1}):\n    B[0] = 0')
    assert loop.annotations == {"k": 1}
    assert (loop.loop_var.dtype, int(loop.min), int(loop.extent)) == ("int64", 2, 6)


# Blocks


def test_axes() -> None:
    realize = block("""
for i, j in T.grid(16, 8):
    for k in range(2, 6):
        with T.block("X"):
            vi, vk = T.axis.remap("SR", [i, k])
            vj = T.axis.S((0, 16), j * 2)
            vo = T.axis.opaque(16, i)
            vs, vr = T.axis.scan(16, i), T.axis.R(8, j)
            A[vi, vj] = A[vi, vk]
""")
    kinds = [axis.iter_type for axis in realize.block.iter_vars]
    assert kinds == [
        IterType.DATA_PARALLEL, IterType.COMM_REDUCE, IterType.DATA_PARALLEL, IterType.OPAQUE,
        IterType.ORDERED, IterType.COMM_REDUCE,
    ]  # fmt: skip
    domains = [(int(a.dom.min), int(a.dom.extent)) for a in realize.block.iter_vars]
    assert domains == [(0, 16), (2, 4), (0, 16), (0, 16), (0, 16), (0, 8)]
    assert [str(value) for value in realize.iter_values] == ["i", "k", "j * 2", "i", "i", "j"]


def test_block_contents() -> None:
    realize = block("""
for i in range(20):
    with T.block("X"):
        vi = T.axis.spatial(16, i)
        T.where(i < 16)
        T.reads([B[vi], A[vi, 0:4]])
        T.writes(A[vi, 0:16])
        T.block_attr({"a": 1})
        T.block_attr({"b": "text"})
        C = T.alloc_buffer([4], dtype="float32", scope="local")
        D = T.match_buffer(A[vi, 0:16], (16,), offset_factor=1)
        with T.init():
            A[vi, 0] = 1
        D[3] = C[0]
""")
    block_ = realize.block
    assert str(realize.predicate) == "i < 16"
    assert [str(region) for region in block_.reads] == ["B[vi]", "A[vi, 0:4]"]
    assert [str(region) for region in block_.writes] == ["A[vi, 0:16]"]
    assert block_.annotations == {"a": 1, "b": "text"}
    assert [buffer.scope() for buffer in block_.alloc_buffers] == ["local"]
    assert isinstance(block_.match_buffers[0].buffer.elem_offset, Var)
    assert str(block_.match_buffers[0].source) == "A[vi, 0:16]"
    assert str(block_.init.value) == "T.float32(1)"
    assert block_.body.buffer is block_.match_buffers[0].buffer


def test_attributes_that_are_dictionaries_are_merged() -> None:
    attributes = """
with T.block("X"):
    T.block_attr({"tile": {"i": 4, "inner": {"x": 1}}})
    T.block_attr({"tile": {"j": 8, "inner": {"y": 2}}, "tag": "t"})
    B[0] = 1
"""
    merged = {"tile": {"i": 4, "j": 8, "inner": {"x": 1, "y": 2}}, "tag": "t"}
    assert block(attributes).block.annotations == merged
    other = attributes.replace('"j": 8', '"i": 8')
    with pytest.raises(DiagnosticError, match='"tile" of the block "X" has an attribute "i" alr'):
        block(other)


def test_a_view_has_the_type_of_its_region() -> None:
    view = """
with T.block("X"):
    C = T.match_buffer(B[4:8])
    C[3] = 1
"""
    (match,) = block(view).block.match_buffers
    assert (match.buffer.dtype, match.buffer.shape[0].value) == ("int32", 4)
    with pytest.raises(DiagnosticError, match=r"elements of float32, but is matched .* are int32"):
        block(view.replace("B[4:8]", "B[4:8], (4,)"))


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_narrow_floats(dtype: str) -> None:
    plain = body(f"T.evaluate(T.{dtype}(1.0))")
    assert (plain.value.dtype, plain.value.value) == (dtype, 1.0)
    assert_structural_equal(body("T.evaluate(getattr(T, dtype)(1))", dtype=dtype), plain)


def test_root_block_is_implied_where_needed() -> None:
    plain = body("B[0] = 0")
    assert isinstance(plain, BufferStore)
    with_block = body('with T.block("X"):\n    vi = T.axis.spatial(1, 0)\n    B[vi] = 0')
    assert with_block.block.name_hint == "root"
    with_allocation = body("C = T.alloc_buffer((4,))\nC[0] = 0.0")
    assert with_allocation.block.alloc_buffers[0].name == "C"
    explicit = body('with T.block("root"):\n    for i in range(4):\n        B[i] = 0')
    assert (explicit.block.name_hint, explicit.block.reads, explicit.block.writes) == (
        "root",
        (),
        (),
    )


def test_both_spellings_of_blocks() -> None:
    old = """
with T.block("root"):
    C = T.alloc_buffer((4,))
    with T.block(""):
        T.block_attr({"a": 1})
        C[0] = 0.0
"""
    new = old.replace("T.block", "T.sblock").replace("alloc_buffer", "sblock_alloc_buffer")
    assert_structural_equal(body(new).block.body, body(old).block.body)


# Other statements


def test_let_and_constants() -> None:
    let = body("x = n + 1\nB[x] = x")
    assert isinstance(let, LetStmt)
    assert (let.var.name, str(let.value), str(let.body)) == ("x", "n + 1", "B[x] = x")
    typed = body("x: T.int64 = 3\nB[0] = 1")
    assert (typed.var.dtype, str(typed.value)) == ("int64", "T.int64(3)")
    called = body("x: T.let[T.int32()] = n\nB[x] = 1")
    assert_structural_equal(called, body("x = n\nB[x] = 1"), True)
    assert_structural_equal(body("x: T.let[T.int32] = n\nB[x] = 1"), body("x = n\nB[x] = 1"), True)
    constant = body("x = 3\ny, z = x + 1, (2, 5)\nB[x] = y * z[1]")  # as TVM's: numbers are let
    assert (constant.var.name, str(constant.value)) == ("x", "3")
    assert str(constant.body) == "y: T.int32 = x + 1\nB[x] = y * 5"
    scoped = body("with T.LetStmt(n * 2) as x:\n    B[x] = 0\nB[1] = 1")
    assert isinstance(scoped, SeqStmt)
    declared = body("x = T.int32()\nwith T.let(x, n + 1):\n    B[x] = 0")
    assert (declared.var.name, str(declared.value)) == ("x", "n + 1")


def test_branches() -> None:
    branch = body("if n < 3:\n    B[0] = 0\nelif n < 4:\n    B[1] = 1\nelse:\n    B[2] = 2")
    assert isinstance(branch, IfThenElse)
    assert str(branch.else_case.else_case) == "B[2] = 2"
    assert body("if n:\n    B[0] = 0").condition.dtype == "bool"
    assert str(body("if N > 3:\n    B[0] = 0\nelse:\n    B[1] = 1", N=3)) == "B[1] = 1"


def test_loops_without_end_and_checks() -> None:
    loop = body("while B[0] < 3:\n    B[0] = B[0] + 1")
    assert isinstance(loop, While)
    check = body('assert n < 3, "small"\nB[0] = 1')
    assert isinstance(check, AssertStmt)
    assert (str(check.condition), check.message.value) == ("n < 3", "small")


def test_attributes_threads_and_declarations() -> None:
    attribute = body('T.attr(0, "pragma", 3)\nB[0] = 1')
    assert isinstance(attribute, AttrStmt)
    assert (attribute.attr_key, str(attribute.body)) == ("pragma", "B[0] = 1")
    several = body('with T.attr({"async_scope": 1, "pragma": 2}):\n    B[0] = 1')
    assert [several.attr_key, several.body.attr_key] == ["async_scope", "pragma"]
    assert (several.body.node, str(several.body.value)) == (0, "2")
    thread = body('tx = T.launch_thread("threadIdx.x", 4)\nB[tx] = 1')
    assert (thread.attr_key, thread.node.thread_tag) == ("thread_extent", "threadIdx.x")
    for launch in ("T.launch_thread(tx, 4)\n", "with T.launch_thread(tx, 4):\n    "):
        env = body(f'tx = T.env_thread("threadIdx.x")\n{launch}B[tx] = 1')
        assert env.node.thread_tag == "threadIdx.x"
        assert env.body.indices == (env.node.var,)
    declared = body("C = T.decl_buffer((4,), 'int8')\nC[0] = T.int8(1)")
    assert isinstance(declared, AllocBuffer)


def test_calls_are_statements() -> None:
    assert isinstance(body('T.evaluate(T.call_extern("f", n, dtype="int32"))'), Evaluate)
    old, new = body('T.call_extern("f", n, dtype="int32")'), body('T.call_extern("int32", "f", n)')
    assert str(old) == str(new) == 'T.call_extern("int32", "f", n)'
    assert isinstance(body("T.buffer_store(B, 3, [n])"), BufferStore)
    row = "B[0:4] = T.Broadcast(1, 4)"
    for call in (
        "T.buffer_store(B, 1, [T.Ramp(0, 1, 4)])",
        "T.buffer_store(B, T.Broadcast(1, 4), [T.Ramp(0, 1, 4)])",
        "B.vstore([0], T.Broadcast(1, 4))",
        "B.vstore([T.Ramp(0, 1, 4)], T.Broadcast(1, 4))",
    ):
        assert str(body(call)).splitlines()[-1] == row
    assert str(body("pass")) == "T.evaluate(0)"


def test_augmented_assignment_of_elements() -> None:
    assert str(body("B[n] += 2 * n")) == "B[n] = B[n] + 2 * n"
    assert str(body("A[0, n] /= 2")) == "A[0, n] = A[0, n] / T.float32(2)"


def test_several_frames_in_one_with() -> None:
    attribute = body('with T.attr(0, "a", 1), T.attr(0, "b", 2):\n    B[0] = 1')
    assert (attribute.attr_key, attribute.body.attr_key) == ("a", "b")


# Expressions


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("n + 0", "n"), ("16 * 2 + n", "32 + n"), ("-n", "n * -1"), ("+n", "n"), ("2 ** 3", "8"),
        ("n < 3 and 1 < n", 'T.Cast("int32", n < 3 and 1 < n)'),
        ("1 < n < 3", 'T.Cast("int32", 1 < n and n < 3)'),
        ("not n < 3", 'T.Cast("int32", not n < 3)'), ("n & 3 | ~n", "n & 3 | ~n"),
        ("n << 2 >> 1 ^ 1", "n << 2 >> 1 ^ 1"), ("n // 2 % 3", "n // 2 % 3"),
        ("1 if n < 3 else 2", "T.if_then_else(n < 3, 1, 2)"), ("1 if 2 < 3 else n", "1"),
        ("T.if_then_else(n < 3, n, 2)", "T.if_then_else(n < 3, n, 2)"),
        ("T.Select(n < 3, n, 2)", "T.Select(n < 3, n, 2)"),
        ("T.max(n, 1, 2)", "T.max(T.max(n, 1), 2)"), ("min(n, 1)", "T.min(n, 1)"),
        ("abs(n)", "T.abs(n)"), ("T.truncdiv(n, 2)", "T.Div(n, 2)"), ("T.Div(n, 2)", "T.Div(n, 2)"),
        ("T.truncmod(n, 2)", "T.truncmod(n, 2)"), ("T.floordiv(n, 2)", "n // 2"),
        ("T.Add(3, 4)", "T.Add(3, 4)"), ("T.cast(n, 'int32')", "n"), ("T.int32(n)", "n"),
        ('n.astype("int32")', "n"), ("T.Cast('int32', T.int64(n))",
         'T.Cast("int32", T.Cast("int64", n))'),
        ("T.min_value('int8')", "-128"), ("T.max_value('int32')", "2147483647"),
        ("T.reinterpret('int32', T.float32(1))", 'T.reinterpret("int32", T.float32(1))'),
        ("T.Let(x + 1, where={x: n})", "T.Let(x + 1, where={x: n})"), ("len((1, 2)) + N", "9"),
        ("[1, 2, 3][-1]", "3"), ("{'a': n}['a']", "n"), ("sum([1, 2])", "3"),
        ("2 * 2.0", '4'),
        ("helper(n)", "n + 1"), ("config.size + n", "5 + n"), ("A.shape[0] + n", "16 + n"),
        ("T.likely(n < 3)", 'T.Cast("int32", T.likely(n < 3))'), ("True", "1"),
        ("B[n].astype('int32')", "B[n]"), ("B.vload([n])", "B[n]"),
    ],
)  # fmt: skip
def test_expressions(expression: str, text: str) -> None:
    class Config:
        size = 5

    names = {"N": 7, "x": Var("x"), "helper": lambda value: value + 1, "config": Config()}
    assert stored(expression, **names) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1", "T.float32(1)"), ("T.float32()", None), ("0.5", "T.float32(0.5)"),
        ("A[n, 0] * 2", "A[n, 0] * T.float32(2)"), ("n", 'T.Cast("float32", n)'),
        ("T.exp(A[0, 0])", "T.exp(A[0, 0])"), ("T.infinity('float32')", 'T.float32("inf")'),
        ("A[0, 0] / 3", "A[0, 0] / T.float32(3)"), ("T.float64(1) + A[0, 0]",
         'T.Cast("float32", T.float64(1) + T.Cast("float64", A[0, 0]))'),
        ("T.float32('inf')", 'T.float32("inf")'),
        ("A[0, 0] ** 2.0", "T.pow(A[0, 0], T.float32(2))"),
        ("T.sigmoid(T.sqrt(A[0, 0]))", "T.sigmoid(T.sqrt(A[0, 0]))"),
        ("T.fabs(A[0, 0])", "T.fabs(A[0, 0])"),
    ],
)  # fmt: skip
def test_values_take_the_type_of_the_buffer(expression: str, text: str | None) -> None:
    if text is not None:
        assert str(body(f"A[0, 0] = {expression}").value) == text


def test_vectors_and_slices() -> None:
    store = body("A[n, 0:8:2] = T.broadcast(1.0, 4) + A[n, 4:8]")
    assert isinstance(store.indices[1], Ramp)
    assert str(store) == "A[n, 0:8:2] = T.Broadcast(T.float32(1), 4) + A[n, 4:8]"
    assert str(body("A[n, T.ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 4)").indices[1]) == (
        "T.Ramp(0, 1, 4)"
    )
    assert str(body("A[0, :4] = T.float32(0)").value) == "T.Broadcast(T.float32(0), 4)"


def test_pointers() -> None:
    call = body('T.call_extern("int32", "f", A.access_ptr("w", offset=4), B.data)').value
    assert script(call.args[1]) == ('T.tvm_access_ptr(T.type_annotation("float32"), A, 4, 252, 2)')


def test_nodes_know_their_source() -> None:
    text = HEADER + "    for i in range(4):\n        B[i] = B[i + 1] + T.abs(n)\n"
    function = parse(text, filename="demo.py")
    loop = function.body
    load = next(node for node in walk(loop) if isinstance(node, BufferLoad))
    call = next(node for node in walk(loop) if isinstance(node, Call))
    assert str(loop.span) == "demo.py:4:5"
    assert str(loop.body.span) == "demo.py:5:9"
    assert (str(load.span), load.span.end_column) == ("demo.py:5:16", 23)
    assert str(call.span) == "demo.py:5:27"


def test_integers_wider_than_an_int32() -> None:
    wide = body("B[0] = 5000000000").value
    assert isinstance(wide, IntImm)
    assert wide.value == 5000000000 % 2**32


def test_an_axis_that_is_covered_in_part_is_read_where_regions_are_written_down() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((3,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(7):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            REGIONS
            B[v] = A[v]
    for i in range(21):
        with T.block("C"):
            v = T.axis.spatial(3, i)
            T.where(i < 3)
            C[v] = B[v * 3 + 1]
"""
    parse(source.replace("REGIONS", "T.reads(A[v]); T.writes(B[v])"))
    with pytest.raises(DiagnosticError, match=r'axis "v" of the block "B" has 8 values'):
        parse(source.replace("REGIONS", "pass"))
    parse(source.replace("REGIONS", "pass").replace("v * 3 + 1", "v * 3"))


def test_statements_outside_of_blocks_read_only_what_is_written() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(7):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(7):
        C[i] = B[i]
"""
    parse(source)
    with pytest.raises(DiagnosticError, match=r'axis "v" of the block "B" has 8 values'):
        parse(source.replace("B[i]", "B[i + 1]"))


def test_calls_within_a_module_have_the_type_that_the_function_returns() -> None:
    module = parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(a: T.int64, b: T.int64) -> T.int64:
        return a + b

    @T.prim_func(private=True)
    def nothing(a: T.int32):
        T.evaluate(a)

    @T.prim_func
    def main(C: T.Buffer((4,), "int64")):
        two: T.int64 = Module.add(1, 1)
        C[0] = cls.add(two, two) + 1
        Module.nothing(3)
""")
    calls = [node for node in walk(module["main"].body) if isinstance(node, Call)]
    of_module = [call for call in calls if isinstance(call.op, GlobalVar)]
    assert [call.dtype for call in of_module] == ["int64", "int64", "void"]
    assert_structural_equal(parse(module.script()), module)


def test_strides_without_a_name_are_read_as_tvm_prints_them() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float16", strides=("", 1), offset_factor=1)):
    A[0, 0] = T.float16(0)
"""
    func = parse(source)
    assert_structural_equal(parse(func.script()), func)
    with pytest.raises(DiagnosticError, match="names a variable, not '1x'"):
        parse(source.replace('""', '"1x"'))


def test_variables_may_be_declared_by_name():
    source = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = {}
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = A[i]
"""
    named, plain = (parse(source.format(n)) for n in ('T.Var("tokens", "int64")', "T.int64()"))
    assert_structural_equal(named, plain)


def test_a_python_function_takes_a_buffer_or_none():
    from mlcweb.script import tir as T

    def scaled(x, scale: T.Buffer | None = None):
        return x if scale is None else x * scale[0]

    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), s: T.Buffer((1,), "float32")):
        for i in range(4):
            A[i] = scaled(A[i], s)

    assert "A[i] * s[0]" in script(main)


def test_assertions_with_the_class_of_the_error():
    func = parse(
        '@T.prim_func\ndef f(n: T.int32):\n    assert n > 2, ("ValueError", ["more than ", "2"])\n'
    )
    assert func.body.message.value == "more than 2"


def test_layouts_that_are_none():
    func = parse(
        '@T.prim_func\ndef f(A: T.Buffer((4,), "int32", layout=None)):\n'
        "    B = T.decl_buffer((4,), data=A.data, layout=None)\n    B[0] = 1.0\n"
    )
    assert func.body.buffer.dtype == "float32"
    with pytest.raises(DiagnosticError, match="A buffer with a layout is not supported"):
        parse(
            '@T.prim_func\ndef f():\n    A = T.decl_buffer((4,), layout="S[4]")\n    A[0] = 1.0\n'
        )
