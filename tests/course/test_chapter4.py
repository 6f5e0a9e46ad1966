"""Chapter 4 of the course: its traces replayed on its program give its listings."""

from pathlib import Path

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import assert_structural_equal, structural_equal
from mlcweb.schedule import Trace
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.programs import matmul

HERE = Path(__file__).parent


def listing(name):
    return from_source((HERE / "listings" / f"{name}.txt").read_text())


def printed_trace(name):
    return (HERE / "traces" / f"{name}.txt").read_text().strip().splitlines()


def newer_form(lines):
    """A line of a 2022 trace as TVM prints it since 2023: with every default argument."""
    for line in lines:
        if "sch.split(" in line:
            line = line.replace(
                "preserve_unit_iters=True)", "preserve_unit_iters=True, disable_predication=False)"
            )
        if "compute_at(" in line:
            line = line[:-1] + ", index=-1)"
        yield line


def replay(name):
    """Run the printed lines, as a reader who copies them would."""
    sch = Schedule(matmul())
    exec("\n".join(printed_trace(name)), {"sch": sch})
    return sch


def schedule_mm(sch, jfactor=4):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_0, j_1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


def stochastic_schedule_mm(sch):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


REPLAYED = {
    "schedule_mm": "schedule_mm",
    "stochastic_64_2": "stochastic_64_2",
    "stochastic_16_8": "stochastic_16_8",
    "stochastic_16_8_reordered": "stochastic_reordered_16_8",
    "stochastic_8_16_postproc": "tuned_8_16",
    "auto_scheduled": "auto_scheduled",
}


@pytest.mark.parametrize(("trace", "module"), REPLAYED.items())
def test_a_printed_trace_gives_the_printed_module(trace, module):
    assert_structural_equal(replay(trace).mod, listing(module))


@pytest.mark.parametrize("trace", [path.stem for path in (HERE / "traces").iterdir()])
def test_a_replayed_trace_prints_as_printed(trace):
    head = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
    wanted = head + ["  " + line for line in newer_form(printed_trace(trace))]
    assert str(replay(trace).trace).splitlines() == wanted


@pytest.mark.parametrize("trace", REPLAYED)
def test_json_replays_to_the_same_module(trace):
    sch = replay(trace)
    record = sch.trace.as_json()
    again = Schedule(matmul())
    Trace.apply_json_to_schedule(record, again)
    assert_structural_equal(again.mod, sch.mod)
    assert again.trace.as_json() == record
    assert str(again.trace) == str(sch.trace)


def test_the_schedule_functions_give_the_listings():
    assert_structural_equal(schedule_mm(Schedule(matmul())).mod, listing("schedule_mm"))
    sch = stochastic_schedule_mm(Schedule(matmul(), seed=1))
    decision = next(iter(sch.trace.decisions.values()))
    lines = printed_trace("stochastic_64_2")
    assert sch.trace.as_python() == [
        line.replace("[64, 2]", str(decision)) for line in newer_form(lines)
    ]


def test_decisions_can_be_replaced():
    sch = stochastic_schedule_mm(Schedule(matmul()))
    (sampling,) = sch.trace.decisions
    again = Schedule(matmul())
    sch.trace.with_decision(sampling, [8, 16], remove_postproc=True).apply_to_schedule(again, True)
    assert_structural_equal(again.mod, listing("tuned_8_16"))


def test_sampling_alone_changes_nothing():
    sch = Schedule(matmul())
    factors = sch.sample_perfect_tile(loop=sch.get_loops(sch.get_block("C"))[1], n=2)
    assert type(factors[0]).__name__ == "Var"
    assert structural_equal(sch.mod, listing("unchanged"))


def test_the_step_by_step_listing_before_decomposition():
    sch = Schedule(matmul())
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    factors = sch.sample_perfect_tile(loop=j, n=2, decision=[16, 8])
    j_0, j_1 = sch.split(loop=j, factors=factors)
    sch.reorder(i, j_0, k, j_1)
    assert_structural_equal(sch.mod, listing("stochastic_reordered_16_8"))
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    assert_structural_equal(sch.mod, listing("stochastic_16_8"))


MATMULS = [*REPLAYED.values(), "unchanged"]


@pytest.mark.parametrize("name", dict.fromkeys(MATMULS))
def test_the_listings_compute_the_product(name):
    rng = np.random.default_rng(4)
    a, b = (rng.random((128, 128), dtype="float32") for _ in range(2))
    c = mlcweb.nd.empty((128, 128), dtype="float32")
    mlcweb.build(listing(name), target="numpy")["main"](mlcweb.nd.array(a), mlcweb.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


@pytest.mark.parametrize("name", ["linear0", "linear0_tuned"])
def test_the_linear_listings_compute_the_layer(name):
    rng = np.random.default_rng(5)
    x, w, b = (rng.random(shape, dtype="float32") for shape in ((1, 784), (128, 784), (128,)))
    z = mlcweb.nd.empty((1, 128), dtype="float32")
    module = listing(name)
    (function,) = (var.name_hint for var in module.functions)
    arguments = [mlcweb.nd.array(array) for array in (x, w, b)]
    mlcweb.build(module, target="numpy")[function](*arguments, z)
    np.testing.assert_allclose(z.numpy(), x @ w.T + b, rtol=1e-5)


@pytest.mark.parametrize("name", [path.stem for path in (HERE / "listings").iterdir()])
def test_listings_round_trip(name):
    module = listing(name)
    assert_structural_equal(from_source(module.script()), module)
    assert from_source(module.script()).script() == module.script()
