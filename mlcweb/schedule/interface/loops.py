"""Transformations of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.schedule.instruction import ExprRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.base import ScheduleBase
from mlcweb.schedule.primitives import (
    annotation,
    loop_partition,
    loops,
)
from mlcweb.tir.arithmetic import constant_value

for _kind in (
    InstructionKind(
        "Split",
        "split",
        ("loop", "*factors"),
        ("preserve_unit_iters", "disable_predication"),
        booleans_as_integers=False,
    ),
    InstructionKind(
        "LoopPartition", "loop_partition", ("loop", "*factors"), ("preserve_unit_iters",)
    ),
    InstructionKind("Fuse", "fuse", ("*loops",), ("preserve_unit_iters",), positional=True),
    InstructionKind("Reorder", "reorder", ("*ordered_loops",), positional=True),
    InstructionKind("Parallel", "parallel", ("loop",)),
    InstructionKind("Vectorize", "vectorize", ("loop",)),
    InstructionKind("Unroll", "unroll", ("loop",)),
    InstructionKind("Bind", "bind", ("loop",), ("thread_axis",)),
):
    register_kind(_kind)


class LoopMethods(ScheduleBase):
    """Transformations of loops."""

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[ExprRV | int | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Split a loop into nested loops; one factor may be None. See `primitives.loops.split`."""
        given = [None if f is None else self._factor(f) for f in factors]
        variables = self._apply("split", lambda state: loops.split(
            state, self._loop(loop), given, preserve_unit_iters, disable_predication
        ))  # fmt: skip
        rvs = [self._new_loop(variable) for variable in variables]
        attrs = (bool(preserve_unit_iters), bool(disable_predication))
        self._record("Split", (loop, *(_recorded(f) for f in factors)), attrs, rvs)
        return rvs

    def loop_partition(
        self,
        loop: LoopRV,
        factors: Sequence[ExprRV | int | None],
        preserve_unit_iters: bool = True,
    ) -> list[LoopRV]:
        """Cut a loop into loops that run one after another. See `primitives.loop_partition`.

        Bindings stay as they are, so that `preserve_unit_iters` has nothing to change.
        """
        given = [None if f is None else self._factor(f) for f in factors]
        variables = self._apply("loop_partition", lambda state: loop_partition.loop_partition(
            state, self._loop(loop), given
        ))  # fmt: skip
        rvs = [self._new_loop(variable) for variable in variables]
        inputs = (loop, *(_recorded(f) for f in factors))
        self._record("LoopPartition", inputs, (bool(preserve_unit_iters),), rvs)
        return rvs

    def fuse(self, *loops_: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Fuse nested loops into one. See `primitives.loops.fuse`."""
        variable = self._apply("fuse", lambda state: loops.fuse(
            state, [self._loop(loop) for loop in loops_], preserve_unit_iters
        ))  # fmt: skip
        rv = self._new_loop(variable)
        self._record("Fuse", loops_, (bool(preserve_unit_iters),), (rv,))
        return rv

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put nested loops into a new order. See `primitives.loops.reorder`."""
        self._change("reorder", lambda state: loops.reorder(
            state, [self._loop(loop) for loop in ordered_loops]
        ))  # fmt: skip
        self._record("Reorder", ordered_loops)

    def parallel(self, loop: LoopRV) -> None:
        """Run a loop's iterations in parallel. See `primitives.annotation.parallel`."""
        self._change("parallel", lambda state: annotation.parallel(state, self._loop(loop)))
        self._record("Parallel", (loop,))

    def vectorize(self, loop: LoopRV) -> None:
        """Run a loop's iterations as vector lanes. See `primitives.annotation.vectorize`."""
        self._change("vectorize", lambda state: annotation.vectorize(state, self._loop(loop)))
        self._record("Vectorize", (loop,))

    def unroll(self, loop: LoopRV) -> None:
        """Repeat a loop's body in the code. See `primitives.annotation.unroll`."""
        self._change("unroll", lambda state: annotation.unroll(state, self._loop(loop)))
        self._record("Unroll", (loop,))

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Run a loop on a thread axis. See `primitives.annotation.bind`."""
        self._change("bind", lambda state: annotation.bind(state, self._loop(loop), thread_axis))
        self._record("Bind", (loop,), (thread_axis,))


def _recorded(factor: Any) -> Any:
    number = constant_value(factor) if factor is not None else None
    return factor if number is None else int(number)
