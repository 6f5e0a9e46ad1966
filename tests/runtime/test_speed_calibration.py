"""Times calibrated for the speed of the machine."""

import math

import numpy as np
import pytest

from mlcweb.runtime import nd, speed_calibration
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.probe_kernels import instance_of
from mlcweb.runtime.speed_calibration import (
    DATA_BYTES,
    ITERATIONS,
    MIN_BATCHES,
    MIN_STEPS,
    SpeedCalibration,
    Timed,
    calibration_timer,
)


def test_batches_of_the_quietest_third_count_at_the_fastest_pace() -> None:
    calibration = SpeedCalibration()
    # The machine is half as fast in the middle; one batch at the start was disturbed all the same.
    timed = Timed(
        (5.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 2.0),
        (1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0),
    )
    assert calibration.corrected(timed) == (2.0, 2.0, 2.0, 5.0)
    # All of it in a slow time: as it would have been in a fast one.
    assert calibration.corrected(Timed((4.0,) * 9, (2.0,) * 10)) == (2.0,) * MIN_BATCHES
    # What was interrupted for long counts less.
    assert calibration.corrected(Timed((4.0,), (9.0, 50.0))) == (2.0,)
    # A machine faster than ever before counts from then on.
    assert calibration.corrected(Timed((3.0, 3.0), (0.5, 0.5, 0.5))) == (3.0, 3.0)
    assert calibration.corrected(Timed((4.0,), (1.0, 1.0))) == (2.0,)


def test_without_paces_times_stay_as_they_are() -> None:
    calibration = SpeedCalibration()
    assert calibration.corrected(Timed((3.0, 1.0, 2.0))) == (3.0, 1.0, 2.0)
    assert calibration.fastest == float("inf")


@pytest.mark.parametrize("step", [1e-7, 1e-4, 1e-3])
def test_the_work_is_done_as_often_as_the_clock_needs(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    asked: list[int] = []

    class Instance:
        def timer(self, name: str, types: list[str]):
            def run(iterations: int, address: int) -> float:
                asked.append(iterations // ITERATIONS)
                return math.floor(2.5e-4 * asked[-1] / step + 1e-9) * step

            return run

    monkeypatch.setattr(speed_calibration, "instance_of", lambda function: Instance())
    monkeypatch.setattr(speed_calibration, "clock_step", lambda: step)
    timer = calibration_timer.__wrapped__()
    assert timer() == pytest.approx(2.5e-4, rel=1 / MIN_STEPS)
    # Enough for the clock, and not much more: a clock that is too coarse for the work done once
    # reads zero then.
    assert MIN_STEPS * step <= asked[-1] * 2.5e-4 <= max(2.5e-4, 2 * MIN_STEPS * step)


def test_an_interruption_does_not_leave_the_clock_too_little_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = 1e-3
    interruptions = [0.05]

    class Instance:
        def timer(self, name: str, types: list[str]):
            def run(iterations: int, address: int) -> float:
                busy = interruptions.pop() if interruptions else 0.0
                return math.floor((2.5e-4 * (iterations // ITERATIONS) + busy) / step) * step

            return run

    monkeypatch.setattr(speed_calibration, "instance_of", lambda function: Instance())
    monkeypatch.setattr(speed_calibration, "clock_step", lambda: step)
    timer = calibration_timer.__wrapped__()
    assert timer() == pytest.approx(0.05)
    # A work that lasts a quarter of a step reads zero: it is done more often from then on.
    assert [timer(), timer()] == pytest.approx([2.5e-4, 2.5e-4], rel=1 / MIN_STEPS)


def test_the_work_runs_and_stays_within_its_memory() -> None:
    pytest.importorskip("wasmtime")

    assert calibration_timer()() > 0
    room = nd.array(np.full(DATA_BYTES // 4 + 4, 7, "float32"))
    work = instance_of(speed_calibration._work()).function("work", ["i32", "i32"])
    work(3, engine().address_of(room))
    assert (room.numpy()[:-4] == 0).all()
    assert (room.numpy()[-4:] == 7).all()
