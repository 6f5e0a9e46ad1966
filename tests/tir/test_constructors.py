"""Nodes made as programs make them, of numbers, lists and conditions."""

import numpy as np
import pytest

import mlcweb as tvm
import mlcweb.topi
from mlcweb import relax, te, tir
from mlcweb.compat.containers import Range
from mlcweb.compat.enums import DataTypeCode
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import from_source
from mlcweb.tir import expr, stmt

x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
f = tir.Var("f", "float32")
A = tir.decl_buffer((8,), "float32", "A")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (lambda: tir.Add(1, x), "1 + x"),
        (lambda: tir.Max(f, 3), "T.max(f, T.float32(3))"),
        (lambda: tir.And(x == 1, y != 2), "x == 1 and y != 2"),
        (lambda: tir.Select(x == 0, 1, f), "T.Select(x == 0, T.float32(1), f)"),
        (lambda: tir.Not(x == 0), "not x == 0"),
        (lambda: tir.Let(x, 3, x + 1), "T.Let(x + 1, where={x: 3})"),
        (lambda: tir.Cast("float32", 3), 'T.Cast("float32", 3)'),
        (lambda: tir.Ramp(0, 1, tir.IntImm("int32", 4)), "T.Ramp(0, 1, 4)"),
        (lambda: tir.BufferLoad(A, [x]), "A[x]"),
        (lambda: tir.BufferRegion(A, [Range(0, 4)]), "A[0:4]"),
        (lambda: tir.IterVar((0, 8), "v", 2), 'T.iter_var(v, T.Range(0, 8), "CommReduce", "")'),
        (lambda: tir.BufferStore(A, 1, [0]), "A[0] = T.float32(1)"),
        (lambda: tir.Evaluate(x == 3), "T.evaluate(x == 3)"),
        (lambda: tir.IfThenElse(x == 0, tir.Evaluate(1), None), "if x == 0:\n    T.evaluate(1)"),
        (
            lambda: tir.For(x, 0, 8, 1, tir.Evaluate(x)),
            "for x in T.parallel(8):\n    T.evaluate(x)",
        ),
        (lambda: tir.While(x == 0, tir.Evaluate(0)), "while x == 0:\n    T.evaluate(0)"),
        (lambda: tir.AssertStmt(x == 0, "m", tir.Evaluate(0)), 'assert x == 0, "m"'),
        (lambda: tir.AttrStmt(x, "k", 1, tir.Evaluate(0)), 'with T.attr(x, "k", 1)'),
        (lambda: tir.SeqStmt([tir.Evaluate(0), tir.Evaluate(1)]), "T.evaluate(0)\nT.evaluate(1)"),
        (lambda: tir.BlockRealize([], True, tir.Block([], [], [], "b", tir.Evaluate(0))), '"b"'),
        (lambda: tir.Allocate(A.data, "float32", [8], True, tir.Evaluate(0)), "T.decl_buffer((8,)"),
        (lambda: tir.ret(3), "T.ret(3)"),
        (lambda: tir.shift_left(x, 2), "x << 2"),
        (lambda: tir.ceildiv(x, 4), "(x + 4 - 1) // 4"),
        (lambda: tir.address_of(A[0]), "T.address_of(A[0])"),
        (lambda: tir.address_of(A), "T.address_of(A[0])"),
    ],
)
def test_arguments_are_converted(node, text):
    assert text in str(node())


def test_a_function_of_nodes_runs():
    body = tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(A, tir.Cast("float32", x), [x]))
    func = tir.PrimFunc([A], body, None, None, {"global_symbol": "main"})
    parsed = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n'
        '    for x in range(8):\n        A[x] = T.Cast("float32", x)'
    )
    assert_structural_equal(func, parsed)
    out = tvm.nd.empty((8,))
    tvm.build(func, target="interpreter")["main"](out)
    np.testing.assert_array_equal(out.numpy(), np.arange(8, dtype="float32"))


