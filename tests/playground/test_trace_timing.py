"""Times of steps: each is checked against the program before any step."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.meta_schedule.measure.runner import RunnerClosed, ThreadRunner, Timing
from mlcweb.meta_schedule.runner import LocalRunner
from mlcweb.playground import trace_timing, trace_view
from mlcweb.script import from_source

Run = Callable[[str], Any]
SCHEDULE = "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"


@pytest.fixture(autouse=True)
def runner_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has its own workers; here the programs are known to end."""
    monkeypatch.setattr(
        LocalRunner, "open", lambda self, workload: ThreadRunner(workload, Timing(2, 0.1))
    )


async def timed(identifier: str, changes: dict[str, Any], steps: list[int]) -> list[Any]:
    begun = await trace_timing.begin(identifier, changes)
    found = [begun.outcome]
    for step in steps:
        found.append(await trace_timing.step(begun.id, identifier, changes, step))
    trace_timing.finish(begun.id)
    return found


def test_each_step_has_a_time(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    outcomes = asyncio.run(timed(trace.id, {3: [2, 8]}, [3, 4, 5, 6]))
    for outcome in outcomes:
        assert outcome.state == "measured"
        assert outcome.reason is None
        assert min(outcome.repeats) <= outcome.seconds <= max(outcome.repeats)
    # The step that decides leaves the program as it was, which is not measured twice.
    assert outcomes[0] == outcomes[1]


def test_a_step_whose_program_cannot_be_built_says_why(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    [trace] = run(SCHEDULE).traces
    good = trace_timing._artifact

    def refuse(module: Any, function: str) -> Any:
        if "C_init" in module.script():
            raise TVMError("no code for this")
        return good(module, function)

    monkeypatch.setattr(trace_timing, "_artifact", refuse)
    outcomes = asyncio.run(timed(trace.id, {}, [5, 6]))
    assert [outcome.state for outcome in outcomes] == ["measured", "measured", "failed"]
    assert outcomes[-1].reason == "no code for this"
    assert outcomes[-1].seconds is None


def test_a_program_that_computes_something_else_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
sch = tvm.tir.Schedule(MyModule)
i, j, k = sch.get_loops(sch.get_block("C"))
sch.reorder(k, j)
"""
    [trace] = run(source).traces
    good = trace_timing._artifact

    def corrupted(module: Any, function: str) -> Any:
        script = module.script()
        if "for i, k, j in" in script:
            module = from_source(script.replace("* B[vk, vj]", "+ B[vk, vj]"))
        return good(module, function)

    monkeypatch.setattr(trace_timing, "_artifact", corrupted)
    last = len(trace_view.replayed(trace.id).steps)
    outcomes = asyncio.run(timed(trace.id, {}, [last]))
    assert outcomes[-1].state == "failed"
    assert "differ from the unscheduled program's" in outcomes[-1].reason


def test_a_stopped_measurement_is_no_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    [trace] = run(SCHEDULE).traces

    async def main() -> None:
        begun = await trace_timing.begin(trace.id, {})

        async def closed(self: Any, artifact: Any) -> Any:
            raise RunnerClosed("stopped")

        monkeypatch.setattr(ThreadRunner, "measure", closed)
        outcome = await trace_timing.step(begun.id, trace.id, {}, 4)
        assert outcome.state == "stopped"
        trace_timing.finish(begun.id)
        outcome = await trace_timing.step(begun.id, trace.id, {}, 4)
        assert outcome.state == "stopped"

    asyncio.run(main())


def test_a_program_that_cannot_run_says_so(run: Run) -> None:
    source = """
@T.prim_func
def sized(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (8,), "float32")
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.Cast("float32", n)

sch = tvm.tir.Schedule(sized)
sch.parallel(sch.get_loops(sch.get_block("A"))[0])
"""
    [trace] = run(source).traces
    with pytest.raises(TVMError, match="takes more than buffers"):
        asyncio.run(timed(trace.id, {}, []))


def test_the_function_that_a_trace_works_on_is_the_one_that_it_changes(run: Run) -> None:
    source = """
@tvm.script.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 1.0

    @T.prim_func
    def second(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = 2.0

sch = tvm.tir.Schedule(Two)
sch.parallel(sch.get_loops(sch.get_block("B", "second"))[0])
"""
    [trace] = run(source).traces
    assert trace_timing.scheduled_function(trace_view.replayed(trace.id)) == "second"
