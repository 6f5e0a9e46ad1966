"""Two traces side by side: which steps are the same, and how the programs differ in the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.ir import structural_equal
from mlcweb.playground.aligned import aligned
from mlcweb.playground.protocol.trace import Changes, TraceComparison
from mlcweb.playground.trace_replay import Replay
from mlcweb.playground.trace_view import marked_diff, replayed
from mlcweb.schedule.instruction import BlockRV, Instruction, LoopRV
from mlcweb.tir.expr import Var


def compare(
    first: str, first_changes: Changes, second: str, second_changes: Changes
) -> TraceComparison:
    """Align the steps of two traces, and compare the programs that they arrive at."""
    left, right = replayed(first, first_changes), replayed(second, second_changes)
    numbers: dict[Any, int] = {}
    keys = _keys(left, numbers), _keys(right, numbers)
    # Step 0, the program before any, is beside step 0.
    rows = [(None if i is None else i + 1, None if j is None else j + 1) for i, j in aligned(*keys)]
    rows.insert(0, (0, 0))
    decided = [n for n, row in enumerate(rows) if _decides_otherwise(left, right, row)]
    before, after = left.modules[-1], right.modules[-1]
    diff = marked_diff(before.script().rstrip("\n"), after.script().rstrip("\n"))
    return TraceComparison(rows, decided, structural_equal(before, after), diff)


def _decides_otherwise(left: Replay, right: Replay, row: tuple[int | None, int | None]) -> bool:
    one, other = row
    if not one or not other:
        return False
    steps = left.steps[one - 1], right.steps[other - 1]
    return steps[0].decision != steps[1].decision or _literals(steps[0].instruction) != _literals(
        steps[1].instruction
    )


def _keys(done: Replay, numbers: dict[Any, int]) -> list[int]:
    """What makes steps the same, as a number: the method, where its random variables come from, and
    its other arguments, but not what is decided. `numbers` are those of the steps met so far."""
    producers: dict[Any, tuple[int, int]] = {}
    keys = []
    for step in done.steps:
        inst, method = step.instruction, step.instruction.kind.method
        # How a loop is split, by numbers or by what a step drew, is a decision.
        inputs = tuple(_key(value, producers) for value in inst.inputs[: _UNDECIDED.get(method)])
        attrs = () if inst.kind.sampling else tuple(repr(value) for value in inst.attrs)
        key = numbers.setdefault((method, len(inst.inputs), inputs, attrs), len(numbers))
        keys.append(key)
        producers.update((output, (key, n)) for n, output in enumerate(inst.outputs))
    return keys


_UNDECIDED = {"split": 1}
"""How many inputs of a method are no decision; all of them elsewhere."""


def _key(value: Any, producers: Mapping[Any, Any]) -> Any:
    if isinstance(value, BlockRV | LoopRV | Var):
        return producers.get(value)
    if isinstance(value, list | tuple):
        return tuple(_key(item, producers) for item in value)
    return None  # a literal: what differs is shown as a decision


def _literals(inst: Instruction) -> list[str]:
    return [repr(v) for v in inst.inputs if not isinstance(v, BlockRV | LoopRV | Var)]
