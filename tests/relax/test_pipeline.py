"""Pipelines, and what the default one makes of models before they are built."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.pipeline import PIPELINE_MAP
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

RNG = np.random.default_rng(9)
W0, W1 = (RNG.normal(0, 1, shape).astype("float32") for shape in ((16, 12), (4, 16)))
B0, B1 = (RNG.normal(0, 1, shape).astype("float32") for shape in ((16,), (4,)))
DATA = RNG.random((3, 12), dtype="float32")
EXPECTED = np.maximum(DATA @ W0.T + B0, 0) @ W1.T + B1


@I.ir_module
class Model:
    @R.function
    def main(
        x: R.Tensor((3, 12), "float32"),
        w0: R.Tensor((16, 12), "float32"),
        b0: R.Tensor((16,), "float32"),
        w1: R.Tensor((4, 16), "float32"),
        b1: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            a = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w0)), b0))
            out = R.add(R.matmul(a, R.permute_dims(w1)), b1)
            R.output(out)
        return out


BOUND = relax.transform.BindParams("main", {"w0": W0, "b0": B0, "w1": W1, "b1": B1})(Model)


@I.ir_module
class ByHand:
    @T.prim_func(private=True)
    def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                vi = T.axis.spatial(8, i_0 * 4 + i_1)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((8,), "float32")):
        cls = ByHand
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((8,), "float32"))
            z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(z)
        return z


def names(module):
    return sorted(var.name_hint for var in module.functions)


def run(module, *arrays, **options):
    vm = relax.VirtualMachine(relax.build(module, "llvm", **options), tvm.cpu())
    return vm["main"](*map(tvm.nd.array, arrays)).numpy()


def test_the_default_fuses_and_folds():
    ready = relax.get_pipeline("default")(BOUND)
    assert names(ready) == ["fused_matmul1_add1", "fused_matmul_add_relu", "main"]
    (block,) = ready["main"].body.blocks
    assert [b.value.op.name for b in block.bindings] == ["relax.call_tir"] * 2
    constants = [block.bindings[0].value.args[1][1].data.numpy() for _ in range(1)]
    np.testing.assert_array_equal(constants[0], W0.T)


@pytest.mark.parametrize("pipeline", ["default", "zero", None])
def test_results_are_the_same_by_every_pipeline(pipeline):
    lowered = relax.transform.LegalizeOps()(BOUND) if pipeline is None else BOUND
    result = run(lowered, DATA, relax_pipeline=pipeline)
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-5)


def test_params_of_build_are_folded_too():
    params = {"w0": W0, "b0": B0, "w1": W1, "b1": B1}
    np.testing.assert_allclose(run(Model, DATA, params=params), EXPECTED, rtol=1e-5, atol=1e-5)


def test_functions_written_by_hand_stay():
    assert relax.get_pipeline("default")(ByHand) is ByHand
    mixed = ByHand.copy()
    mixed["other"] = Model["main"].with_attr("global_symbol", "other")
    ready = relax.get_pipeline("default")(mixed)
    assert ready["double"] is ByHand["double"]
    assert ready["main"].script() == ByHand["main"].script()
    assert any(name.startswith("fused_") for name in names(ready))
    np.testing.assert_array_equal(run(ByHand, DATA[0, :8]), DATA[0, :8] * 4)


def test_zero_and_a_pattern_fuse_them():
    assert "fused_double_double" in names(relax.get_pipeline("zero")(ByHand))
    annotated = ByHand.copy()
    annotated["double"] = ByHand["double"].with_attr("op_pattern", 0)
    ready = relax.get_pipeline("default")(annotated)
    assert "fused_double_double" in names(ready)
    np.testing.assert_array_equal(run(annotated, DATA[0, :8]), DATA[0, :8] * 4)


def test_pipelines_by_name():
    with pytest.raises(ValueError, match='Unknown pipeline "none"; there are "default",'):
        relax.build(Model, "llvm", relax_pipeline="none")
    try:

        @relax.register_pipeline("plain")
        def plain():
            return relax.transform.LegalizeOps()

        assert "matmul" in names(relax.get_pipeline("plain")(Model))
        with pytest.raises(ValueError, match="already"):
            relax.register_pipeline("plain")(plain)
    finally:
        PIPELINE_MAP.pop("plain", None)


def test_operators_left_by_a_pass_are_lowered():
    def nothing(mod):
        return mod

    result = run(BOUND, DATA, relax_pipeline=nothing)
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-5)


def test_the_default_pipeline_has_the_names_that_tvm_gave_it() -> None:
    wanted = relax.get_pipeline("default")(BOUND)
    for same in relax.get_pipeline("default_build"), relax.pipeline.get_default_pipeline("llvm"):
        tvm.ir.assert_structural_equal(same(BOUND), wanted)
