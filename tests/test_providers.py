"""Names of a package that a layer above it implements: each works whatever was imported before."""

import subprocess
import sys
from pathlib import Path

import pytest

import mlcweb

MODEL = """
from mlcweb.script import ir as I, relax as R

@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            two = R.add(R.const([1.0] * 4, "float32"), R.const([1.0] * 4, "float32"))
            y = R.multiply(x, two)
            R.output(y)
        return y
"""

LOWERED = f"""{MODEL}
import mlcweb.relax.transform as transform
Model = transform.LegalizeOps()(Model)
"""

USES = {
    "a model is built": f"""{MODEL}
import mlcweb
assert "Executable" in type(mlcweb.build(Model)).__name__
""",
    "relax.build": f"""{MODEL}
import mlcweb.relax
assert "Executable" in type(mlcweb.relax.build(Model)).__name__
""",
    "relax.VirtualMachine": f"""{MODEL}
import numpy as np
import mlcweb as tvm
from mlcweb import relax
vm = relax.VirtualMachine(relax.build(Model, "numpy"), tvm.cpu())
x = tvm.nd.array(np.array([1, 2, 3, 4], "float32"))
assert vm["main"](x).numpy().tolist() == [2.0, 4.0, 6.0, 8.0]
""",
    "other names of the virtual machine": """
import mlcweb.relax as relax
assert relax.vm.VirtualMachine is relax.VirtualMachine
assert relax.vm.build is relax.build is relax.vm_build.build
assert relax.Executable is relax.VMExecutable is relax.vm.Executable
""",
    "FoldConstant": f"""{LOWERED}
text = transform.FoldConstant()(Model).script()
assert "cls.multiply" in text and "cls.add" not in text, text
""",
    "estimate_memory_usage": f"""{MODEL}
from mlcweb.relax.analysis import estimate_memory_usage
assert "main" in str(estimate_memory_usage(Model))
""",
    "passes that search": """
from mlcweb.relax.transform import MetaScheduleTuneIRMod, MetaScheduleTuneTIR
assert MetaScheduleTuneTIR("records", 1).info.name == "MetaScheduleTuneTIR"
assert MetaScheduleTuneIRMod({}, "records", 1).info.name == "MetaScheduleTuneIRMod"
""",
    "the pipeline that searches": """
import mlcweb.relax
pipeline = mlcweb.relax.get_pipeline(
    "static_shape_tuning", total_trials=0, target="llvm", work_dir="records"
)
assert callable(pipeline)
""",
    "a folder of records": f"""{LOWERED}
assert transform.MetaScheduleApplyDatabase("no_records")(Model) is Model
""",
    "functions of the virtual machine": """
import mlcweb as tvm
assert tvm.get_global_func("vm.builtin.copy")(3) == 3
assert tvm.get_global_func("vm.builtin.nothing_of_this_name", allow_missing=True) is None
""",
    "operators of whole tensors": """
from mlcweb import te
a = te.placeholder((4,), "float32", "a")
b = (a + 1) * -a / a - a.astype("float32")
assert [b.op.name, list(b.shape)] == ["T_subtract", [4]]
""",
    "detach_params": """
import mlcweb.relax as relax
from mlcweb.ir import IRModule
from mlcweb.relax.frontend import detach_params
builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
w = relax.Var("w", relax.TensorStructInfo((2,), "float32"))
with builder.function("main", [x, w]):
    builder.emit_func_output(builder.emit(relax.op.add(x, w)))
mod = builder.get()
main = mod["main"].with_attr("params", [relax.const([1.0, 2.0], "float32").data])
mod.update_func(mod.get_global_var("main"), main)
_, params = detach_params(mod)
[weight] = params["main"]
assert weight.numpy().tolist() == [1.0, 2.0] and type(weight).__name__ == "NDArray"
""",
}


@pytest.mark.parametrize("use", USES)
def test_a_name_that_a_layer_above_implements_needs_no_other_import(use, tmp_path):
    done = run(USES[use], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "package",
    ["mlcweb", "mlcweb.relax.transform", "mlcweb.relax.analysis", "mlcweb.relax.pipeline"],
)
def test_layers_above_are_loaded_on_request_only(package, tmp_path):
    program = f"""
import sys, {package}
above = {{"mlcweb.relax_vm", "mlcweb.meta_schedule", "numpy"}} & set(sys.modules)
assert not above, above
"""
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "package",
    ["mlcweb", "mlcweb.tir", "mlcweb.relax", "mlcweb.relax.transform", "mlcweb.relax.analysis",
     "mlcweb.meta_schedule"],
)  # fmt: skip
def test_other_names_are_attribute_errors(package, tmp_path):
    program = f"""
import {package} as package
try:
    package.nothing_of_this_name
except AttributeError as error:
    assert str(error) == "module '{package}' has no attribute 'nothing_of_this_name'", error
else:
    raise AssertionError("no error")
assert not hasattr(package, "distributed")
"""
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr


def test_no_module_is_imported_by_dunder_import():
    """Ruff forbids `import_module` outside the registry, but cannot forbid a builtin."""
    root = Path(mlcweb.__file__).parent
    assert [file for file in root.rglob("*.py") if "__import__(" in file.read_text("utf-8")] == []


def run(program: str, folder) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=folder)
