"""What replays have gone through, so that one that begins like another need not do it again.

A search replays the same few traces thousands of times with other decisions. Up to the first step
that differs the program is the same: states are immutable, so that they can be taken over. A search
over the product of 128 x 128 proposes a program in 20 ms with this, and in 26 ms without
(`benchmarks/tuning/ablation.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.schedule.instruction import InstructionKind
from mlcweb.tir.expr import FloatImm, IntImm, PrimExpr, Var

if TYPE_CHECKING:
    from mlcweb.schedule.base import ScheduleBase, Step

MAX_STEPS = 4096


class TrieRoot:
    """Where a fresh schedule stands, and the points that replays have come to from there."""

    __slots__ = ("following",)

    def __init__(self) -> None:
        self.following: dict[Any, TrieNode] = {}


class TrieNode(TrieRoot):
    """A point that replays have come to, by a step."""

    __slots__ = ("step",)

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


class ReplayCache:
    """The steps of replays onto fresh schedules of one program.

    Args:
        max_steps: so many are kept; with more, the memory starts anew.
    """

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self.max_steps = max_steps
        self.steps = 0
        self._start = TrieRoot()

    def start(self) -> TrieRoot:
        """Where a fresh schedule stands."""
        if self.steps > self.max_steps:
            self._start, self.steps = TrieRoot(), 0
        return self._start

    def replay(
        self,
        sch: ScheduleBase,
        point: TrieRoot | None,
        kind: InstructionKind,
        inputs: Sequence[Any],
        attrs: Sequence[Any],
        decision: Any,
    ) -> tuple[tuple[Any, ...], TrieNode | None]:
        """Carry out an instruction as `Schedule.replay` does, or take over what it did before.

        Returns:
            The outputs, and where the schedule stands now; None where that is not remembered.
        """
        if point is None:
            return sch.replay(kind, inputs, attrs, decision), None
        try:
            what = (kind.name, _frozen(inputs), _frozen(attrs))
        except TypeError:
            return sch.replay(kind, inputs, attrs, decision), None
        key = (*what, _frozen(decision))
        node = point.following.get(key)
        if node is not None:
            return sch.take_over(node.step), node
        outputs, step = sch.replay_step(kind, inputs, attrs, decision)
        if step is None:
            return outputs, None
        # A decision that was drawn, or mended, may be known.
        actual_key = (*what, _frozen(step.decision))
        node = point.following.get(actual_key)
        if node is None:
            node = point.following[actual_key] = TrieNode(step)
            self.steps += 1
        else:
            sch.take_back(step)
            outputs = sch.take_over(node.step)
        if decision is not None and key != actual_key:
            point.following[key] = node
            self.steps += 1
        return outputs, node


def _frozen(value: Any) -> Any:
    """A hashable value that stands for an input, an attribute or a decision. Random variables are
    themselves; TypeError for what has no such value."""
    if isinstance(value, (list, tuple)):
        return tuple([_frozen(item) for item in value])
    if isinstance(value, (bool, float)):
        return type(value), value
    if isinstance(value, (IntImm, FloatImm)):
        return type(value), value.dtype, value.value
    if isinstance(value, PrimExpr) and not isinstance(value, Var):
        raise TypeError(f"{value!r} is told apart from equal expressions")
    hash(value)
    return value
