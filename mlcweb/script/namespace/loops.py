"""Loops of TVMScript: `T.serial`, `T.grid`, `T.parallel`, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Range


def _loops(kind: S.ForKind) -> Callable[..., constructs.Loops]:
    def build(
        start: Any,
        stop: Any = None,
        *,
        annotations: Mapping[str, Any] | None = None,
        step: Any = 1,
    ) -> constructs.Loops:
        domain, stride = _stepping(loop_range(start, stop), step)
        loop_annotations = mapping(annotations or {}, "annotations")
        return constructs.Loops((domain,), kind, annotations=loop_annotations, step=stride)

    return build


serial = _loops(S.ForKind.SERIAL)
parallel = _loops(S.ForKind.PARALLEL)
vectorized = _loops(S.ForKind.VECTORIZED)
unroll = _loops(S.ForKind.UNROLLED)


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> constructs.Loops:
    """A loop whose iterations are the threads of an axis such as "threadIdx.x"."""
    if isinstance(stop, str):
        stop, thread = None, stop
    if thread is None:
        raise DiagnosticError('T.thread_binding needs the axis: T.thread_binding(4, "threadIdx.x")')
    domain = loop_range(start, stop)
    kind = S.ForKind.THREAD_BINDING
    return constructs.Loops((domain,), kind, thread, mapping(annotations or {}, "annotations"))


def grid(*extents: Any) -> constructs.Loops:
    """A nest of loops from 0 to each extent."""
    return constructs.Loops(tuple(loop_range(extent, None) for extent in extents))


def python_range(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> constructs.Loops:
    """Python's `range` as a plain loop, which may be annotated."""
    return serial(start, stop, annotations=annotations, step=step)


def _stepping(domain: Range, step: Any) -> tuple[Range, int]:
    """A range with the number of values that are `step` apart as its extent."""
    stride = arithmetic.convert(step)
    if not isinstance(stride, E.IntImm) or stride.value == 0:
        raise DiagnosticError(
            "The step of a loop is a constant: write `for i in range(n)` and use `i * step`"
        )
    size = stride.value
    if size == 1:
        return domain, 1
    length = domain.extent if size > 0 else arithmetic.negate(domain.extent)
    count = arithmetic.floordiv(arithmetic.add(length, abs(size) - 1), abs(size))
    return Range(domain.min, count), size


def loop_range(begin: Any, end: Any = None) -> Range:
    """The range from `begin` to `end`, or from 0 to `begin`."""
    if end is None:
        extent = _integer(begin, "the number of iterations of a loop")
        return Range(arithmetic.const(0, extent.dtype), extent)
    low, high = arithmetic.match_types(_integer(begin, "a loop's start"), end)
    return Range(low, length_of(low, _integer(high, "a loop's end")))


def length_of(start: E.PrimExpr, stop: E.PrimExpr) -> E.PrimExpr:
    """stop - start; of `start, start + n` and `0, n`, as loops and regions print, exactly n."""
    if isinstance(stop, E.Add) and same_expression(stop.a, start):
        return stop.b
    if arithmetic.is_const_int(start, 0):
        return stop
    length = arithmetic.subtract(stop, start)
    return length if isinstance(length, E.IntImm) else Analyzer().simplify(length)


def _integer(value: Any, what: str) -> E.PrimExpr:
    value = arithmetic.convert(value)
    if not value.dtype.startswith(("int", "uint")):
        raise DiagnosticError(f"An integer is needed for {what}, not {value.dtype}")
    return value


def mapping(values: Any, what: str) -> Mapping[str, Any]:
    """`values`, which must be a dictionary."""
    if not isinstance(values, Mapping):
        raise DiagnosticError(f'{what} takes a dictionary such as {{"key": 1}}, not {values!r}')
    return values
