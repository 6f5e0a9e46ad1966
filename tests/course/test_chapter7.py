"""Chapter 7 of the course: its cells in order, and what comes out of them.

The cells are the book's; its typesetting lost the `self.` before `builder_.add_func`, and the
pictures and weights are stand-ins (fashion_mnist.py).
"""

from pathlib import Path

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from mlcweb.script import relax as R
from tests.course import fashion_mnist

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """What the cells define and print."""
    return fashion_mnist.run_chapter("chapter7", tmp_path_factory.mktemp("chapter7"))


def test_the_parts_of_a_function(chapter):
    assert isinstance(chapter.relax_func, relax.Function)
    assert str(chapter.relax_func.params[0]) == "x"
    assert [type(block) for block in chapter.func_body.blocks] == [relax.DataflowBlock]
    assert [b.var.name_hint for b in chapter.dataflow_block.bindings] == ["lv0", "gv0"]
    assert str(chapter.binding.value) == "R.multiply(x, y)"


def test_multiply_and_add_become_one_operator(chapter):
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            gv0 = R.ewise_fma(x, y, y)
            R.output(gv0)
        return gv0

    assert len(chapter.updated_fn.body.blocks[0].bindings) == 2
    assert_structural_equal(relax.analysis.remove_all_unused(chapter.updated_fn), main)


def test_matmul_and_add_become_a_function(chapter):
    names = [var.name_hint for var in chapter.MLPFused.functions]
    assert sorted(names) == ["fused_matmul_add0", "fused_matmul_add1", "main"]
    fused = chapter.MLPFused["fused_matmul_add0"]
    assert fused.attrs["Primitive"] == 1
    values = [b.value for b in chapter.MLPFused["main"].body.blocks[0].bindings]
    called = [value.op for value in values if isinstance(value, relax.Call)]
    assert [getattr(op, "name", None) or op.name_hint for op in called] == [
        "relax.permute_dims", "fused_matmul_add0", "relax.nn.relu", "relax.permute_dims",
        "fused_matmul_add1",
    ]  # fmt: skip


def test_fused_functions_are_as_tvm_makes_them(chapter):
    expected = from_source((HERE / "listings" / "chapter7_fused.txt").read_text())
    for name in ("fused_matmul_add0", "fused_matmul_add1"):
        assert_structural_equal(chapter.MLPModelFinal[name], expected[name])
    assert sorted(var.name_hint for var in chapter.MLPModelFinal.functions) == [
        "fused_matmul_add0", "fused_matmul_add1", "main", "relu", "transpose", "transpose1"
    ]  # fmt: skip


def test_the_model_predicts_what_numpy_does(chapter):
    image, _ = fashion_mnist.picture()
    expected = fashion_mnist.logits(image)
    np.testing.assert_allclose(chapter.nd_res.numpy(), expected, rtol=1e-5, atol=1e-5)
    predicted = fashion_mnist.CLASS_NAMES[int(expected.argmax())]
    assert f"MLPModule Prediction: {predicted}" in chapter.printed
