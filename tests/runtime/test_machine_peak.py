"""The kernels that measure the machine compute what they say."""

import numpy as np
import pytest

from mlcweb.runtime import machine_peak, nd
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.probe_kernels import instance_of

pytest.importorskip("wasmtime")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fused", [False, True])
def test_the_arithmetic_loop_really_runs(dtype: str, fused: bool) -> None:
    instance = instance_of(machine_peak._multiply_adds(dtype, fused))
    results = nd.empty((machine_peak.CHAINS * machine_peak.LANES[dtype],), dtype)
    instance.function("peak", ["i32", "i32"])(2, engine().address_of(results))
    # Four steps of x ↦ x / 2 + 1/2 from 0.
    assert (results.numpy() == 1 - 0.5**4).all()


def test_the_copying_loop_copies() -> None:
    instance = instance_of(machine_peak._copies())
    source = nd.array(np.arange(256, dtype="float32"))
    target = nd.array(np.zeros(256, "float32"))
    addresses = [engine().address_of(array) for array in (source, target)]
    instance.function("copy", ["i32"] * 4)(3, *addresses, 1024)
    assert (target.numpy() == source.numpy()).all()


def test_the_peak_is_measured_once_and_only_gets_better() -> None:
    peak = machine_peak.machine_peak()
    assert peak is machine_peak.machine_peak()
    assert peak.flops > 0
    assert peak.fused_flops is not None
    assert peak.memory_bandwidth > 0
    assert peak.cache_bandwidth > 0
    assert machine_peak.measured_again(peak).flops >= peak.flops
    assert "GFLOPS" in str(peak)
