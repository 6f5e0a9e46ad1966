"""What is to be reached. Each target tells how far it is reached by the results of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Protocol

from benchmarks.browser import tuning as page_tuning
from benchmarks.results import Results
from benchmarks.tuning import rate, strategies
from benchmarks.tuning.quality import COLD, TUNED

NATIVE_PART = 0.8
"""Natively, so much of what is asked in the page, as a share of wasmtime's own peak."""

SHARES = {
    "matmul128/best": 0.85,
    "matmul512/best": 0.70,
    "matmul1024/best": 0.60,
    "matmul128/jfactor16": 0.54,
    "matmul128/jfactor32": 0.65,
    "matmul128/untransformed": 0.08,
}
PEERS = ("tfjs", "ort")
ADVANTAGES = {"matmul128": 1.25, "matmul256": 1.25, "matmul512": 1.25, "matmul1024": 1.5}
OVER_NUMPY = 12
LEVEL_WITHIN = 0.03
"""Two engines are level if their medians differ by no more, which is the noise of a good run."""
LEVEL = ("mlp", "conv", "bmm_relu", "softmax", "layer_norm", "relu")
MILLISECONDS = {
    ("build/schedule_mm", "native"): 15,
    ("build/schedule_mm", "page"): 60,
    ("build/auto_scheduled", "page"): 150,
    ("call/add", "page"): 0.0007,
    ("chain100/best", "native"): 1,
    ("chain100/best", "page"): 3,
}

HOST = (
    *(f"matmul{n}/wide" for n in (128, 256, 512, 1024)), "bmm_relu/wide", "conv/best",
    "softmax/best", "layer_norm/best", "mlp/best", "linear0/best",
)  # fmt: skip
"""What LLVM's code is compared by with TVM's of the same schedules, and with NumPy, natively."""
HOST_OVER_TVM = 0.85

TRIALS_A_SECOND = 15
NATIVE_TRIALS_A_SECOND = 25

TUNED_SHARE = 0.80
COLD_SHARE = 0.65
PAGE_SEARCH_MILLISECONDS = 8000
MODEL_OVER_NUMPY = 3
TUNED_GAINS = {
    ("softmax", "best"): 1,
    ("layer_norm", "best"): 1,
    ("linear0", "untransformed"): 2,
}
"""How many times as fast tuned programs are as others of the same workload."""


@dataclass(frozen=True)
class Verdict:
    """What was reached, in words, and how it compares with what is wanted: below 1, less `noise`,
    it is not enough."""

    reached: str
    ratio: float
    noise: float = 0.0

    @property
    def passed(self) -> bool:
        return self.ratio >= 1 - self.noise


class Target(Protocol):
    @property
    def program(self) -> str: ...

    @property
    def engine(self) -> str: ...

    @property
    def wanted(self) -> str: ...

    def verdict(self, results: Results) -> Verdict | None: ...


@dataclass(frozen=True)
class Share:
    """A program reaches a part of the engine's peak."""

    program: str
    engine: str
    least: float

    @property
    def wanted(self) -> str:
        return f">= {self.least:.1%} of P"

    def verdict(self, results: Results) -> Verdict | None:
        share = results.share(self.program, self.engine)
        return None if share is None else Verdict(f"{share:.1%}", share / self.least)


@dataclass(frozen=True)
class Faster:
    """A program is so many times as fast as the best of other engines is at the same, or at the
    workload named."""

    program: str
    engine: str
    others: tuple[str, ...]
    least: float
    workload: str

    @property
    def wanted(self) -> str:
        return f">= {self.least:g} x {' or '.join(self.others)}"

    def verdict(self, results: Results) -> Verdict | None:
        seconds = results.seconds(self.program, self.engine)
        best = results.best(self.workload, self.others)
        if seconds is None or best is None:
            return None
        factor = best[0] / seconds
        # Programs that wait for memory alone are equally fast everywhere.
        noise = LEVEL_WITHIN if self.least == 1 else 0.0
        return Verdict(f"{factor:.2f} x {best[1]}", factor / self.least, noise)


