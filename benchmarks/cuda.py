"""On a GPU of NVIDIA: our programs, and one that was tuned, beside PyTorch's (cuBLAS and cuDNN).

    python -m benchmarks.cuda
    python -m benchmarks.cuda --size 1024 --trials 64

It prints Markdown: milliseconds by the GPU's own clock, medians of rounds in turn. Of our programs
for a computation the fastest counts. Results are compared with NumPy's. Without PyTorch only ours
are timed.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

import mlcweb as tvm
from benchmarks.browser.on_gpu import NOTHING
from benchmarks.kernels.on_cuda import on_cuda
from benchmarks.kernels.on_gpu import ON_GPU
from benchmarks.kernels.workload import Workload
from mlcweb import meta_schedule as ms
from mlcweb.ir import IRModule
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host import clock
from mlcweb.runtime.host.gpu import gpu_device, why_no_gpu
from mlcweb.script import from_source

OTHERS = ("conv2d", "softmax", "mean", "mlp")
DISPATCHES = 1000
BATCH = 20e-3
"""Seconds of calls that are timed together."""
PATIENCE = 60
"""Seconds that one program may take in a search, the first on this machine's processor."""

Call = Callable[[int], float]
"""Milliseconds for each of so many calls."""


def ours(module: IRModule, workload: Workload, device: Any) -> Call:
    """A program on arrays of the GPU, its result checked."""
    inputs, expected = workload.arguments()
    result = tvm.nd.array(np.zeros_like(expected), device)
    arrays = (*(tvm.nd.array(array, device) for array in inputs), result)
    with tvm.transform.PassContext(config={"tir.use_async_copy": True}):
        library = tvm.build(module, target="cuda")
    library["main"](*arrays)
    workload.check(result.numpy(), expected)

    def call(number: int) -> float:
        timer = library.time_evaluator("main", device, number=number, repeat=1)
        return timer(*arrays).mean * 1e3

    return call


def torch_calls() -> dict[str, Callable[[Workload], Call]]:
    """What PyTorch has for an operator; nothing without it or without its GPU."""
    try:
        import torch
        import torch.nn.functional as nn
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}

    def timed(function: Callable[..., Any]) -> Callable[[Workload], Call]:
        def prepare(workload: Workload) -> Call:
            inputs = [torch.from_numpy(array).cuda() for array in workload.arguments()[0]]
            function(*inputs)

            def call(number: int) -> float:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                for _ in range(number):
                    function(*inputs)
                end.record()
                torch.cuda.synchronize()
                return start.elapsed_time(end) / number

            return call

        return prepare

    return {
        "matmul": timed(torch.matmul),
        "conv2d": timed(nn.conv2d),
        "softmax": timed(lambda a: torch.softmax(a, 1)),
        "mean": timed(lambda a: a.mean(1)),
        "mlp": timed(lambda x, w, b, v, c: nn.linear(torch.relu(nn.linear(x, w, b)), v, c)),
    }


def in_turn(calls: Sequence[Call], rounds: int) -> list[float]:
    """The median of each."""
    numbers = [max(1, round(BATCH * 1e3 / max(call(3), 1e-3))) for call in calls]
    samples = [[call(n) for call, n in zip(calls, numbers, strict=True)] for _ in range(rounds)]
    return [median(times) for times in zip(*samples, strict=True)]


def compare(
    workload: Workload, device: Any, peers: dict[str, Callable[[Workload], Call]], rounds: int
) -> Iterator[list[str]]:
    """A row for each program of a computation, the fastest first."""
    labels: list[str] = []
    calls: list[Call] = []
    for label, make in workload.programs.items():
        try:
            calls.append(ours(make(), workload, device))
            labels.append(label)
        except (TVMError, AssertionError) as error:
            yield [workload.name, label, f"{type(error).__name__}: {error}"]
    peer = peers.get(workload.operator or "")
    if peer is not None:
        calls.append(peer(workload))
    times = in_turn(calls, rounds)
    other = times.pop() if peer is not None else 0.0
    for time, label in sorted(zip(times, labels, strict=True)):
        rate = f"{workload.flops / time * 1e-6:.4g}" if workload.flops else ""
        ratio = [f"{other:.4g}", f"{other / time:.2f}"] if other else ["", ""]
        yield [workload.name, label, f"{time:.4g}", rate, *ratio]


def overhead(device: Any) -> float:
    """Microseconds for each of a thousand calls that have nothing to do."""
    func: Any = from_source(NOTHING)
    array = tvm.nd.array(np.zeros(1, "float32"), device)
    nothing = tvm.build(func, target="cuda")["main"]
    nothing(array)
    device.sync()
    start = clock()
    for _ in range(DISPATCHES):
        nothing(array)
    device.sync()
    return (clock() - start) / DISPATCHES * 1e6


def tuned(workload: Workload, trials: int, target: str) -> Workload:
    """A computation, with the program that was found for it among `trials`."""
    start = clock()
    module = workload.as_written()
    runner = ms.runner.LocalRunner(timeout_sec=PATIENCE)
    database = ms.tune_tir(
        module, target=target, work_dir=None, max_trials_global=trials, runner=runner
    )
    assert isinstance(database, ms.Database)
    sch = ms.tir_integration.compile_tir(database, module, target)
    assert sch is not None, "no program ran"
    print(f"\n{trials} trials of {workload.name} took {clock() - start:.1f} s")
    programs = {f"tuned, {trials} trials": lambda: sch.mod, **workload.programs}
    return replace(workload, programs=programs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--size", type=int, nargs="*", default=[1024, 4096], help="rows of products"
    )
    parser.add_argument("--only", nargs="*", help="names of computations")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--trials", type=int, default=0, help="how many to tune with; 0: none")
    parser.add_argument("--tuned-size", type=int, default=1024, help="of products to tune")
    parser.add_argument("--target", default="nvidia/nvidia-h100", help="for tuning")
    options = parser.parse_args()
    device = tvm.cuda()
    gpu = gpu_device("cuda")
    print(f"GPU: {gpu.description if gpu else 'none'}, Python {platform.python_version()}")
    if reason := why_no_gpu("cuda"):
        print(f"CUDA is not reached: {reason}")
    peers = torch_calls()
    workloads = [w for n in options.size for w in on_cuda(n)] + [ON_GPU[name] for name in OTHERS]
    print("\n| computation | program | ms | GFLOPS | PyTorch ms | of its speed |")
    print("|---|---|---|---|---|---|")

    def show(workload: Workload) -> None:
        for row in compare(workload, device, peers, options.rounds):
            print(f"| {' | '.join(row)} |", flush=True)

    def chosen(workloads: Sequence[Workload]) -> list[Workload]:
        return [w for w in workloads if not options.only or w.name in options.only]

    for workload in chosen(workloads):
        show(workload)
    print(f"\nA call with nothing to do: {overhead(device):.1f} us")
    if options.trials:
        for workload in chosen(on_cuda(options.tuned_size)):
            show(tuned(workload, options.trials, options.target))


if __name__ == "__main__":
    main()
