"""Chapter 4 of the course from its first cell to its last, as it was printed in 2025 and in 2022.

The cells stand as they are; pictures, weights and torch are stand-ins (fashion_mnist.py). The
printing of 2025 searches with the worker processes of this machine; that of 2022 in this process,
with fewer programs.
"""

import re
from functools import partial

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule, relax, runtime
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from tests.course import fashion_mnist


@pytest.fixture
def run_chapter(tmp_path):
    yield lambda *cells: fashion_mnist.run_chapter(cells, tmp_path)
    for name in ("env.linear", "env.relu"):
        runtime.remove_global_func(name)


def both_models_predict_alike(chapter) -> None:
    image, _ = fashion_mnist.picture()
    expected = fashion_mnist.logits(image)
    np.testing.assert_allclose(chapter.nd_res.numpy(), expected, rtol=1e-5, atol=1e-5)
    predicted = fashion_mnist.CLASS_NAMES[int(expected.argmax())]
    for name in ("MyModuleWithParams", "MyModuleWithParams2"):
        assert f"{name} Prediction: {predicted}\n" in chapter.printed
        assert re.search(rf"{name} time-cost: \d\S* ms\n", chapter.printed)
        vm = relax.VirtualMachine(relax.build(vars(chapter)[name], target="llvm"), tvm.cpu())
        np.testing.assert_allclose(
            vm["main"](chapter.data_nd).numpy(), expected, rtol=1e-5, atol=1e-5
        )


def times(chapter, what: str) -> list[float]:
    found = re.findall(rf"Time cost of {what}: (\d+\.\d+) ms\n", chapter.printed)
    return [float(time) for time in found]


@pytest.mark.thorough
def test_the_printing_of_2025(run_chapter, tmp_path, caplog) -> None:
    chapter = run_chapter("chapter4", "chapter4_tuning", "chapter4_model")
    assert len(times(chapter, "MyModule")) == 1
    assert len(times(chapter, "MyModule=>schedule_mm")) == 1
    assert len(times(chapter, "MyModule after tuning")) == 2
    both_models_predict_alike(chapter)
    # One folder keeps the records of both programs. The small space has few; the others 64, unless
    # no new program is found: of 128 columns, eight vectors of AVX-512 leave fewer tiles than 32 of
    # SSE do.
    trials = [int(count) for count in re.findall(r"Done: .*trials (\d+)/64", caplog.text)]
    records = meta_schedule.database.JSONDatabase(work_dir=tmp_path / ".tune_tmp")
    of_matmul = records.get_records_of(records.commit_workload(chapter.MyModule))
    of_linear = records.get_records_of(records.commit_workload(chapter.mod_linear))
    assert trials[:2] == [5, 64]
    assert len(of_matmul) == 64 + 5
    assert len(of_linear) == trials[2] >= 16
    assert len(records) >= len(of_matmul) + len(of_linear) + 3 * 4


def test_the_printing_of_2022(run_chapter, monkeypatch) -> None:
    whole = meta_schedule.tune_tir

    def small(config, **options):
        assert (config.max_trials_global, config.num_trials_per_iter) == (64, 64)
        config = meta_schedule.TuneConfig(max_trials_global=6, num_trials_per_iter=6)
        runner = partial(ThreadRunner, timing=Timing(2, 0.02))
        return whole(**options, config=config, runner=runner, seed=1)

    monkeypatch.setattr(meta_schedule, "tune_tir", small)
    chapter = run_chapter("chapter4", "chapter4_tuning_2022", "chapter4_model_2022")
    assert len(times(chapter, "MyModule after tuning")) == 2
    assert chapter.sch_tuned_linear.trace.as_python()[0].startswith("b0 = sch.get_block(")
    both_models_predict_alike(chapter)
