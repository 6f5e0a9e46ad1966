"""The second half of chapter 4 of the course: a function of a model is tuned and put back.

The cells are the book's, its first imports and helper included; pictures, weights and torch are
stand-ins (fashion_mnist.py), and the search measures a few programs, in this process.
"""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule, relax, runtime
from mlcweb.ir import assert_structural_equal, structural_equal
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.script import from_source
from tests.course import fashion_mnist

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """What the cells define and print."""
    with pytest.MonkeyPatch.context() as patch:
        small = {
            "runner": partial(ThreadRunner, timing=Timing(2, 0.02)),
            "max_trials_global": 6,
            "num_trials_per_iter": 6,
            "seed": 1,
        }
        whole = meta_schedule.tune_tir
        patch.setattr(meta_schedule, "tune_tir", lambda **options: whole(**{**options, **small}))
        yield fashion_mnist.run_chapter("chapter4_model", tmp_path_factory.mktemp("chapter4"))
    for name in ("env.linear", "env.relu"):
        runtime.remove_global_func(name)


def test_the_function_to_tune_is_the_listing(chapter):
    assert_structural_equal(
        chapter.mod_linear, from_source((HERE / "listings" / "linear0.txt").read_text())
    )
    assert [var.name_hint for var in chapter.mod_linear.functions] == ["main"]


def test_what_was_found_takes_the_place_of_the_function(chapter):
    assert len(chapter.database) >= 6
    before, after = chapter.MyModuleWithParams["linear0"], chapter.MyModuleWithParams2["linear0"]
    assert not structural_equal(before, after)
    assert_structural_equal(after, chapter.sch.mod["main"].with_attr("global_symbol", "linear0"))
    assert_structural_equal(chapter.MyModuleWithParams["main"], chapter.MyModuleWithParams2["main"])


def test_both_models_give_what_numpy_gives(chapter):
    image, _ = fashion_mnist.picture()
    expected = fashion_mnist.logits(image)
    for module in (chapter.MyModuleWithParams, chapter.MyModuleWithParams2):
        vm = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
        result = vm["main"](chapter.data_nd).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(chapter.nd_res.numpy(), expected, rtol=1e-5, atol=1e-5)
    predicted = fashion_mnist.CLASS_NAMES[int(expected.argmax())]
    for name in ("MyModuleWithParams", "MyModuleWithParams2"):
        assert f"{name} Prediction: {predicted}\n" in chapter.printed
        assert re.search(rf"{name} time-cost: \d\S* ms\n", chapter.printed)
