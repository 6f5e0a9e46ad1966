"""How fast a function's machine code is, against what this machine can do at best."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.ir import TVMError
from mlcweb.playground.protocol.code import CodeMeasurement
from mlcweb.playground.session import session
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.runtime.host import clock_step, in_browser
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.machine_peak import MachinePeak, machine_peak, measured_again
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.dtype import size_in_bytes

REPEATS = 7
MIN_BATCH_MS = 10.0


def measure(program_id: str, function_name: str, fused: bool | None = None) -> CodeMeasurement:
    """Time a function of a registered program on random content.

    Args:
        fused: whether multiply-adds may be fused; by default as the engine's builds do.

    Raises:
        TVMError: the function has no machine code, or takes something else than buffers.
    """
    from mlcweb.meta_schedule.measure.artifact import random_inputs

    module, name = session.program(program_id)[1], function_name
    func = module[name]
    library = build(module, "wasm", config={} if fused is None else {RELAXED_MADD: fused})
    kernel = library[name].kernel
    if kernel.language != "wat":
        raise TVMError(f'"{name}" has no WebAssembly form, so it runs in NumPy')
    arguments = random_inputs(module, name).arrays()
    evaluator = library.time_evaluator(
        name, cpu(), number=1, repeat=REPEATS, min_repeat_ms=MIN_BATCH_MS
    )
    times = evaluator(*arguments)
    operations = estimate_flops(func)
    return CodeMeasurement(
        seconds=times.median,
        repeats=list(times.results),
        operations=operations,
        bytes=argument_bytes(func),
        rate=operations / times.median,
        fused=".relaxed_madd" in kernel.source,
        peak=_peak(func),
        call=_call_seconds(),
        clock_step=clock_step(),
        isolated=engine().shared if in_browser() else None,
    )


NOTHING = """
@T.prim_func
def main(A: T.Buffer((1,), "float32")):
    A[0] = T.float32(0)
"""


@cache
def _call_seconds() -> float:
    """What a call takes that has next to nothing to do."""
    nothing: Any = from_source(NOTHING)
    library = build(nothing, "wasm")
    evaluator = library.time_evaluator("main", cpu(), repeat=REPEATS, min_repeat_ms=1)
    return evaluator(nd.empty((1,))).median


def argument_bytes(func: PrimFunc) -> int:
    """The size of all buffers that a function takes: what it moves at least, unless some of it
    lies in a cache."""
    return sum(
        prod(constant_shape(buffer) or ()) * size_in_bytes(buffer.dtype)
        for buffer in func.parameter_buffers
    )


_peaks: dict[str, MachinePeak] = {}


def _peak(func: PrimFunc) -> MachinePeak:
    """The peak for the type of numbers that a function computes with. Its arithmetic is measured
    with every kernel, and the best of all times counts: a busy machine only makes it less."""
    doubles = any(buffer.dtype == "float64" for buffer in func.parameter_buffers)
    dtype = "float64" if doubles else "float32"
    _peaks[dtype] = measured_again(_peaks.get(dtype) or machine_peak(dtype))
    return _peaks[dtype]
