"""Instruments: who hears of passes while they run.

    with tvm.transform.PassContext(instruments=[PrintAfterAll()]):
        mod = relax.transform.LegalizeOps()(mod)

An instrument has any of the methods `enter_pass_ctx()`, `exit_pass_ctx()`,
`should_run(mod, info) -> bool`, `run_before_pass(mod, info)` and `run_after_pass(mod, info)`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassInfo

Class = TypeVar("Class", bound=type)

METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class PassInstrument:
    """Base of instruments; each method may be left out."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Class decorator that makes an instrument of a class with any of the methods."""

    def make(cls: Class) -> Class:
        if not any(hasattr(cls, method) for method in METHODS):
            raise TVMError(
                f"The instrument {cls.__name__} hears of nothing: it needs one of the methods "
                f"{', '.join(METHODS)}"
            )
        return cls

    return make if pi_cls is None else make(pi_cls)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"Before Running Pass: {info}")
        print(mod)


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"After Running Pass: {info}")
        print(mod)


class DumpIR(PassInstrument):
    """Writes the module after each pass into a folder, as `000_PassName.py` and so on.

    `refresh` empties the folder first, unless it has files of others.
    """

    def __init__(self, dump_dir: str | Path, refresh: bool = False) -> None:
        self.dump_dir = Path(dump_dir)
        self.counter = 0
        if refresh and self.dump_dir.is_dir():
            self._empty()

    def _empty(self) -> None:
        files = list(self.dump_dir.iterdir())
        if not all(file.is_file() and re.fullmatch(r"\d{3}_.*\.py", file.name) for file in files):
            print(f"WARNING: {self.dump_dir} has other files than those of passes; it is kept")
            return
        for file in files:
            file.unlink()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        name = re.sub(r'[<>:"/\\|?*]', "_", info.name)
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        (self.dump_dir / f"{self.counter:03d}_{name}.py").write_text(mod.script())
        self.counter += 1


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names."""

    def __init__(
        self,
        print_before_pass_names: Collection[str] = (),
        print_after_pass_names: Collection[str] = (),
    ) -> None:
        self.before = print_before_pass_names
        self.after = print_after_pass_names

    def run_before_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        if pass_info.name in self.before:
            PrintBeforeAll().run_before_pass(mod, pass_info)

    def run_after_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        if pass_info.name in self.after:
            PrintAfterAll().run_after_pass(mod, pass_info)


@dataclass(slots=True)
class RunOfPass:
    """One run of a pass: the module before and after, seconds, and the passes that it ran."""

    name: str
    before: IRModule
    after: IRModule | None = None
    seconds: float = 0.0
    inside: list[RunOfPass] = field(default_factory=list)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, RunOfPass]]:
        """The run and those inside of it, with how deep they are."""
        yield depth, self
        for run in self.inside:
            yield from run.walk(depth + 1)


class PassRecorder(PassInstrument):
    """Keeps what every pass did: `runs` are those of the outermost passes, in order."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.runs: list[RunOfPass] = []
        self._clock = clock
        self._open: list[RunOfPass] = []
        self._starts: list[float] = []

    def enter_pass_ctx(self) -> None:
        self.runs, self._open, self._starts = [], [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        run = RunOfPass(info.name, mod.copy())
        (self._open[-1].inside if self._open else self.runs).append(run)
        self._open.append(run)
        self._starts.append(self._clock())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        run = self._open.pop()
        run.seconds = self._clock() - self._starts.pop()
        run.after = mod.copy()


class PassTimingInstrument(PassRecorder):
    """Measures how long passes take. `render()` gives the table, before the context is left."""

    def exit_pass_ctx(self) -> None:
        self.enter_pass_ctx()

    def render(self) -> str:
        """A line per run: microseconds with and without the passes inside of it, and its share of
        all the time."""
        whole = sum(run.seconds for run in self.runs)
        lines = []
        for depth, run in (entry for outer in self.runs for entry in outer.walk()):
            own = run.seconds - sum(inner.seconds for inner in run.inside)
            share = run.seconds / whole if whole else 0.0
            lines.append(
                f"{'  ' * depth}{run.name}: {run.seconds * 1e6:.0f}us "
                f"[{own * 1e6:.0f}us] ({share:.2%})"
            )
        return "\n".join(lines) + "\n" if lines else ""