def test_sequences_of_sequences_are_flat():
    one, two, three = (tir.Evaluate(n) for n in (1, 2, 3))
    flat = tir.SeqStmt([tir.SeqStmt([one, two]), three])
    assert flat.seq == (one, two, three)
    assert_structural_equal(flat, tir.SeqStmt([one, tir.SeqStmt([two, three])]))


def test_classes_are_those_of_the_nodes():
    assert isinstance(x, tir.Var) and isinstance(x, expr.Var) and not isinstance(x, tir.Add)
    assert type(x) == tir.Var and {tir.Var: 1}[type(x)] == 1  # noqa: E721
    assert issubclass(expr.Add, tir.Add) and tir.Add != tir.Sub
    assert tir.IterVar.CommReduce == stmt.IterType.COMM_REDUCE
    match tir.Add(x, 1):
        case tir.Add(a=left):
            assert left is x


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (lambda: tir.Add(x, f), "tir.Add: mismatched types: int32 vs. float32"),
        (lambda: tir.Evaluate(object()), "tir.Evaluate: .* is not an expression"),
        (lambda: tir.Evaluate(1, 2, 3), "positional argument"),
        (lambda: tir.For(x, 0), "missing"),
        (lambda: tir.Allocate(A.data, "float32", [8], x > 0, tir.Evaluate(0)), "IfThenElse"),
        (lambda: tir.BufferLoad(A, [0], predicate=1), "IfThenElse"),
    ],
)
def test_refusals(node, message):
    with pytest.raises(TypeError, match=message):
        node()


SPECIALIZED = from_source("""@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, s: T.float32):
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + s
""")


def test_specialize():
    a, b, n, s = SPECIALIZED.params
    assert SPECIALIZED.specialize({}) is SPECIALIZED
    scalar = SPECIALIZED.specialize({n: 16, s: 1.0})
    assert [p.name for p in scalar.params] == ["a", "b"]
    assert [str(e) for e in scalar.buffer_map[a].shape] == ["16", "m"]
    both = SPECIALIZED.specialize({a: tir.decl_buffer((4, 8)), s: 2})
    assert [p.name for p in both.params] == ["a", "b"]
    out = tvm.nd.empty((4, 8))
    tvm.build(both, target="interpreter")["main"](tvm.nd.array(np.ones((4, 8), "float32")), out)
    np.testing.assert_array_equal(out.numpy(), 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda a, n: {tir.Var("z", "int32"): 3}, '"z" is not a parameter of the function; it has'),
        (lambda a, n: {a: 3}, '"a" is a buffer; 3 cannot be given'),
        (lambda a, n: {n: A}, '"n" is a scalar'),
        (lambda a, n: {a: A}, "2 dimensions of float32"),
    ],
)
def test_specialize_refuses(given, message):
    a, _, n, _ = SPECIALIZED.params
    with pytest.raises(ValueError, match=message):
        SPECIALIZED.specialize(given(a, n))


def test_specialize_gives_pointers_addresses():
    """The address has a variable of its own, as data of buffers has to be one."""
    func = from_source("""@T.prim_func
def main(A: T.Buffer((32,), "float32"), C: T.Buffer((16,), "float32"), p: T.handle("float32")):
    B = T.decl_buffer((16,), "float32", data=p)
    for i in range(16):
        C[i] = B[i]
""")
    expected = from_source("""@T.prim_func
def main(A: T.Buffer((32,), "float32"), C: T.Buffer((16,), "float32")):
    p: T.let[T.Ptr[T.float32]] = T.address_of(A[16])
    B = T.decl_buffer((16,), "float32", data=p)
    for i in range(16):
        C[i] = B[i]
""")
    a, _, p = func.params
    address = tir.address_of(func.buffer_map[a][16])
    assert_structural_equal(func.specialize({p: address}), expected)
    same = func.specialize({p: func.buffer_map[a].data})
    assert same.body.buffer.data is func.buffer_map[a].data


