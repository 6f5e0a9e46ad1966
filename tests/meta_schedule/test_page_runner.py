"""Python's part of measuring in light workers of a page, with a stand-in for the page."""

import asyncio
import importlib
import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.measure.artifact import build_artifact, random_inputs
from mlcweb.meta_schedule.measure.runner import Timing
from mlcweb.meta_schedule.postproc import RewriteLayout
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from tests.meta_schedule import programs
from tests.meta_schedule.postproc.layout_cases import CASES

TIMING = Timing(batches=2, min_ms=50.0)


class Page:
    """Answers every kernel with the next of some times, and keeps what it was asked for."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.jobs: list[dict[str, Any]] = []
        self.content = [bytes(256)] * 2
        self.buffers: list[dict[str, Any]] = []

    def open(self, owner: int, workload: dict[str, Any], *limits: Any) -> None:
        self.buffers = workload["arrays"]

    def close(self, *arguments: Any) -> None:
        """It has nothing to end."""

    async def run(self, owner: int, job: dict[str, Any]) -> Any:
        self.jobs.append(job)
        seconds = [self.times.pop(0)] * job["batches"]
        # The machine is half as fast as it can be while the last kernel runs.
        calibration = [2.0 if not self.times else 1.0] * (len(seconds) + 1)
        # What a correct program leaves: of the reference as it is, of others that it is the same.
        left = [SimpleNamespace(to_bytes=lambda each=each: each) for each in self.content]
        arrays = left if len(self.jobs) == 1 else None
        return SimpleNamespace(
            ok=True,
            arrays=arrays,
            seconds=SimpleNamespace(to_py=lambda: seconds),
            calibration=SimpleNamespace(to_py=lambda: calibration),
        )


@pytest.fixture
def page_runner(monkeypatch):
    """The module under test as a page imports it, and the page."""
    page = Page(9.0, 0.1, 0.02, 0.5)
    js = SimpleNamespace(
        mlcwebTrials=page,
        navigator=SimpleNamespace(hardwareConcurrency=8),
        Object=SimpleNamespace(fromEntries=None),
    )
    ffi = SimpleNamespace(JsProxy=object, to_js=lambda value, dict_converter: value)
    monkeypatch.setitem(sys.modules, "js", js)
    monkeypatch.setitem(sys.modules, "pyodide.ffi", ffi)
    names = ["mlcweb.runtime.host.trial_workers", "mlcweb.meta_schedule.measure.page_runner"]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(names[-1])
    yield module, page
    for name in names:
        sys.modules.pop(name, None)


def test_what_is_far_slower_than_the_best_may_be_left_early(page_runner) -> None:
    module, page = page_runner

    async def main() -> None:
        runner = module.PageRunner(random_inputs(programs.Double), timing=TIMING)
        code = build_artifact(programs.Double, "main", "wasm")
        assert runner.workers == 4
        assert await runner.begin(code) == (9.0, 9.0)
        assert await runner.measure(code) == (0.1, 0.1)
        assert await runner.measure(code) == (0.02, 0.02)
        assert await runner.measure(code) == (0.25, 0.25)

    asyncio.run(main())
    # The program as it stands is no measure; then three times the best, but a batch at least.
    limits = [job["earlyStopMs"] for job in page.jobs]
    assert limits == [math.inf, math.inf, pytest.approx(300.0), pytest.approx(60.0)]
    assert [job["minMs"] for job in page.jobs] == [50.0] * 4


def test_bfloat16_travels_as_its_bits(page_runner) -> None:
    module, page = page_runner
    workload = random_inputs(programs.BFloat16Product)
    a, b, _ = workload.inputs
    bits = [(array.view("uint32") >> 16).astype("uint16").tobytes() for array in (a, b, a @ b)]
    page.content = bits
    runner = module.PageRunner(workload, timing=TIMING)
    asyncio.run(runner.begin(build_artifact(programs.BFloat16Product, "main", "wasm")))
    assert [array["dtype"] for array in page.buffers] == ["bfloat16"] * 3
    assert [bytes(array["input"]) for array in page.buffers[:2]] == bits[:2]
    assert [bytes(array["expected"]) for array in page.buffers] == bits
    assert [array["tolerance"] for array in page.buffers] == [
        pytest.approx(0.06 * max(1.0, array.max())) for array in runner.workload.expected
    ]


def test_weights_go_to_the_page_in_the_layout_of_the_kernel(page_runner) -> None:
    module, page = page_runner
    name = "product_transposed"
    plain = IRModule({"main": from_source(CASES[name])})
    sch = Schedule(plain)
    assert RewriteLayout().apply(sch)
    workload = random_inputs(plain)

    async def main() -> None:
        runner = module.PageRunner(workload, timing=TIMING)
        await runner.measure(build_artifact(plain, "main", "wasm"))
        timed, left = await runner.run(build_artifact(sch.mod, "main", "wasm"), TIMING, True)
        # The page says that all is as expected.
        assert timed.seconds and left == ()

    page.jobs.append({})
    asyncio.run(main())
    _, first, second = page.jobs
    assert "replaced" not in first
    (replaced,) = second["replaced"]
    assert replaced["index"] == 1
    assert bytes(replaced["array"]["input"]) == workload.inputs[1].T.tobytes()
    assert bytes(replaced["array"]["expected"]) == workload.inputs[1].T.tobytes()
