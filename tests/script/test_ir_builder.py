"""Functions built call by call equal those that scripts say."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te, topi
from mlcweb.ir.errors import TVMError
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import from_source
from mlcweb.script.ir_builder import IRBuilder
from mlcweb.script.ir_builder import ir as I
from mlcweb.script.ir_builder import relax as R
from mlcweb.script.ir_builder import tir as T
from mlcweb.script.ir_builder.base import BuilderError


def built(fill):
    with IRBuilder() as builder, T.prim_func():
        T.func_name("main")
        fill()
    return builder.get()


def script(body, parameters='A: T.Buffer((8, 8), "float32")'):
    lines = "\n    ".join(body.strip().splitlines())
    return from_source(f"@T.prim_func\ndef main({parameters}):\n    {lines}")


def test_matmul_computes():
    with IRBuilder() as builder, T.prim_func():
        T.func_name("main")
        T.func_attr({"tir.noalias": True})
        A = T.arg("A", T.Buffer[(4, 8), "float32"])
        B = T.arg("B", T.buffer_decl((8, 4), "float32"))
        c = T.arg("c", T.handle())
        C = T.match_buffer(c, (4, 4), "float32")
        with T.grid(4, 4, 8) as (i, j, k), T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                T.buffer_store(C, 0, [vi, vj])
            T.buffer_store(C, C[vi, vj] + A[vi, vk] * B[vk, vj], [vi, vj])
    func = builder.get()
    assert_structural_equal(
        func,
        script(
            """T.func_attr({"tir.noalias": True})
C = T.match_buffer(c, (4, 4), "float32")
for i, j, k in T.grid(4, 4, 8):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]""",
            'A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32"), c: T.handle',
        ),
    )
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.ones((8, 4), "float32")
    out = tvm.nd.empty((4, 4))
    tvm.build(func, target="interpreter")["main"](tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_array_equal(out.numpy(), a @ b)


def test_block_parts():
    def fill():
        A = T.arg("A", T.Buffer((8, 8), "float32"))
        B = T.alloc_buffer((8, 8), "float32")
        with T.serial(0, 8, annotations={"k": 1}) as i, T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(i < 7)
            T.reads(A[vi, 0])
            T.writes(B[vi, 0])
            T.block_attr({"note": "x"})
            T.buffer_store(B, A[vi, 0], [vi, 0])

    assert_structural_equal(
        built(fill),
        script("""B = T.alloc_buffer((8, 8), "float32")
for i in T.serial(8, annotations={"k": 1}):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        T.where(i < 7)
        T.reads(A[vi, 0])
        T.writes(B[vi, 0])
        T.block_attr({"note": "x"})
        B[vi, 0] = A[vi, 0]"""),
    )


def test_statements():
    def fill():
        A = T.arg("A", T.Buffer((8, 8), "float32"))
        with T.parallel(0, 8) as i:
            with T.If(i < 4):
                with T.Then():
                    T.buffer_store(A, 1, [i, 0])
                with T.Else():
                    T.evaluate(T.call_extern("int32", "f", i))
            with T.LetStmt(i * 2) as x, T.attr(A.data, "key", x):
                T.evaluate(x)
            local = T.alloc_buffer((4,), "int32", scope="local")
            with T.While(local[0] < 3):
                T.buffer_store(local, local[0] + 1, [0])
        with T.launch_thread("threadIdx.x", 4) as tx, T.Assert(tx < 4, "in range"):
            y = T.bind(tx + 1)
            T.evaluate(y)

    assert_structural_equal(
        built(fill),
        script("""local = T.alloc_buffer((4,), "int32", scope="local")
for i in T.parallel(8):
    if i < 4:
        A[i, 0] = T.float32(1)
    else:
        T.call_extern("int32", "f", i)
    with T.LetStmt(i * 2) as x:
        with T.attr(A.data, "key", x):
            T.evaluate(x)
    while local[0] < 3:
        local[0] = local[0] + 1