def test_types_without_bits_are_of_32():
    by_dtype = {
        "int32": (tir.Var("a", "int"), tir.const(1, "int"), tir.IntImm("int", 1), f.astype("int"),
                  te.var("n", "int"), tir.SizeVar("m", "int"), tir.Cast("int", f)),
        "float32": (tir.FloatImm("float", 1.0), x.astype("float"), te.placeholder((2,), "float"),
                    tir.decl_buffer((2,), "float"), te.placeholder((2,), "int8").astype("float"),
                    relax.TensorStructInfo((2,), "float")),
        "uint32": (tir.const(1, "uint"), tir.PointerType("uint")),
    }  # fmt: skip
    for dtype, nodes in by_dtype.items():
        assert {str(getattr(n, "element_type", None) or n.dtype) for n in nodes} == {dtype}
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int"), B: T.Buffer((4,), "float")):
    for i in range(4):
        B[i] = T.Cast("float", A[i]) + T.cast(A[i], "float")
""")
    out = tvm.nd.empty((4,))
    tvm.build(func, target="interpreter")["main"](tvm.nd.array(np.arange(4, dtype="int32")), out)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6])


def test_variables_as_since_0_27():
    assert tir.Var("n", ty="int64").dtype == tir.Var(name_hint="n", ty="int64").dtype == "int64"
    pointer = tir.PointerType("int8")
    assert tir.Var("p", ty=pointer).type_annotation is pointer
    assert tir.Var(name="n").dtype == "int32"


def test_the_type_of_an_expression_is_one_of_a_constant():
    with pytest.raises(tvm.TVMError, match='Unknown data type "x"'):
        tir.const(1, x)
    assert f.ty.matches_code(DataTypeCode.FLOAT)
    assert x.ty.matches_element_type(DataTypeCode.INT, 32)
    assert x.ty.is_scalar()
    one = tir.const(1, f.ty)
    assert (one.dtype, one.value) == ("float32", 1.0)
    assert te.placeholder((2,), "bool").dtype.matches_code(DataTypeCode.BOOL)


def test_what_follows_a_binding_without_a_body_is_its_scope():
    b = tir.decl_buffer((4,), "int32", "b")
    nest = tir.SeqStmt(
        [tir.Bind(x, 3), tir.AllocBuffer(b), tir.BufferStore(b, x, [0]), tir.Evaluate(x)]
    )
    body = tir.SeqStmt([tir.BufferStore(b, x, [0]), tir.Evaluate(x)])
    assert_structural_equal(nest, tir.LetStmt(x, 3, tir.AllocBuffer(b, body)))
    assert isinstance(nest, tir.Bind) and nest.var is x
    assert_structural_equal(tir.DeclBuffer(b), tir.DeclBuffer(b, tir.Evaluate(0)))


def test_a_binding_that_has_a_body_keeps_it():
    own = tir.LetStmt(x, 3, tir.Evaluate(x))
    row = tir.SeqStmt([own, tir.Evaluate(y)])
    assert isinstance(row, tir.SeqStmt) and row.seq[0] is own


def test_a_step_is_in_what_the_body_sees():
    out = tir.decl_buffer((10,), "float32", "out")
    loop = tir.For(x, 2, 7, tir.ForKind.SERIAL, tir.BufferStore(out, f, [x]), step=3)
    function = tir.PrimFunc([f, out], loop, attrs={"global_symbol": "main"})
    stored = tvm.nd.array(np.zeros(10, "float32"))
    tvm.build(function, target="interpreter")(5.0, stored)
    assert stored.numpy().tolist() == [0, 0, 5, 0, 0, 5, 0, 0, 5, 0]
    with pytest.raises(tvm.TVMError, match="the step of a loop is a positive constant, not 0"):
        tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(x), step=0)
