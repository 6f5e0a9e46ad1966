"""What a call costs on a GPU that has nothing to compute."""

from __future__ import annotations

from mlcweb.runtime import host
from mlcweb.runtime.benchmark import STEPS_PER_BATCH, long_enough
from mlcweb.runtime.device import Device
from mlcweb.runtime.gpu.kernel import GpuFunction
from mlcweb.runtime.host.gpu import GpuDevice, gpu_device
from mlcweb.runtime.ndarray import empty
from mlcweb.script import from_source
from mlcweb.tir.function import PrimFunc

NOTHING = """
@T.prim_func
def nothing(A: T.Buffer((1,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        A[t] = T.float32(1)
"""
BATCHES = 3
CALLS = 64
"""In the first batch."""

_measured: dict[str, tuple[GpuDevice, float]] = {}


def call_seconds(kind: str) -> float:
    """The seconds that a launch of one thread takes, one of many, on the GPU that devices of a kind
    are here. They are measured once for each GPU.

    Raises:
        GpuLost: there is no GPU.
    """
    device = gpu_device(kind)
    if kind in _measured and _measured[kind][0] is device:
        return _measured[kind][1]
    nothing = GpuFunction("nothing", _function(), kind)
    array = empty((1,), "float32", Device(kind))
    nothing.run(array)
    shortest = STEPS_PER_BATCH * host.clock_step()
    number, fastest = CALLS, float("inf")
    for _ in range(BATCHES):
        number, seconds = long_enough(
            lambda calls: nothing.time_batch(calls, array), number, shortest, 10
        )
        fastest = min(fastest, seconds / number)
    _measured[kind] = (nothing.compiled().device, fastest)
    return fastest


def _function() -> PrimFunc:
    func = from_source(NOTHING)
    assert isinstance(func, PrimFunc)
    return func
