"""LegalizeOps: names, sharing, symbolic shapes, and what stays as it is."""

import warnings

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te, tir, topi
from mlcweb.relax import TensorStructInfo as T
from mlcweb.relax import op
from mlcweb.relax.transform import LegalizeOps
from mlcweb.relax.transform.legalize_ops import register_legalize

n = tir.Var("n", "int64")


def module_of(build, *infos):
    params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(build(*params))
        builder.emit_func_output(output)
    return builder.get()


def names(module):
    return sorted(var.name_hint for var in module.functions)


def test_functions_are_shared_and_numbered():
    x, y = T((2, 3), "float32"), T((3,), "float32")
    module = module_of(lambda a, b: op.add(op.add(a, a), op.add(op.add(a, b), op.add(a, a))), x, y)
    lowered = LegalizeOps()(module)
    assert names(lowered) == ["add", "add1", "main"]
    assert relax.analysis.well_formed(lowered)
    assert names(module) == ["main"]
    assert lowered["add"].attrs.get("global_symbol") is None
    assert "R.add" not in lowered["main"].script()


def test_index_arithmetic_is_of_64_bits():
    lowered = LegalizeOps()(module_of(op.nn.relu, T((2, 3), "float32")))
    assert all(extent.dtype == "int64" for extent in lowered["relu"].parameter_buffers[0].shape)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_symbolic_shapes(size):
    def build(a, b):
        return op.nn.softmax(op.add(op.matmul(a, b), relax.const(1.0)))

    lowered = LegalizeOps()(module_of(build, T((n, 4), "float32"), T((4, n), "float32")))
    assert names(lowered) == ["add", "main", "matmul", "softmax"]
    function = tvm.build(lowered["matmul"].with_attr("global_symbol", "main"), "interpreter")
    a, b = (np.random.default_rng(1).random(s).astype("float32") for s in ((size, 4), (4, size)))
    out = tvm.nd.empty((size, size), "float32")
    function["main"](tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: op.permute_dims(x), lambda x: op.reshape(x, (-1,)), lambda x: op.flatten(x),
        lambda x: op.concat([x, x]), lambda x: op.split(x, 2, 1)[0], lambda x: op.sum(x, 0),
        lambda x: op.mean(x), lambda x: op.expand_dims(x, 0), lambda x: op.zeros_like(x),
        lambda x: op.strided_slice(x, [0], [0], [2]), lambda x: op.nn.layer_norm(
            x, relax.const(np.ones(4)), relax.const(np.ones(4)), -1),
        lambda x: op.nn.pad(x, [1, 1, 0, 0]), lambda x: op.tile(x, (2, 1)),
        lambda x: op.argmax(x, 1), lambda x: op.astype(x, "int32"), lambda x: op.size(x),
    ],
)  # fmt: skip
def test_operators_on_symbolic_shapes(build):
    lowered = LegalizeOps()(module_of(build, T((n, 4), "float32")))
    assert len(lowered.functions) > 1
    assert relax.analysis.well_formed(lowered)


def test_what_is_not_known_stays():
    for info in (T(None, "float32", ndim=2), T(None, "float32"), T((2, 3), None)):
        module = module_of(lambda x: op.add(x, x), info)
        assert names(LegalizeOps()(module)) == ["main"]
    unsure = module_of(op.add, T((n, 3), "float32"), T((tir.Var("m", "int64"), 3), "float32"))
    assert "R.add" in LegalizeOps()(unsure).script()


def test_operators_without_lowering_stay_and_may_be_warned_of():
    @op.registry.operator("relax.test_only_operator", infer=op.infer.same)
    def build(x):
        return op.registry.call(build, x)

    module = module_of(build, T((2,), "float32"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(LegalizeOps()(module)) == ["main"]
    with pytest.warns(UserWarning, match="no lowering of relax.test_only_operator"):
        LegalizeOps(enable_warning=True)(module)
    del op.test_only_operator, op.registry.builders["test_only_operator"]


def test_customized_lowerings_go_first():
    def minus(builder, call):
        return builder.call_te(topi.subtract, *call.args, primfunc_name_hint="other")

    def with_operators(builder, call):
        return op.multiply(call.args[0], op.exp(call.args[1]))

    x = T((2,), "float32")
    module = module_of(op.add, x, x)
    assert names(LegalizeOps({"relax.add": minus})(module)) == ["main", "other"]
    assert names(LegalizeOps({"relax.add": with_operators})(module)) == [
        "main", "multiply", "tir_exp",
    ]  # fmt: skip
    assert names(LegalizeOps(skip_ops=["relax.add"])(module)) == ["main"]


def test_a_lowering_sees_te_functions():
    def own(builder, call):
        def doubled(a):
            return te.compute(a.shape, lambda i: a[i] * 2.0)

        return builder.call_te(doubled, call.args[0])

    module = module_of(op.nn.relu, T((4,), "float32"))
    assert names(LegalizeOps({"relax.nn.relu": own})(module)) == ["doubled", "main"]


@pytest.mark.parametrize("emits", [False, True])
def test_a_lowering_may_use_and_emit_other_operators(emits):
    def infer(call, context):
        return call.args[0].struct_info

    def lower(builder, call):
        product = op.multiply(call.args[0], call.args[0])
        return op.add(builder.emit(product) if emits else product, call.args[0])

    own = "own.square_plus"
    for key, value in {"FInferStructInfo": infer, "FPurity": True}.items():
        tvm.ir.register_op_attr(own, key, value)
    register_legalize(own, lower)
    operator = tvm.ir.Op.get(own)
    try:
        module = module_of(lambda x: relax.Call(operator, [x]), T((2, 3), "float32"))
        lowered = LegalizeOps()(module)
    finally:
        for key in ("FInferStructInfo", "FPurity", "FLegalize"):
            operator.reset_attr(key)
    assert names(lowered) == ["add", "main", "multiply"]
    machine = relax.VirtualMachine(relax.build(lowered), tvm.cpu())
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(machine["main"](tvm.nd.array(x)).numpy(), x * x + x)
