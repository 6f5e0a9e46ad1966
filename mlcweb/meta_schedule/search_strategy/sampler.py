"""From traces to schedules that can be measured: replayed, post-processed, new."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.tir.schedule import Schedule, ScheduleError, Trace
from mlcweb.tir.schedule.replay_memory import ReplayMemory


class PostprocLike(Protocol):
    """Changes a schedule after its decisions, or refuses it by False."""

    def apply(self, sch: Schedule) -> bool: ...


class Sampler:
    """Replays traces onto a program.

    Args:
        postprocs: run after the steps of each trace.
        rng: where the seeds of schedules come from.
    """

    def __init__(
        self, mod: IRModule, postprocs: Iterable[PostprocLike], rng: random.Random
    ) -> None:
        self.mod = mod
        self.postprocs = tuple(postprocs)
        self.rng = rng
        self._memory = ReplayMemory()

    def fresh(self, design_spaces: Sequence[Trace]) -> Schedule | None:
        """A schedule of one of the spaces whose steps all decide anew; None where that fails."""
        return self.replay(self.rng.choice(design_spaces), decide=lambda *_: None)

    def replay(self, trace: Trace, decide: Any = None) -> Schedule | None:
        """A schedule with the steps and decisions of a trace, and post-processed; None where they
        do not fit, or where a post-processor refuses.

        Args:
            decide: a decision provider, as `Trace.apply_to_schedule` takes it.
        """
        sch = self.blank()
        try:
            trace.apply_to_schedule(
                sch, remove_postproc=True, decision_provider=decide, memory=self._memory
            )
            return self.finished(sch)
        except (ScheduleError, TVMError, ValueError):
            return None

    def blank(self) -> Schedule:
        """A schedule without steps, with a seed of its own."""
        return Schedule(self.mod, seed=self.rng.randrange(1, 2**31 - 1), error_render_level="none")

    def finished(self, sch: Schedule) -> Schedule | None:
        """The schedule post-processed; None where a post-processor refuses."""
        sch.enter_postproc()
        return sch if all(postproc.apply(sch) for postproc in self.postprocs) else None


class Seen:
    """The programs that were tried, by hash: thousands of them take little room."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, module: IRModule) -> bool:
        """Note a program; whether it is new."""
        shash = structural_hash(module)
        new = shash not in self._hashes
        self._hashes.add(shash)
        return new

    def update(self, hashes: Iterable[int]) -> None:
        """Note programs by their structural hashes."""
        self._hashes.update(hashes)

    def __contains__(self, module: IRModule) -> bool:
        return structural_hash(module) in self._hashes
