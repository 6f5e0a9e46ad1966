"""What passes have in common by which threads exchange values in steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.thread_sync import barrier
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer


class ThreadExchange(Mutator):
    """Knows the loops over thread axes around a statement by their tags. `warp` neighbours can read
    each other's registers; with `barriers` threads wait for each other after each step."""

    def __init__(self, barriers: bool, warp: int) -> None:
        self.barriers = barriers
        self.warp = warp
        self.axes: dict[str, S.For] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        around, self.axes = self.axes, {**self.axes, loop.thread_binding.thread_tag: loop}
        new = self.rewrite_children(loop)
        self.axes = around
        return new

    def in_steps(self, steps: Sequence[S.Stmt], memory: Iterable[Buffer] = ()) -> S.Stmt:
        """Steps one after another, and around them the memory that they need."""
        if self.barriers:
            steps = [part for step in steps for part in (step, barrier())]
        whole = S.sequence(*steps)
        for buffer in memory:
            whole = S.AllocBuffer(buffer, whole)
        return whole