with T.launch_thread("threadIdx.x", 4) as tx:
    with T.Assert(tx < 4, "in range"):
        y = T.bind(tx + 1)
        T.evaluate(y)"""),
    )


def test_names():
    def fill():
        n = T.arg("n", T.int32())
        with T.grid(n, n) as (i, j):
            IRBuilder.name_many(["row", "column"], [i, j])
            T.evaluate(i + j)
        B = IRBuilder.name("B", T.alloc_buffer((n,)))
        T.buffer_store(B, 0.5, [0])

    text = built(fill).script()
    assert "def main(n: T.int32)" in text
    assert "for row, column in T.grid(n, n)" in text
    assert "B = T.alloc_buffer((n,))" in text and "B[0] = T.float32(0.5)" in text


def test_module():
    with IRBuilder() as builder, I.ir_module():
        I.module_attrs({"version": 3})
        with T.prim_func(is_private=True):
            T.func_name("one")
            T.evaluate(1)
        with T.prim_func():
            T.func_name("two")
            T.func_ret(T.int32)
            x = T.arg("x", T.int32())
            T.evaluate(T.ret(x))
        with pytest.raises(BuilderError, match="has the attribute"):
            I.module_attrs({"version": 4})
        assert I.module_get_attr("version") == 3
    mod = builder.get()
    assert sorted(var.name_hint for var in mod.functions) == ["one", "two"]
    assert mod["one"].attrs.get("global_symbol") is None
    assert mod["two"].ret_type == "int32" and mod.attrs["version"] == 3


def test_graph_function():
    with IRBuilder() as builder, I.ir_module(), R.function():
        R.func_name("main")
        R.func_attr({"num_input": 1})
        x = R.arg("x", R.Tensor((4, 8), "float32"))
        w = R.arg("w", R.tensor((8, 2), "float32"))
        with R.dataflow() as flow:
            lv = IRBuilder.name("product", R.emit(R.matmul(x, w)))
            out = R.emit(R.emit_te(topi.nn.relu, lv))
            R.output(out)
        (out,) = flow.output_vars
        R.func_ret_struct_info(R.Tensor((4, 2), "float32"))
        R.func_ret_value(out)
    mod = builder.get()
    assert "product: R.Tensor" in mod.script() and mod["main"].attrs["num_input"] == 1
    block = mod["main"].body.blocks[0]
    assert isinstance(block.bindings[0].var, relax.DataflowVar)
    assert not isinstance(block.bindings[1].var, relax.DataflowVar)
    assert_structural_equal(from_source(mod.script()), mod)
    a, b = np.random.rand(4, 8).astype("float32"), np.random.rand(8, 2).astype("float32") - 0.5
    vm = relax.VirtualMachine(relax.build(mod, "numpy"), tvm.cpu())
    got = vm["main"](tvm.nd.array(a), tvm.nd.array(b)).numpy()
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-5)


def _nothing():
    with IRBuilder() as builder:
        pass
    builder.get()


def _branch_alone():
    built(lambda: T.Then().__enter__())


def _no_then():
    def fill():
        with T.If(T.int32() < 3):
            pass

    built(fill)


def _two_names():
    built(lambda: T.func_name("again"))


def test_statements_outside_of_functions_are_results():
    with IRBuilder() as builder, T.serial(8) as i:
        T.evaluate(builder.name("i", i))
        T.evaluate(1)
    assert str(builder.get()) == "for i in range(8):\n    T.evaluate(i)\n    T.evaluate(1)"
    with IRBuilder() as builder:
        T.buffer_store(T.Buffer((4,), "int32"), 7, [2])
        T.evaluate(2)
    assert str(builder.get()).endswith("buffer[2] = 7\nT.evaluate(2)")


def test_statements_are_asked_for_before_the_builder_is_left():
    with IRBuilder() as builder:
        with T.serial(4) as i:
            T.evaluate(i)
            with pytest.raises(BuilderError, match="once the outermost `with"):
                builder.get()
        inside = builder.get()
    assert str(inside) == "for v in range(4):\n    T.evaluate(v)"
    assert builder.get() is inside


def test_a_statement_of_a_builder_computes_a_tensor():
    def running_sums(rows, sums):
        rows, sums = T.buffer_proxy(rows), T.buffer_proxy(sums)
        assert (rows.dtype, len(sums.shape)) == ("float32", 2)
        with IRBuilder() as builder:
            with T.seq_scope():
                with T.parallel(0, 3) as i:
                    sums[i * 5] = rows[i, 0]
                with T.serial(0, 3) as i, T.serial(1, 5) as j:
                    sums[i, j] = sums[i * 5 + j - 1] + rows[i * 5 + j]
            return builder.get()

    A = te.placeholder((3, 5), name="A")
    B = te.extern([(3, 5)], [A], lambda ins, outs: running_sums(*ins, *outs), dtype="float32")
    numbers, out = np.arange(15, dtype="float32").reshape(3, 5), tvm.nd.empty((3, 5))
    tvm.build(te.create_prim_func([A, B]), target="llvm")["main"](tvm.nd.array(numbers), out)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(numbers, 1))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: T.func_name("f"), "No builder is open: write `with IRBuilder"),
        (lambda: IRBuilder().__enter__() and T.func_name("f"), "T.func_name belongs inside"),
        (_nothing, "Nothing was built"),
        (_branch_alone, r"T.Then\(\) belongs inside `with T.If"),
        (_no_then, "T.If has no branch"),
        (_two_names, 'a name already, "main"'),
        (lambda: built(lambda: T.where(True)), "T.where belongs inside `with T.block"),
        (lambda: built(lambda: T.arg("x", 3)), "A parameter is a buffer or a variable"),
        (lambda: I.module_attrs({"a": 1}), "I.module_set_attr belongs inside|No builder"),
        (lambda: R.emit(3), r"R.emit belongs inside `with R.function\(\)|No builder"),
        (lambda: R.Then().__enter__(), r"R.Then belongs inside `with R.function\(\)|No builder"),
        (lambda: T.no_such_name, "T has no no_such_name"),
    ],
)
def test_refusals(use, message):
    from mlcweb.script.ir_builder import base

    token = base._open.set(())
    try:
        with pytest.raises((TVMError, AttributeError), match=message):
            use()
    finally:
        base._open.reset(token)
