"""How long each call takes that a function makes: `vm.profile("main", x)`.

Every kernel and every registered function is timed by itself. One call can be shorter than a step
of the clock; over many calls the steps even out, since they fall at random. So pure functions are
run until the clock has made many steps, and means are reported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlcweb.relax_vm import instructions as vm
from mlcweb.runtime import host
from mlcweb.runtime.benchmark import STEPS_PER_BATCH
from mlcweb.runtime.ndarray import NDArray

if TYPE_CHECKING:
    from mlcweb.relax_vm.frame import Steps
    from mlcweb.relax_vm.virtual_machine import VirtualMachine

MIN_BATCH_S = 2e-3
"""Seconds that a profile of a pure function lasts at least."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Calls of one function with the same shapes: how many there are in a run, and the seconds that
    they take together."""

    name: str
    shapes: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """Where the time of a function goes. `total` are the seconds of a run as a whole, which has
    more to do than calls; `runs` is how many were averaged."""

    records: tuple[CallRecord, ...]
    total: float
    runs: int
    device: str
    configuration: dict[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> list[dict[str, str | int | float]]:
        """A row for each function and shape."""
        return [
            {
                "Name": record.name,
                "Duration (us)": record.seconds * 1e6,
                "Percent": self._percent(record.seconds),
                "Device": self.device,
                "Count": record.count,
                "Argument Shapes": record.shapes,
            }
            for record in self.records
        ]

    @property
    def device_metrics(self) -> dict[str, dict[str, str | int | float]]:
        """The run as a whole."""
        return {
            self.device: {
                "Duration (us)": self.total * 1e6, "Percent": 100.0, "Device": self.device,
            }
        }  # fmt: skip

    def _percent(self, seconds: float) -> float:
        return 100 * seconds / self.total if self.total else 0.0

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """Rows of name, duration, percentage, device, count and argument shapes; the longest
        first."""
        records = sorted(self.records, key=lambda r: -r.seconds) if sort else list(self.records)
        rows: list[tuple[str, ...]] = [_COLUMNS]
        for record in records:
            rows.append(self._row(record.name, record.seconds, record.count, record.shapes))
        if col_sums:
            seconds = sum(record.seconds for record in records)
            rows.append(("----------", "", "", "", "", ""))
            rows.append(self._row("Sum", seconds, sum(r.count for r in records), "", ""))
            rows.append(self._row("Total", self.total, 1, ""))
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        return "\n".join(
            "  ".join(_aligned(column, text, widths[column]) for column, text in enumerate(row))
            for row in rows
        )

    def _row(
        self, name: str, seconds: float, count: int, shapes: str, device: str | None = None
    ) -> tuple[str, ...]:
        where = self.device if device is None else device
        return (
            name,
            f"{seconds * 1e6:.2f}",
            f"{self._percent(seconds):.2f}",
            where,
            str(count),
            shapes,
        )

    def csv(self) -> str:
        """The rows as comma-separated values, with a head."""
        lines = [",".join(_COLUMNS)]
        for row in self.calls:
            lines.append(",".join(_quoted(str(row[column])) for column in _COLUMNS))
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """The rows, the run as a whole, and the configuration."""
        return json.dumps(
            {
                "calls": self.calls,
                "device_metrics": self.device_metrics,
                "configuration": self.configuration,
            }
        )

    def __str__(self) -> str:
        lines = [self.table(), "", "Configuration", "-------------"]
        lines += [f"{key}: {value}" for key, value in self.configuration.items()]
        return "\n".join(lines)


_COLUMNS = ("Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes")


def _aligned(column: int, text: str, width: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text


class _Observer:
    """Runs steps with a clock around those that call something."""

    def __init__(self) -> None:
        self._timed: dict[int, _Timed] = {}

    def run(self, steps: Steps) -> None:
        timed = self._timed.get(id(steps))
        if timed is None:
            timed = self._timed[id(steps)] = _Timed(steps)
        clock, seconds = host.clock_source(), timed.seconds
        position = 0
        try:
            for position, (step, calls) in enumerate(timed.steps):
                if calls:
                    timed.note(position)
                    start = clock()
                    step()
                    seconds[position] += clock() - start
                else:
                    step()
        except Exception as error:
            steps.fail(error, position)
        timed.runs += 1

    def records(self, runs: int) -> tuple[CallRecord, ...]:
        """What was seen in so many runs, per run."""
        seconds: dict[tuple[str, str], float] = {}
        count: dict[tuple[str, str], int] = {}
        for timed in self._timed.values():
            for position, key in timed.keys.items():
                seconds[key] = seconds.get(key, 0.0) + timed.seconds[position]
                count[key] = count.get(key, 0) + timed.runs
        return tuple(
            CallRecord(name, shapes, round(count[name, shapes] / runs), total / runs)
            for (name, shapes), total in seconds.items()
        )


class _Timed:
    """Steps that are timed, and the seconds of each. `keys` are names and shapes of calls."""

    def __init__(self, steps: Steps) -> None:
        self.of = steps
        self.steps = [
            (step, isinstance(instruction, (vm.CallKernel, vm.CallPacked)))
            for step, instruction in zip(steps.steps, steps.instructions, strict=True)
        ]
        self.seconds = [0.0] * len(self.steps)
        self.keys: dict[int, tuple[str, str]] = {}
        self.runs = 0

    def note(self, position: int) -> None:
        """Remember what a call is called with."""
        if position in self.keys:
            return
        instruction = self.of.instructions[position]
        assert isinstance(instruction, (vm.CallKernel, vm.CallPacked))
        is_kernel = isinstance(instruction, vm.CallKernel)
        name = instruction.kernel if is_kernel else instruction.name
        registers = self.of.frame.registers
        shapes = ", ".join(_shape_text(registers[register]) for register in instruction.args)
        self.keys[position] = (name, shapes)


def _shape_text(value: object) -> str:
    if isinstance(value, NDArray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return repr(value) if isinstance(value, (int, float, str)) else type(value).__name__


def profile(machine: VirtualMachine, name: str, arguments: Sequence[object]) -> Report:
    """The report of `machine[name](*arguments)`."""
    function = machine[name]
    plan = machine.executable.plans.get(name)
    repeats = plan is not None and plan.is_pure
    if repeats:
        function(*arguments)
    clock, shortest = host.clock_source(), max(MIN_BATCH_S, STEPS_PER_BATCH * host.clock_step())
    observer = _Observer()
    before, machine.observer = machine.observer, observer
    total, runs = 0.0, 0
    try:
        while runs == 0 or (repeats and total < shortest):
            start = clock()
            function(*arguments)
            total += clock() - start
            runs += 1
    finally:
        machine.observer = before
    configuration = {
        "Executor": "VM",
        "Target": machine.executable.library.target if machine.executable.library else "none",
        "Number of threads": "1",
        "Runs averaged": str(runs),
    }
    # As profilers of TVM write it.
    where = f"{machine.device.type}{machine.device.index}"
    return Report(observer.records(runs), total / runs, runs, where, configuration)
