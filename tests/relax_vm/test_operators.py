"""Models in operators: lowered on the way, fused, tiled; the example of the tiling report."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.script import relax as R
from tests.relax_vm.programs import numpy_mlp, vm_of

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "tiling_report.py"))
PARAMS, DATA = EXAMPLE["parameters"](), EXAMPLE["image"]()
EXPECTED = numpy_mlp(DATA, **PARAMS)
VARIANTS = EXAMPLE["variants"](PARAMS)


def close(result):
    np.testing.assert_allclose(result.numpy(), EXPECTED, rtol=1e-5, atol=1e-5)


def test_operators_are_lowered_on_the_way():
    close(vm_of(EXAMPLE["create_model"](PARAMS))["main"](tvm.nd.array(DATA)))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_forms_of_the_tiling_report(name):
    vm = vm_of(VARIANTS[name], profile=True)
    close(vm["main"](tvm.nd.array(DATA)))
    report = vm.profile("main", tvm.nd.array(DATA))
    names = {row["Name"] for row in report.calls}
    assert ("fused_matmul_add0" in names) == ("fused" in name)
    assert ("matmul" in names) == ("fused" not in name)
    assert sum(row["Count"] for row in report.calls) == (5 if "fused" in name else 7)


def test_tiles_are_made():
    name = "matmul"
    assert "T.grid(T.int64(1), T.int64(128), T.int64(784))" in VARIANTS["baseline"][name].script()
    tiled = VARIANTS["tiled"][name].script()
    assert "T.grid(T.int64(1), T.int64(2), T.int64(64), T.int64(64), T.int64(784))" in tiled


def test_functions_that_are_not_merged_yet_run():
    lowered = EXAMPLE["LowerToTensorIRPass"]()(
        EXAMPLE["FuseDenseAddPass"]()(EXAMPLE["create_model"](PARAMS))
    )
    close(vm_of(lowered)["main"](tvm.nd.array(DATA)))


def test_memory_of_a_model_in_operators():
    @R.function
    def main(x: R.Tensor((64,), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.relu(a)
            c = R.exp(b)
            d = R.add(c, x)
            R.output(d)
        return d

    text = relax.analysis.estimate_memory_usage(tvm.IRModule({"main": main}))
    assert "4 tensor(s) of constant size, 1024 bytes" in text
    assert "3 allocation(s), 768 bytes" in text


def test_build_takes_both_kinds_of_modules():
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return R.add(x, x)

    executable = tvm.build(tvm.IRModule({"main": main}), target="llvm")
    assert isinstance(executable, relax.Executable)
    two = tvm.nd.array(np.full(2, 1, "float32"))
    np.testing.assert_array_equal(executable["main"](two).numpy(), [2, 2])
    library = tvm.build(VARIANTS["baseline"]["relu"])
    assert isinstance(library, tvm.runtime.Module)


@pytest.mark.parametrize("dataflow", [False, True])
@pytest.mark.parametrize("target", ["llvm", "wasm"])
def test_slices_whose_positions_are_computed(target, dataflow):
    names = ("x", "begin", "end", "strides")
    params = [
        relax.Var(name, relax.TensorStructInfo(shape, dtype))
        for name, shape, dtype in zip(
            names, [(7, "n"), (2,), (2,), (2,)], ["float32"] + ["int64"] * 3, strict=True
        )
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        if dataflow:
            with builder.dataflow():
                part = builder.emit(relax.op.dynamic_strided_slice(*params))
                result = builder.emit_output(relax.op.add(part, part))
        else:
            part = builder.emit(relax.op.dynamic_strided_slice(*params))
            result = builder.emit(relax.op.add(part, part))
        builder.emit_func_output(result)
    vm = vm_of(builder.get(), target)
    x = np.arange(42, dtype="float32").reshape(7, 6)
    for slices in (
        [slice(1, 6, 2), slice(0, 6, 1)],
        [slice(-3, 99, 1), slice(-99, -2, 3)],
        [slice(6, 1, -2), slice(99, -99, -1)],
        [slice(4, 2, 1), slice(1, 4, -1)],
    ):
        positions = [
            np.array([getattr(one, name) for one in slices], "int64")
            for name in ("start", "stop", "step")
        ]
        taken = vm["main"](*map(tvm.nd.array, [x, *positions])).numpy()
        np.testing.assert_array_equal(taken, 2 * x[tuple(slices)])
