"""The memory of a long search: `python -m benchmarks.tuning.memory --trials 10000`.

A search of the default space runs with everything that a real one has, machine code included, but
for the machine: a program's time follows from its code, so that a trial takes no longer than
finding and compiling the program. After each thousand trials the resident memory of the process is
printed, in MiB; what counts is that no more is kept of a trial than its record.

With `--quick` schedules are simple, nothing is compiled and nothing learnt, which takes minutes in
place of an hour.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mlcweb import meta_schedule as ms
from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.measure.artifact import Artifact, WasmArtifact, build_artifact
from mlcweb.meta_schedule.measure.runner import Seconds
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import Schedule

N = 1440
"""Of smaller products there are too few programs."""


@I.ir_module
class Matmul:
    @T.prim_func
    def main(
        A: T.Buffer((N, N), "float32"),
        B: T.Buffer((N, N), "float32"),
        C: T.Buffer((N, N), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(N, N, N):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiles(sch: Schedule) -> None:
    """Tiles of tiles, in some thirty thousand ways."""
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1, i2 = sch.split(i, sch.sample_perfect_tile(i, 3, 512))
    j0, j1, j2 = sch.split(j, sch.sample_perfect_tile(j, 3, 512))
    k0, k1 = sch.split(k, sch.sample_perfect_tile(k, 2, 512))
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)


class CodeTimer:
    """A `Runner` that reads a program's time from its code."""

    workers = 2

    async def build(self, module: IRModule, target: str) -> Artifact:
        return build_artifact(module, "main", target)

    async def begin(self, reference: Artifact) -> Seconds:
        return (1.0,)

    async def measure(self, artifact: Artifact) -> Seconds:
        if isinstance(artifact, WasmArtifact):
            code = artifact.code
        else:
            code = structural_hash(artifact.module).to_bytes(8, "little", signed=True)
        digest = hashlib.blake2b(code, digest_size=4).digest()
        return (1e-4 * (1.0 + int.from_bytes(digest, "little") / 2**32),) * 5

    def close(self) -> None:
        pass


def resident_mib() -> float:
    """The memory of this process that is in use, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(arguments: list[str] | None = None) -> None:
    """Search, and print how much memory that takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--strategy", default="evolutionary")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    begin = time.monotonic()

    def observe(scheduler: Any, task_id: int | None) -> None:
        done = scheduler.total_trials
        if task_id is not None and done % options.every == 0:
            gc.collect()
            seconds = time.monotonic() - begin
            print(f"{done:8} trials {resident_mib():8.1f} MiB {seconds:8.1f} s", flush=True)

    print(f"{0:8} trials {resident_mib():8.1f} MiB")
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(
            Matmul,
            "numpy" if options.quick else "llvm --num-cores=1",
            folder,
            max_trials_global=options.trials,
            seed=1,
            strategy="replay-trace" if options.quick else options.strategy,
            space=tiles if options.quick else "post-order-apply",
            runner=lambda workload: CodeTimer(),
            measure_callbacks=observe,
        )
        assert isinstance(database, ms.Database)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        records = f"{len(database)} records, {size / 2**20:.1f} MiB on disk"
    print(f"{resident_mib():8.1f} MiB at the end; {records}")


if __name__ == "__main__":
    main(sys.argv[1:])
