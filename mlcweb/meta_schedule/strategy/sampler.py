"""From traces to schedules that can be measured: replayed, post-processed, new."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Protocol

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.space.postprocs import Condition, Postproc
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.replay_cache import ReplayCache
from mlcweb.schedule.sampling import RandomState, draw_perfect_tile
from mlcweb.tir.arithmetic import constant_value

MAX_DRAWS = 256
"""So often the steps of a condition are drawn until it holds."""


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
        self._memory = ReplayCache()

    def fresh(self, design_spaces: Sequence[Trace]) -> Schedule | None:
        """A schedule of one of the spaces whose steps all decide anew; None where that fails."""
        space = self.rng.choice(design_spaces)
        drawn: dict[Instruction, Any] = {}
        for condition in self._conditions(space):
            drawn |= self._drawn(space, condition)
        return self.replay(Trace(space.insts, drawn))

    def may_pass(self, trace: Trace) -> bool:
        """False where the decisions of a trace alone show that a post-processor would refuse it."""
        return all(condition.holds(trace.decisions) for condition in self._conditions(trace))

    def _conditions(self, trace: Trace) -> list[Condition]:
        checks = [postproc for postproc in self.postprocs if isinstance(postproc, Postproc)]
        return [condition for check in checks for condition in check.conditions(trace)]

    def _drawn(self, space: Trace, condition: Condition) -> dict[Instruction, Any]:
        """Decisions for which a condition holds, each as likely as where all are drawn and some are
        refused; none where they are hard to find."""
        extents = [prod(space.get_decision(inst) or (0,)) for inst in condition.steps]
        if any(extent < 1 for extent in extents):
            return {}
        random_state = RandomState(self._seed())
        for _ in range(MAX_DRAWS):
            drawn = {
                inst: draw_perfect_tile(random_state, extent, *_limits(inst))
                for inst, extent in zip(condition.steps, extents, strict=True)
            }
            if condition.holds(drawn):
                return drawn
        return {}

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
        return Schedule(self.mod, seed=self._seed(), error_render_level="none")

    def _seed(self) -> int:
        return self.rng.randrange(1, 2**31 - 1)

    def finished(self, sch: Schedule) -> Schedule | None:
        """The schedule post-processed; None where a post-processor refuses."""
        sch.enter_postproc()
        return sch if all(postproc.apply(sch) for postproc in self.postprocs) else None


def _limits(inst: Instruction) -> tuple[int, int]:
    """How many factors a tiling has, and the limit of the innermost; -1 is none."""
    n, limit = (int(constant_value(value) or 0) for value in inst.attrs)
    return n, limit


class Seen:
    """The programs that were tried, by structural hash: thousands of them take little room."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, shash: int) -> bool:
        """Note a program; whether it is new."""
        new = shash not in self._hashes
        self._hashes.add(shash)
        return new

    def update(self, hashes: Iterable[int]) -> None:
        """Note several programs."""
        self._hashes.update(hashes)

    def __contains__(self, shash: int) -> bool:
        return shash in self._hashes