@dataclass(frozen=True)
class Gain:
    """A program is so many times as fast as another one is on another engine."""

    program: str
    engine: str
    other: tuple[str, str]
    least: float

    @property
    def wanted(self) -> str:
        return f">= {self.least:g} x {self.other[0]} on {self.other[1]}"

    def verdict(self, results: Results) -> Verdict | None:
        seconds, other = results.seconds(self.program, self.engine), results.seconds(*self.other)
        if seconds is None or other is None:
            return None
        noise = LEVEL_WITHIN if self.least == 1 else 0.0
        return Verdict(f"{other / seconds:.2f} x", other / seconds / self.least, noise)


@dataclass(frozen=True)
class MeanGain:
    """Programs are as fast on an engine as on another one, in the geometric mean."""

    programs: tuple[str, ...]
    engine: str
    other: str

    @property
    def program(self) -> str:
        return "geometric mean"

    @property
    def wanted(self) -> str:
        return f">= 1 x {self.other}"

    def verdict(self, results: Results) -> Verdict | None:
        pairs = [
            (results.seconds(name, self.engine), results.seconds(name, self.other))
            for name in self.programs
        ]
        factors = [other / own for own, other in pairs if own is not None and other is not None]
        if len(factors) < len(self.programs):
            return None
        return Verdict(f"{geometric_mean(factors):.2f} x", geometric_mean(factors))


@dataclass(frozen=True)
class Within:
    """A program takes no longer than so many milliseconds."""

    program: str
    engine: str
    most: float

    @property
    def wanted(self) -> str:
        return f"<= {self.most:.3g} ms"

    def verdict(self, results: Results) -> Verdict | None:
        seconds = results.seconds(self.program, self.engine)
        return None if seconds is None else Verdict(
            f"{seconds * 1e3:.3g} ms", self.most * 1e-3 / seconds
        )  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """So many repetitions of a program a second."""

    program: str
    engine: str
    least: float

    @property
    def wanted(self) -> str:
        return f">= {self.least:g} a second"

    def verdict(self, results: Results) -> Verdict | None:
        seconds = results.seconds(self.program, self.engine)
        if seconds is None:
            return None
        return Verdict(f"{1 / seconds:.1f} a second", 1 / seconds / self.least)


def _targets() -> Iterator[Target]:
    for program, share in SHARES.items():
        yield Share(program, "page", share)
    for workload, factor in ADVANTAGES.items():
        program = f"{workload}/best"
        yield Faster(program, "page", PEERS, factor, workload)
        yield Faster(program, "page", ("numpy",), OVER_NUMPY, workload)
    for workload in LEVEL:
        yield Faster(f"{workload}/best", "page", (*PEERS, "tvm"), 1, workload)
    yield Faster("call/add", "page", ("tfjs",), 1, "add")
    yield Faster("mlp_model/best", "page", ("numpy",), 1, "mlp_model")
    for (program, engine), most in MILLISECONDS.items():
        yield Within(program, engine, most)
    yield Rate("search/matmul128", "search", TRIALS_A_SECOND)
    for program in rate.programs():
        yield Rate(program, rate.RATE, NATIVE_TRIALS_A_SECOND)
    for program, share in SHARES.items():
        yield Share(program, "native", NATIVE_PART * share)
    for program in HOST:
        yield Gain(program, "llvm", (program, "tvm-host"), HOST_OVER_TVM)
        yield Faster(program, "llvm", ("numpy-host",), 1, program.partition("/")[0])
    yield MeanGain(HOST, "llvm", "tvm-host")
    yield Within("build/schedule_mm", "llvm", 30)
    for program in strategies.programs():
        workload = program.partition("/")[0]
        yield Faster(program, "evolutionary", ("random",), 1, workload)
    yield Share(f"matmul128/{TUNED}", TUNED, NATIVE_PART * TUNED_SHARE)
    yield Share(f"matmul128/{COLD}", COLD, NATIVE_PART * COLD_SHARE)
    in_page = page_tuning.IN_PAGE
    yield Within(page_tuning.WALL, in_page, PAGE_SEARCH_MILLISECONDS)
    yield Share(page_tuning.TUNED, in_page, TUNED_SHARE)
    yield Share(page_tuning.COLD, in_page, COLD_SHARE)
    yield Gain(
        page_tuning.MODEL_TUNED, in_page, (page_tuning.MODEL_NUMPY, in_page), MODEL_OVER_NUMPY
    )
    for (workload, other), factor in TUNED_GAINS.items():
        yield Gain(f"{workload}/{TUNED}", TUNED, (f"{workload}/{other}", "native"), factor)


TARGETS: tuple[Target, ...] = tuple(_targets())
