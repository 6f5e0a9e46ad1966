"""The builder makes the functions that TVM makes, with TVM's names."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te, tir, topi
from mlcweb.ir import TVMError
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.relax.analysis.well_formed import refuse_ill_formed


def lines(function):
    """The body of a function, line by line."""
    return [line.strip() for line in function.script().splitlines()][3:]


def test_names_and_normal_form_as_in_tvm():
    """Expected text: what a real TVM prints for the same calls."""
    x = relax.Var("x", Tensor((1, 784), "float32"))
    w0 = relax.const(np.zeros((128, 784), "float32"))
    b0 = relax.const(np.zeros((128,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv0 = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)))
            lv1 = bb.emit(relax.op.add(lv0, b0))
            lv2 = bb.emit(relax.op.nn.relu(lv1))
            pair = bb.emit((lv2, lv1))
            first = bb.emit(pair[0])
            nested = relax.op.add(relax.op.add(lv0, b0), relax.op.add(lv1, lv2))
            hey = bb.emit(nested, name_hint="hey")
            hey1 = bb.emit(relax.op.add(hey, hey), name_hint="hey")
            gv = bb.emit_output(first)
            bb.emit_output(hey1)
            bb.emit_output(relax.op.add(relax.op.add(hey, hey), hey))
        gv3 = bb.emit(relax.op.add(gv, gv))
        bb.match_cast(gv3, Tensor((1, 128), "float32"))
        gv5 = bb.emit(relax.op.add(gv, gv))
        bb.emit_func_output((gv, gv5))
    y = relax.Var("y", Tensor((1, 784), "float32"))
    with bb.function("second", [y]):
        with bb.dataflow():
            out = bb.emit_output(bb.emit(relax.op.add(y, y)))
        bb.emit_func_output(relax.op.add(out, out))
    row = 'R.Tensor((1, 128), dtype="float32")'
    constants = [f'metadata["relax.expr.Constant"][{i}]' for i in range(2)]
    assert lines(bb.get()["main"])[1:-2] == [
        "with R.dataflow():",
        f'lv: R.Tensor((784, 128), dtype="float32") = R.permute_dims({constants[0]}, axes=None)',
        f'lv1: {row} = R.matmul(x, lv, out_dtype="void")',
        f"lv2: {row} = R.add(lv1, {constants[1]})",
        f"lv3: {row} = R.nn.relu(lv2)",
        f"lv4: R.Tuple({row}, {row}) = lv3, lv2",
        f"lv5: {row} = lv4[0]",
        f"lv6: {row} = R.add(lv1, {constants[1]})",
        f"lv7: {row} = R.add(lv2, lv3)",
        f"hey: {row} = R.add(lv6, lv7)",
        f"hey1: {row} = R.add(hey, hey)",
        f"gv: {row} = lv5",
        f"gv1: {row} = hey1",
        f"lv8: {row} = R.add(hey, hey)",
        f"gv2: {row} = R.add(lv8, hey)",
        "R.output(gv, gv1, gv2)",
        f"gv3: {row} = R.add(gv, gv)",
        f"gv4: {row} = R.match_cast(gv3, {row})",
        f"gv5: {row} = R.add(gv, gv)",
        "return (gv, gv5)",
    ]
    wide = 'R.Tensor((1, 784), dtype="float32")'
    assert lines(bb.get()["second"])[1:] == [
        "with R.dataflow():",
        f"lv9: {wide} = R.add(y, y)",
        f"gv6: {wide} = lv9",
        "R.output(gv6)",
        f"gv7: {wide} = R.add(gv6, gv6)",
        "return gv7",
    ]
    assert relax.analysis.well_formed(bb.get())


def double(a):
    return te.compute(a.shape, lambda *i: a(*i) * te.const(2, a.dtype), name="double")


def test_emit_te_shares_equal_functions_and_numbers_others():
    n = tir.Var("n", "int64")
    x = relax.Var("x", Tensor((n, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        a = bb.emit_te(double, x)
        b = bb.emit_te(double, a)
        first = te_row = bb.emit_te(lambda t: te.compute((4,), lambda j: t[0, j]), b,
                                    primfunc_name_hint="row")  # fmt: skip
        c = bb.emit_te(double, te_row, primfunc_attrs={"kind": 1})
        bb.emit_func_output((first, c))
    module = bb.get()
    assert sorted(v.name_hint for v in module.functions) == ["double", "double1", "main", "row"]
    assert module["double1"].attrs["kind"] == 1
    assert "global_symbol" not in module["double"].attrs
    assert c.struct_info == Tensor((4,), "float32")
    assert b.struct_info == x.struct_info
    own = module["double"].parameter_buffers[0].shape[0]
    assert own is not n
    assert own.name == "n"


def test_emit_te_passes_extents_that_no_input_has():
    n = tir.Var("n", "int64")
    x = relax.Var("x", Tensor((n + 1, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, relax.Var("s", relax.ShapeStructInfo((n,)))]):
        y = bb.emit_te(
            lambda t, k: te.compute((k * 2,), lambda i: t[0, 0], name="y"), x, n,
            primfunc_name_hint="first",
        )  # fmt: skip
        bb.emit_func_output(y)
    assert y.struct_info == Tensor((n * 2,), "float32")
    assert 'R.call_tir(cls.first, (x,), out_sinfo=R.Tensor((n * 2,), dtype="float32"), ' \
        "tir_vars=R.shape([n]))" in bb.get().script()  # fmt: skip


def test_emit_te_of_several_outputs():
    x = relax.Var("x", Tensor((4,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        pair = bb.emit_te(
            lambda t: [te.compute((4,), lambda i: t[i] + t[0]), te.compute((4,), lambda i: t[i])],
            x,
            primfunc_name_hint="two",
        )
        bb.emit_func_output(pair[1])
    assert [str(field) for field in pair.struct_info.fields] == [
        'R.Tensor((4,), dtype="float32")'
    ] * 2


def test_emit_te_takes_the_shape_of_a_constant_from_its_array():
    """The course declares its weights by their number of dimensions alone."""
    x = relax.Var("x", Tensor((2, 3), "float32"))
    weight = relax.const(np.arange(12, dtype="float32").reshape(4, 3), Tensor(None, ndim=2))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_te(topi.nn.dense, x, weight)
        bb.emit_func_output(y)
    assert y.struct_info.shape.values == (2, 4)
    machine = relax.VirtualMachine(relax.build(bb.get(), "numpy"), tvm.cpu())
    values = np.arange(6, dtype="float32").reshape(2, 3)
    result = machine["main"](tvm.nd.array(values)).numpy()
    np.testing.assert_array_equal(result, values @ weight.data.numpy().T)


def test_emit_te_says_what_it_needs():
    bb = relax.BlockBuilder()
    x = relax.Var("x", Tensor(None, "float32", ndim=2))
    with pytest.raises(TVMError, match="emit_te needs the shape"):
        bb.call_te(double, x)
    shape = relax.Var("s", relax.ShapeStructInfo([4]))
    with pytest.raises(AssertionError, match=r"shape s are known at run time only.*ShapeExpr"):
        bb.call_te(topi.reshape, relax.Var("y", Tensor((2, 2), "float32")), shape)


def test_misuse_is_explained():
    x = relax.Var("x", Tensor((1,), "float32"))
    bb = relax.BlockBuilder()
    with pytest.raises(TVMError, match="There is no block being built"):
        bb.emit(relax.op.add(x, x))
    with pytest.raises(TVMError, match=r'"main" has no result'), bb.function("main", [x]):
        bb.emit(relax.op.add(x, x))
    with pytest.raises(TVMError, match="neither given"), bb.function("main"):
        bb.emit_func_output(x)
    with pytest.raises(TVMError, match="given twice"), bb.function("main", [x]):
        bb.emit_func_output(x, [x])
    assert relax.BlockBuilder.current() is None


def test_functions_are_added_once_and_updated():
    x = relax.Var("x", Tensor((1,), "float32"))
    bb = relax.BlockBuilder()
    func = relax.Function([x], x)
    first = bb.add_func(func, "f")
    assert bb.add_func(relax.Function([x], x), "g") == first
    other = bb.add_func(relax.Function([x], relax.Tuple([x])), "f")
    assert other.name_hint == "f1"
    bb.update_func(first, func.with_attr("k", 1))
    assert bb.get()["f"].attrs["k"] == 1
    with bb.function("main", [x]):
        called = bb.emit(relax.Call(other, [x]))
        bb.emit_func_output(called)
    assert called.struct_info == relax.TupleStructInfo([x.struct_info])


def test_an_operator_itself_is_no_value():
    x = relax.Var("x", Tensor((4,), "float32"))
    add = tvm.ir.Op.get("relax.add")
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with pytest.raises(TypeError, match="is no value: bind what a call of it gives"):
            bb.emit(add)
        with pytest.raises(TypeError, match="is not a value: call it, or pass what it gives"):
            bb.emit(relax.op.nn.relu(add))
        bb.emit_func_output(x)


def test_what_a_call_writes_is_said_in_one_way():
    """A shape among struct infos was dropped without a word."""
    x = relax.Var("x", Tensor((4,), "float32"))
    callee = relax.GlobalVar("f")
    with pytest.raises(TypeError, match="say what the call writes"):
        relax.call_tir(callee, [x], [Tensor((4,), "float32"), (2, 2)])
    both = relax.call_tir(callee, [x], [(4,), (2, 2)], dtype=["float32", "int32"])
    assert both.struct_info == relax.TupleStructInfo([Tensor((4,)), Tensor((2, 2), "int32")])


def test_a_list_of_one_result_is_the_result():
    x = relax.Var("x", Tensor((4,), "float32"))
    call = relax.call_tir(relax.GlobalVar("f"), [x], [Tensor((4,), "float32")])
    assert call.struct_info == Tensor((4,), "float32")


def test_an_argument_that_is_used_twice_is_computed_once():
    x = relax.Var("x", Tensor((4,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        shared = relax.op.exp(x)
        bb.emit(relax.op.add(relax.op.sin(shared), shared))
        bb.emit_func_output(bb.emit(relax.op.add(shared, shared)))
    text = bb.get()["main"].script()
    assert text.count("R.exp(") == 1
    assert "R.add(gv1, gv)" in text and "R.add(gv, gv)" in text


def test_expressions_are_looked_at_outside_of_functions() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.testing_scope(def_vars=[n]):
        assert builder.current_block_is_dataflow()
        doubled = builder.emit(relax.op.add(x, x))
        assert isinstance(doubled, relax.DataflowVar) and doubled.struct_info.shape.values[0] is n
    assert builder.get().functions == {}
    with pytest.raises(TVMError, match="no block being built"):
        builder.emit(relax.op.add(x, x))
    with pytest.raises(ValueError, match="symbolic extents"), builder.testing_scope([x]):
        pass


def sequence(dataflow):
    """The body of a function that computes 2 + 3."""
    bb = relax.BlockBuilder()
    with bb.function("inner", []):
        if dataflow:
            with bb.dataflow():
                five = bb.emit_output(relax.op.add(relax.const(2.0), bb.emit(relax.const(3.0))))
        else:
            five = bb.emit(relax.op.add(relax.const(2.0), bb.emit(relax.const(3.0))))
        bb.emit_func_output(five)
    return bb.get()["inner"].body


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_sequences_are_spelled_out_where_they_are_bound(inner, outer):
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        if outer:
            with bb.dataflow():
                bb.emit(relax.const(7.0))
                five = bb.emit_output(bb.emit(sequence(inner)))
        else:
            bb.emit(relax.const(7.0))
            five = bb.emit(sequence(inner))
        bb.emit_func_output(bb.emit(relax.op.multiply(five, five)))
    mod = bb.get()
    refuse_ill_formed(mod)
    kinds = [type(block).__name__ for block in mod["main"].body.blocks]
    assert (
        kinds
        == {
            (False, False): ["BindingBlock"],
            (True, False): ["BindingBlock", "DataflowBlock", "BindingBlock"],
            (False, True): ["DataflowBlock", "BindingBlock", "DataflowBlock", "BindingBlock"],
            (True, True): ["DataflowBlock", "BindingBlock"],
        }[inner, outer]
    )
    machine = relax.VirtualMachine(relax.build(mod, target="numpy"), tvm.cpu())
    assert machine["main"]().numpy() == 25


def test_a_sequence_that_leaves_its_dataflow_block_cannot_use_its_variables():
    x = relax.Var("x", Tensor((), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("inner", [x]):
        bb.emit_func_output(bb.emit(relax.op.add(x, x)))
    inner = bb.get()["inner"]
    bb = relax.BlockBuilder()

    def build():
        with bb.function("main", []):
            with bb.dataflow():
                local = bb.emit(relax.op.exp(relax.const(1.0)))
                out = bb.emit_output(bb.emit(inner.bind_params({x: local}).body))
            bb.emit_func_output(out)

    with pytest.raises(TVMError, match=r"Malformed AST.* uses lv"):
        build()
