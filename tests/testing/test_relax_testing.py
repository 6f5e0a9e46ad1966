"""`tvm.relax.testing`: layers of the first notebooks, and functions that programs call."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, tir
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.testing.relax import (
    dump_ast,
    get_relax_attention_module,
    get_relax_matmul_module,
    get_relax_stacked_attention_module,
    nn,
    vm,
)
from mlcweb.testing.relax.lib_comparator import LibCompareVMInstrument

DRAW = np.random.default_rng(1)


def values(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [DRAW.standard_normal(shape).astype("float32") for shape in shapes]


def run(mod: tvm.ir.IRModule, *arrays: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    return machine["main"](*map(tvm.nd.array, arrays)).numpy()


def test_layers_emit_into_the_open_function() -> None:
    builder = relax.BlockBuilder()
    with builder.function("main"):
        model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2), nn.LogSoftmax())
        data = nn.Placeholder((1, 8), name="data")
        builder.emit_func_output(model(data), params=[data, *model.parameters()])
    mod = builder.get()
    names = [param.name_hint for param in mod["main"].params]
    assert names == ["data", "linear_weight", "linear_bias", "linear_weight1", "linear_bias1"]
    assert [zeros.shape for zeros in nn.init_params(mod)] == [(8, 4), (4,), (4, 2), (2,)]
    x, w1, b1, w2, b2 = values((1, 8), (8, 4), (4,), (4, 2), (2,))
    logits = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    expected = logits - np.log(np.exp(logits).sum())
    np.testing.assert_allclose(run(mod, x, w1, b1, w2, b2), expected, rtol=1e-4, atol=1e-5)


def test_layers_outside_of_a_function_are_refused() -> None:
    with pytest.raises(tvm.TVMError, match="into a function: use"):
        nn.ReLU()(nn.Placeholder((1, 8)))
    with pytest.raises(TypeError, match="a list or a tuple, not 8"):
        nn.Placeholder(8)


def test_checkpoints_mark_what_goes_in_and_comes_out() -> None:
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]), builder.dataflow():
        end = nn.emit_checkpoint_sequential([relax.op.exp] * 4, 2, x)
        builder.emit_func_output(builder.emit_output(end))
    names = [b.var.name_hint for block in builder.get()["main"].body.blocks for b in block.bindings]
    assert names[0] == "x_scp" and names[3].endswith("_ecp")
    given = np.array([-1, -2, -3], "float32")
    expected = np.exp(np.exp(np.exp(np.exp(given))))
    np.testing.assert_allclose(run(builder.get(), given), expected, rtol=1e-5)


def test_models_of_one_layer_compute() -> None:
    x, y, b = values((4, 4), (4, 4), (4,))
    mod = get_relax_matmul_module(
        x.shape, y.shape, "float32", "float32", transposed_y=True, bias_shape=b.shape,
        activation=relax.op.nn.relu, residual_bin_op=relax.op.add,
    )  # fmt: skip
    np.testing.assert_allclose(run(mod, x, y, b), np.maximum(x @ y.T + b, 0) + x, rtol=1e-4)
    q, k, v = values((1, 4, 2, 8), (1, 6, 2, 8), (1, 6, 2, 8))
    mod = get_relax_attention_module(q.shape, k.shape, v.shape, dtype="float32")
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = np.einsum("bhqk,bkhd->bqhd", weights, v)
    np.testing.assert_allclose(run(mod, q, k, v), expected, rtol=1e-4, atol=1e-5)


@I.ir_module
class StackedAttention:
    @R.function
    def main(
        qkv: R.Tensor((16, 4, 32, 24), "float32"), bias: R.Tensor((4, 32, 16, 16), "float32")
    ) -> R.Tensor((16, 4, 32, 8), "float32"):
        with R.dataflow():
            lv = R.split(qkv, indices_or_sections=[8, 16], axis=3)
            lv1 = lv[0]
            lv2 = R.permute_dims(lv1, axes=[1, 0, 2, 3])
            lv3 = lv[1]
            lv4 = R.permute_dims(lv3, axes=[1, 0, 2, 3])
            lv5 = lv[2]
            lv6 = R.permute_dims(lv5, axes=[1, 0, 2, 3])
            lv7 = R.nn.attention_bias(lv2, lv4, lv6, bias)
            lv8 = R.permute_dims(lv7, axes=[1, 0, 2, 3])
            R.output(lv8)
        return lv8


def test_attention_of_parts_of_one_array_is_tvms() -> None:
    qkv, bias = np.zeros((16, 4, 32, 24), "float32"), np.zeros((4, 32, 16, 16), "float32")
    mod = get_relax_stacked_attention_module(qkv, 4, 16, 32, 8, 8, "split", bias, layout="SBN3H")
    tvm.ir.assert_structural_equal(mod, StackedAttention)
    with pytest.raises(NotImplementedError, match='not "take"'):
        get_relax_stacked_attention_module(qkv, 4, 16, 32, 8, 8, "take")


@pytest.mark.parametrize("op", ["split", "strided_slice"])
def test_attention_of_parts_of_one_array_computes(op: str) -> None:
    (x,) = values((1, 4, 2 * 2 * 8 + 2 * 4))
    mod = get_relax_stacked_attention_module(x, 1, 4, 2, 8, 4, op, qk_scale=0.5)
    q, k, v = (part.reshape(1, 4, 2, -1) for part in np.split(x, [16, 32], 2))
    weights = np.exp(np.einsum("bqhd,bkhd->bhqk", q, k) * 0.5)
    weights /= weights.sum(-1, keepdims=True)
    expected = np.einsum("bhqk,bkhd->bqhd", weights, v)
    np.testing.assert_allclose(run(mod, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_kernels_of_another_library_are_compared_with_those_of_a_model(capsys, offset) -> None:
    x, y = values((2, 8), (8, 4))
    model = relax.build(get_relax_matmul_module((2, 8), (8, 4), "float32"))
    a, b = tvm.te.placeholder((2, 8), name="a"), tvm.te.placeholder((8, 4), name="b")
    product = tvm.topi.add(tvm.topi.matmul(a, b), tvm.tir.const(offset, "float32"))
    func = tvm.te.create_prim_func([a, b, product]).with_attr("global_symbol", "matmul")
    lib = tvm.build(tvm.IRModule({"matmul": func}), target="numpy")
    machine = relax.VirtualMachine(model, tvm.cpu())
    machine.set_instrument(LibCompareVMInstrument(lib, tvm.cpu(), rtol=1e-4, atol=1e-4))
    if offset:
        with pytest.raises(Exception, match="Not equal to tolerance"):
            machine["main"](tvm.nd.array(x), tvm.nd.array(y))
    else:
        machine["main"](tvm.nd.array(x), tvm.nd.array(y))
        assert capsys.readouterr().out == "[0] Validating matmul, passed.\n"


@I.ir_module
class Packed:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        s = R.call_packed("test.vm.add", x, y, sinfo_args=(R.Tensor((2, 2), "float32"),))
        t = R.call_dps_packed("test.vm.tile", (s,), out_sinfo=R.Tensor((2, 4), "float32"))
        return t


def test_registered_functions_are_called() -> None:
    x, y = values((2, 2), (2, 2))
    np.testing.assert_array_equal(run(Packed, x, y), np.tile(x + y, (1, 2)))
    machine = relax.VirtualMachine(relax.build(Packed), tvm.cpu())
    saved = vm.check_saved_func(machine, "main", tvm.nd.array(x), tvm.nd.array(y))
    np.testing.assert_array_equal(saved.numpy(), np.tile(x + y, (1, 2)))


def test_nodes_with_the_names_of_their_fields():
    x = relax.Var("x", relax.TensorStructInfo([4, tir.Var("n", "int64")], "float16"))
    assert dump_ast(relax.Var("y")) == 'Var(name_hint="y")'
    assert (
        dump_ast(x)
        == """\
