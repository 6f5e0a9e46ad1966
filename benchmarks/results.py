"""What was measured, and what follows from it: medians, spreads, shares of the peak."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.kernels import WORKLOADS


@dataclass(frozen=True)
class Samples:
    """One program on one engine: seconds per call, round by round, and the peaks of the same
    rounds in GFLOPS, where the engine tells."""

    seconds: Sequence[float]
    peaks: Sequence[float] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, as a part of the median."""
        if len(self.seconds) < 3 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median

    @property
    def peak(self) -> float | None:
        return statistics.median(self.peaks) if self.peaks else None


@dataclass
class Results:
    """Samples by program (``workload/program``) and engine, and what went wrong."""

    samples: dict[tuple[str, str], Samples] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def seconds(self, program: str, engine: str) -> float | None:
        """The median; None where it was not measured."""
        samples = self.samples.get((program, engine))
        return samples.median if samples else None

    def gflops(self, program: str, engine: str) -> float | None:
        """The rate; None where it was not measured, or where operations do not count."""
        seconds = self.seconds(program, engine)
        workload = WORKLOADS.get(program.partition("/")[0])
        return workload.flops / seconds / 1e9 if seconds and workload and workload.flops else None

    def share(self, program: str, engine: str) -> float | None:
        """The rate as a part of the engine's peak."""
        rate = self.gflops(program, engine)
        peak = self.samples[program, engine].peak if rate else None
        return rate / peak if rate and peak else None

    def best(self, workload: str, engines: Sequence[str]) -> tuple[float, str] | None:
        """The least median of any program of a workload on these engines, and whose it is."""
        times = [
            (samples.median, engine)
            for (program, engine), samples in self.samples.items()
            if program.startswith(f"{workload}/") and engine in engines
        ]
        return min(times, default=None)
