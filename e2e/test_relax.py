"""Models of the graph level in the page."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

MODELS = (
    (Path(__file__).parents[1] / "tests" / "relax_vm" / "programs.py")
    .read_text("utf8")
    .replace("import mlcweb as tvm", "import tvm")
    .replace("from mlcweb.script", "from tvm.script")
)
"""The course's models, as cells of the page import them."""

NAMES = """
class_names = ['T-shirt/top', 'Trouser', 'Pullover', 'Dress', 'Coat',
               'Sandal', 'Shirt', 'Sneaker', 'Bag', 'Ankle boot']
params, img = weights(), image()
expected = numpy_mlp(img, **params)
data_nd, nd_params = tvm.nd.array(img), on_device(params)
"""

LIBRARY = """
@tvm.register_func("env.linear", override=True)
def linear(x, w, b, out):
    out_np = np.from_dlpack(out)
    np.matmul(np.from_dlpack(x), np.from_dlpack(w).T, out=out_np)
    np.add(out_np, np.from_dlpack(b), out=out_np)


@tvm.register_func("env.relu", override=True)
def relu(x, out):
    out.copyfrom(np.maximum(x.numpy(), 0))
"""


@pytest.mark.thorough
def test_a_model_predicts_what_numpy_predicts(run):
    printed = run(
        MODELS
        + NAMES
        + """
from tvm import relax

ex = relax.build(MyModule, target="llvm")
vm = relax.VirtualMachine(ex, tvm.cpu(), profile=True)
for _ in range(3):
    nd_res = vm["main"](data_nd, *nd_params.values())
np.testing.assert_allclose(nd_res.numpy(), expected, rtol=1e-5, atol=1e-4)
pred_kind = np.argmax(nd_res.numpy(), axis=1)
print("MyModule Prediction:", class_names[pred_kind[0]])
print("NumPy-MLP Prediction:", class_names[expected.argmax()])
print(vm.profile("main", data_nd, *nd_params.values()))
print(ex.library.target)
"""
    )
    lines = printed.splitlines()
    ours = next(line for line in lines if line.startswith("MyModule Prediction: "))
    theirs = next(line for line in lines if line.startswith("NumPy-MLP Prediction: "))
    assert ours.split(": ")[1] == theirs.split(": ")[1]
    assert "linear0" in printed
    assert "Argument Shapes" in printed
    assert "Target: wasm" in printed


@pytest.mark.thorough
def test_functions_of_python_write_tensors_in_place(run):
    """The memory of tensors is not Python's here; DLPack works all the same."""
    run(
        MODELS
        + NAMES
        + LIBRARY
        + """
for module in (MyModuleWithExternCall, MyModuleMixture):
    result = vm_of(module)["main"](data_nd, *nd_params.values())
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-4)
"""
    )


@pytest.mark.thorough
def test_operators_and_memory(run):
    """A model in operators is lowered; a long one needs few pieces of memory, and keeps results."""
    run(
        """
import numpy as np
import tvm
from tvm import relax
from tvm.script import relax as R


@tvm.script.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.relu(a)
            c = R.matmul(b, x)
            d = R.add(c, b)
            R.output(d)
        return d


plain = relax.build(relax.transform.LegalizeOps()(Model), relax_pipeline=None).memory_report()
assert plain.bytes_after < plain.bytes_before, plain
ex = relax.build(Model)
report = ex.memory_report()
assert report.bytes_before < plain.bytes_before, report
vm = relax.VirtualMachine(ex, tvm.cpu())
inputs = [np.random.rand(8, 8).astype("float32") - 0.5 for _ in range(3)]
results = [vm["main"](tvm.nd.array(x)) for x in inputs]
for x, result in zip(inputs, results):
    b = np.maximum(2 * x, 0)
    np.testing.assert_allclose(result.numpy(), b @ x + b, rtol=1e-4, atol=1e-6)
"""
    )


@pytest.mark.thorough
def test_an_error_names_the_binding(used_playground):
    playground = used_playground()
    playground.run_to_end(
        MODELS
        + NAMES
        + LIBRARY
        + """
@tvm.register_func("env.relu", override=True)
def relu(x, out):
    raise ArithmeticError("not today")

vm_of(MyModuleMixture)["main"](data_nd, *nd_params.values())
"""
    )
    playground.expect_state("error")
    console = playground["console"]
    expect(console).to_contain_text("not today")
    expect(console).to_contain_text('In the function "main": lv1')