Var(
    name_hint="x",
    struct_info=TensorStructInfo(
        dtype=float16,
        shape=ShapeExpr(
            values=[
                PrimExpr(value=`T.int64(4)`),
                PrimExpr(value=`n`)
            ],
            struct_info=ShapeStructInfo(
                ndim=2,
                values=[
                    PrimExpr(value=`T.int64(4)`),
                    PrimExpr(value=`n`)
                ]
            )
        )
    )
)"""
    )
    call = relax.op.concat([x, x], axis=1)
    text = dump_ast(call, include_struct_info_annotations=False)
    assert "".join(text.split()) == (
        'Call(op=Op(name="relax.concat"),args=[Tuple(fields=[Var(name_hint="x"),Var(name_hint="x")])],'
        'attrs={"axis":1})'
    )
    assert "attrs" not in dump_ast(call, include_call_attrs=False)
    constant = relax.VarBinding(relax.DataflowVar("c"), relax.const([1, 2]))
    block = relax.DataflowBlock([constant])
    func = relax.Function([x], relax.SeqExpr([block], x), relax.ObjectStructInfo())
    text = dump_ast(func.with_attr("global_symbol", "f"), include_ty_annotations=False)
    assert text.startswith('Function(\n    params=[Var(name_hint="x")],\n    body=SeqExpr(')
    assert 'var=DataflowVar(name_hint="c"),' in text and "value=Constant(data=[1 2])" in text
    assert text.endswith('is_pure=True,\n    attrs={"global_symbol": "f"}\n)')
    with pytest.raises(TypeError, match="not a int"):
        dump_ast(3)
