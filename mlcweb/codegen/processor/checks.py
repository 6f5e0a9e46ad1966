"""Checked code: accesses outside of their buffers, and assertions, stop the kernel with a report.

Before buffers become flat, every index that is not known to be inside its dimension is wrapped in a
call of `tir.checked_index`. Selected code leaves the number of the check and the index at fault in
two globals before it traps, from which the host makes the message.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.codegen.errors import IndexOutOfBounds, assertion_failed
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.op import register_op
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.rewriter import bind_ranges
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, match_types
from mlcweb.tir.function import PrimFunc

CHECKED_INDEX = register_op("tir.checked_index")
"""`checked_index(index, extent, check)` is the index, if 0 <= index < extent."""

FAULT_CHECK, FAULT_INDEX = "fault_check", "fault_index"
"""Globals: the number of the check that failed, from 1 on, and the index at fault."""


@dataclass(frozen=True, slots=True)
class Check:
    """What is checked somewhere: an axis of a buffer, or, if `message` is set, an assertion."""

    action: str = ""
    buffer: str = ""
    axis: int = 0
    extent: str = ""
    message: str = ""
    span: Span | None = None
    error_kind: str = "RuntimeError"

    def error(self, index: int) -> TVMError:
        """What went wrong."""
        if self.message:
            return assertion_failed(self.error_kind, self.message, self.span)
        return IndexOutOfBounds(
            f'{self.action} "{self.buffer}" out of bounds: index {index} of axis {self.axis}, '
            f"which has extent {self.extent}",
            self.span,
        )


def check_accesses(func: PrimFunc, checks: list[Check]) -> PrimFunc:
    """The function, without blocks, with checked indices; `checks` receives what they check."""
    return func.with_body(_Checking(func, checks).rewrite(func.body))


class _Checking(Mutator):
    def __init__(self, func: PrimFunc, checks: list[Check]) -> None:
        self.checks = checks
        self.indices = Indices()
        bind_ranges(func, self.indices)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, access: E.BufferLoad | S.BufferStore) -> E.BufferLoad | S.BufferStore:
        new = self.rewrite_children(access)
        checked = tuple(self.checked(new, axis) for axis in range(len(new.indices)))
        return replace(new, indices=checked)

    def checked(self, access: E.BufferLoad | S.BufferStore, axis: int) -> E.PrimExpr:
        index, extent = access.indices[axis], access.buffer.shape[axis]
        if isinstance(index, E.Ramp):
            return self.checked_ramp(access, axis, index)
        if dtypes.lanes(index.dtype) > 1:
            return index
        low, high = self.indices.interval(index)
        if isinstance(extent, E.IntImm) and 0 <= low and high < extent.value:
            return index
        return self.check(access, axis, index, extent)

    def checked_ramp(
        self, access: E.BufferLoad | S.BufferStore, axis: int, ramp: E.Ramp
    ) -> E.PrimExpr:
        """A ramp whose first element is checked to be so far inside that its last one is, too."""
        if not (isinstance(ramp.stride, E.IntImm) and ramp.stride.value >= 0):
            return ramp
        reach = ramp.stride.value * (ramp.lanes - 1)
        extent = access.buffer.shape[axis]
        low, high = self.indices.interval(ramp.base)
        if isinstance(extent, E.IntImm) and 0 <= low and high + reach < extent.value:
            return ramp
        room = E.Max(extent - reach, const(0, extent.dtype))
        return replace(ramp, base=self.check(access, axis, ramp.base, room))

    def check(
        self,
        access: E.BufferLoad | S.BufferStore,
        axis: int,
        index: E.PrimExpr,
        extent: E.PrimExpr,
    ) -> E.PrimExpr:
        """An index, checked to be less than `extent` while running."""
        action = "Writing" if isinstance(access, S.BufferStore) else "Reading"
        shown = str(access.buffer.shape[axis])
        self.checks.append(Check(action, access.buffer.name, axis, shown, span=access.span))
        number = E.IntImm("int32", len(self.checks))
        index, extent = match_types(index, extent)
        return E.Call(index.dtype, CHECKED_INDEX, (index, extent, number))
