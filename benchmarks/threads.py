"""What threads cost, and how far they scale: `python -m benchmarks.threads`.

What a launch costs is measured, and that of a loop too short for threads. How models scale is
projected: the parts that threads would run are run one after another and timed, and all else is the
serial share, in which only one of them works. A call on n threads then takes the serial share, of
each parallel loop the longest part, and its launch. That memory, caches and clock rates are shared
by real cores is left out.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import mlcweb
from benchmarks.kernels.workload import program
from benchmarks.models import MODELS, inputs_of, ready, seconds
from mlcweb.lower import outline_parallel
from mlcweb.runtime import build, config_threadpool, nd
from mlcweb.runtime.host import clock
from mlcweb.runtime.thread_pool import POOL, Task

TARGET = "llvm -mcpu=host"
THREADS = (1, 2, 4, 8)

LOOP = """
@T.prim_func
def main(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows, columns), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in T.KIND(rows):
        for j in range(columns):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])
"""
LAUNCHED = 64
SHORT, COLUMNS = 128, 1600
"""128 iterations of about a microsecond."""


def time_of(kind: str, rows: int, columns: int) -> float:
    """The seconds of a loop of a kind."""
    text = LOOP.replace("KIND", kind)
    array = np.linspace(0, 1, rows * columns, dtype="float32").reshape(rows, columns)
    a, b = nd.array(array), nd.array(np.zeros_like(array))
    module = build(program(text, rows=rows, columns=columns), TARGET)
    return module.time_evaluator("main", mlcweb.cpu(), 50, 9)(a, b).median


@contextmanager
def all_loops_on_threads() -> Iterator[None]:
    """Loops are given to threads however short they are."""
    usual, outline_parallel.MIN_OPERATIONS = outline_parallel.MIN_OPERATIONS, 0
    try:
        yield
    finally:
        outline_parallel.MIN_OPERATIONS = usual


def launch_seconds(threads: int) -> float:
    """What it takes to launch a loop that has next to nothing to do."""
    with all_loops_on_threads():
        config_threadpool(1, threads)
        several = time_of("parallel", LAUNCHED, 16)
    return several - time_of("serial", LAUNCHED, 16)


class _InOrder:
    """Takes the place of the pool: runs tasks one after another, and adds up how long all take, and
    the longest of each launch."""

    def __init__(self) -> None:
        self.all = self.longest = 0.0
        self.launches = 0

    def __call__(self, tasks: Sequence[Task]) -> None:
        times = []
        for task in tasks:
            begin = clock()
            task()
            times.append(clock() - begin)
        self.all += sum(times)
        self.longest += max(times)
        self.launches += 1


def projected(
    call: Callable[[], Any], threads: int, launch: float, rounds: int
) -> tuple[float, float]:
    """The seconds of a call on so many threads, and its serial share, the medians of some calls."""
    config_threadpool(1, threads)
    results = []
    for _ in range(rounds):
        in_order = _InOrder()
        POOL.run = in_order
        try:
            total = seconds(call)
        finally:
            del POOL.run
        serial = total - in_order.all
        results.append((serial + in_order.longest + in_order.launches * launch, serial / total))
    return statistics.median(r[0] for r in results), statistics.median(r[1] for r in results)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    config_threadpool(1, 2)
    short = time_of("serial", SHORT, COLUMNS), time_of("parallel", SHORT, COLUMNS)
    print("128 iterations: serial {:.1f} us, parallel {:.1f} us".format(*(t * 1e6 for t in short)))
    launches = {n: launch_seconds(n) if n > 1 else 0.0 for n in THREADS}
    print("a launch:", ", ".join(f"{t * 1e6:.1f} us on {n}" for n, t in launches.items() if n > 1))
    for name in options.models or ("resnet50", "bert_layer"):
        array = inputs_of(name)
        config_threadpool(1, 1)
        call, _ = ready(MODELS[name](), TARGET, array)
        one = statistics.median(seconds(call) for _ in range(options.rounds))
        config_threadpool(1, 2)
        two = statistics.median(seconds(call) for _ in range(options.rounds))
        print(f"{name}: measured {one * 1e3:.1f} ms on 1 thread, {two * 1e3:.1f} ms on 2")
        for n in THREADS[1:]:
            took, serial = projected(call, n, launches[n], options.rounds)
            print(
                f"  projected on {n}: {took * 1e3:.1f} ms, {one / took:.2f} x; serial {serial:.1%}"
            )


if __name__ == "__main__":
    main()
