"""Every program of a small space, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.strategy.decisions import choices
from mlcweb.meta_schedule.strategy.search_strategy import MeasureCandidate, SearchStrategy, peeked
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace


class Exhaustive(SearchStrategy):
    """Tries all combinations of decisions, each program once, until all are tried."""

    def pre_tuning(self, *args: Any, **kwargs: Any) -> None:
        super().pre_tuning(*args, **kwargs)
        self._rest = self._new_programs()

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(islice(self._rest, self.room()))

    def _new_programs(self) -> Iterator[MeasureCandidate]:
        for trace in self.design_spaces:
            for sch in self._all(trace):
                finished = self.sampler.finished(sch)
                if finished is None:
                    continue
                shash = structural_hash(finished.mod)
                if self.seen.add(shash):
                    yield self.candidate(finished, shash)

    def _all(self, trace: Trace) -> Iterator[Schedule]:
        """The trace with all combinations of decisions, counted up like the digits of a number:
        what a step may decide can depend on the decisions before it."""
        path: list[int] = []
        while True:
            sch = self.sampler.blank()
            widths: list[int] = []

            def decide(
                inst: Instruction,
                inputs: Sequence[Any],
                attrs: Sequence[Any],
                decision: Any,
                sch: Schedule = sch,
                widths: list[int] = widths,
            ) -> Any:
                options = choices(sch, inst, inputs)
                widths.append(len(options))
                if len(path) < len(widths):
                    path.append(0)
                return options[path[len(widths) - 1]]

            try:
                trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=decide)
                yield sch
            except ScheduleError:
                pass
            while path and path[-1] + 1 >= widths[len(path) - 1]:
                path.pop()
            if not path:
                return
            path[-1] += 1
