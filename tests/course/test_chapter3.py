"""Chapter 3 of the course: its cells in order, and what comes out of them.

The cells are the book's blocks of code, without the ones that only sketch a form beside another
(with functions that are nowhere defined); pictures, weights and torch are stand-ins
(fashion_mnist.py).
"""

import numpy as np
import pytest

from mlcweb import relax, runtime, tir
from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source, parse
from mlcweb.tir.expr import IntImm
from tests.course import fashion_mnist

MODELS = ["MyModule", "MyModuleWithExternCall", "MyModuleMixture", "MyModuleWithParams"]


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """What the cells define and print."""
    yield fashion_mnist.run_chapter("chapter3", tmp_path_factory.mktemp("chapter3"))
    for name in ("env.linear", "env.relu"):
        runtime.remove_global_func(name)


def bindings(func):
    return [binding for block in func.body.blocks for binding in block.bindings]


def test_the_module_has_the_parts_of_the_listing(chapter):
    functions = {var.name_hint: func for var, func in chapter.MyModule.functions.items()}
    assert {name: type(func) for name, func in functions.items()} == {
        "relu0": tir.PrimFunc, "linear0": tir.PrimFunc, "main": relax.Function,
    }  # fmt: skip
    main = functions["main"]
    assert [param.name_hint for param in main.params] == ["x", "w0", "b0", "w1", "b1"]
    assert [type(block) for block in main.body.blocks] == [relax.DataflowBlock]
    calls = bindings(main)
    assert [call.var.name_hint for call in calls] == ["lv0", "lv1", "out"]
    assert {call.value.op.name for call in calls} == {"relax.call_dps_packed"}
    assert [call.value.args[0].global_symbol for call in calls] == ["linear0", "relu0", "linear0"]
    rows, columns = main.struct_info.ret.shape.values
    assert (rows.value, columns.name) == (1, "k")


def test_two_dataflow_blocks_in_a_row_are_one(chapter):
    # TVM joins them, too; what the first one gives is still seen outside.
    (block,) = chapter.main.body.blocks
    assert isinstance(block, relax.DataflowBlock)
    inside = [isinstance(binding.var, relax.DataflowVar) for binding in block.bindings]
    assert inside == [True, False, False]


@pytest.mark.parametrize("name", MODELS)
def test_modules_print_as_they_read(chapter, name):
    module = getattr(chapter, name)
    text = module.script(show_meta=True)
    again = parse(text) if name == "MyModuleWithParams" else from_source(text)
    assert_structural_equal(again, module)


def test_parameters_are_constants_of_the_metadata(chapter):
    main = chapter.MyModuleWithParams["main"]
    assert [param.name_hint for param in main.params] == ["x"]
    text = chapter.MyModuleWithParams.script()
    assert [f'metadata["relax.expr.Constant"][{index}]' in text for index in range(4)] == [True] * 4
    constants = [
        value
        for binding in bindings(main)
        for value in binding.value.args[1].fields
        if isinstance(value, relax.Constant)
    ]
    for constant, expected in zip(constants, fashion_mnist.weights().values(), strict=True):
        np.testing.assert_array_equal(constant.data.numpy(), expected)
    assert all(isinstance(size, IntImm) for size in main.struct_info.ret.shape.values)


def test_the_build_gives_an_executable(chapter):
    assert isinstance(chapter.ex, relax.Executable)
    assert isinstance(chapter.ex, relax.VMExecutable)


def test_all_models_give_what_numpy_gives(chapter):
    image, label = fashion_mnist.picture()
    expected = fashion_mnist.logits(image)
    np.testing.assert_array_equal(chapter.res, expected)
    np.testing.assert_allclose(chapter.result, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(chapter.nd_res.numpy(), expected, rtol=1e-5, atol=1e-5)
    predicted = fashion_mnist.CLASS_NAMES[int(expected.argmax())]
    spoken = ["NumPy-MLP", "Low-level Numpy MLP", "Low-level Numpy with CallTIR", *MODELS]
    lines = [line for line in chapter.printed.splitlines() if "Prediction: " in line]
    assert lines == [f"{name} Prediction: {predicted}" for name in spoken]
    assert f"Class: {fashion_mnist.CLASS_NAMES[label[0]]}" in chapter.printed
