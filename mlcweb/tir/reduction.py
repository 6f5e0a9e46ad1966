"""Reductions: axes to reduce over, commutative reducers, and the expressions that they build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.array import ArrayOf
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node, attribute, definition, node, replace
from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import IterType, IterVar


@node
class CommReducer(Node):
    """A commutative and associative combination of `lhs` and `rhs` into `result`.

    Combining with `identity_element` changes nothing. Several values may be reduced together
    (argmax: a position and a value); all tuples have one item per value.
    """

    lhs: ArrayOf[Var] = definition()
    rhs: ArrayOf[Var] = definition()
    result: ArrayOf[PrimExpr]
    identity_element: ArrayOf[PrimExpr]


@node
class Reduce(PrimExpr):
    """`source` combined over `axis` where `condition` holds, from `init` on (the identity element
    where it is empty). `value_index` says which of the values this expression is."""

    combiner: CommReducer
    source: ArrayOf[PrimExpr]
    init: ArrayOf[PrimExpr]
    axis: ArrayOf[IterVar]
    condition: PrimExpr
    value_index: int = attribute(default=0)

    @property
    def dtype(self) -> str:
        return self.source[self.value_index].dtype

    def __repr__(self) -> str:
        axes = ", ".join(axis.var.name for axis in self.axis)
        source = ", ".join(map(repr, self.source))
        return f"reduce({source}, axis=[{axes}])"


def reduce_axis(
    dom: Range | Sequence[Any], name: str = "rv", thread_tag: str = "", span: Any = None
) -> IterVar:
    """An axis to reduce over.

    Args:
        dom: the range, or (begin, end).
    """
    if not isinstance(dom, Range):
        if len(dom) != 2:
            raise DiagnosticError(f"A reduction axis goes from begin to end: (0, n), not {dom!r}")
        begin, end = arithmetic.match_types(*dom)
        dom = Range(begin, arithmetic.subtract(end, begin))
    var = Var(name, dom.extent.dtype)
    return IterVar(dom, var, IterType.COMM_REDUCE, thread_tag)


def thread_axis(
    dom: Range | Sequence[Any] | str | None = None, tag: str = "", name: str = "", span: Any = None
) -> IterVar:
    """An axis of threads.

    Args:
        dom: the range, or (begin, end), where it is known.
        tag: the axis, such as "threadIdx.x"; may be given first.

    Raises:
        ValueError: `tag` is not given.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError('A thread axis needs a tag, such as thread_axis("threadIdx.x")')
    if dom is not None and not isinstance(dom, Range):
        begin, end = arithmetic.match_types(*dom)
        dom = Range(begin, arithmetic.subtract(end, begin))
    dtype = dom.extent.dtype if isinstance(dom, Range) else "int32"
    return IterVar(dom, Var(name or tag, dtype), IterType.THREAD_INDEX, tag, span=span)


Reducer = Callable[..., Any]


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Reducer:
    """A reducer of one value or of a tuple of values.

    Args:
        fcombine: (x, y) -> their combination; for several values x, y and the result are tuples.
        fidentity: dtype(s) -> identity element(s).

    Returns: a function `reducer(expr, axis, where=None, init=None)`; for a tuple of expressions it
        returns one `Reduce` per value. `reducer(a, b, …)` on values combines them directly.
    """

    def reduce(expr: Any, axis: Any, where: Any = None, init: Any = None, *more: Any) -> Any:
        if not _is_axis(axis):
            operands = [x for x in (expr, axis, where, init, *more) if x is not None]
            combined = operands[0]
            for operand in operands[1:]:
                combined = fcombine(combined, operand)
            return combined
        axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
        several = isinstance(expr, (tuple, list))
        sources = tuple(arithmetic.convert(x) for x in (expr if several else (expr,)))
        reduction = Reduce(
            _combiner(fcombine, fidentity, sources, several),
            sources,
            _initial_values(init, sources, several),
            axes,
            arithmetic.cast("bool", True if where is None else where),
        )
        if not several:
            return reduction
        return tuple(replace(reduction, value_index=index) for index in range(len(sources)))

    reduce.__name__ = name
    reduce.__doc__ = f"`{name}` over reduction axes: {name}(expr, axis, where=None, init=None)."
    return reduce


def _is_axis(axis: Any) -> bool:
    if isinstance(axis, (list, tuple)):
        return bool(axis) and all(isinstance(item, IterVar) for item in axis)
    return isinstance(axis, IterVar)


def _combiner(
    fcombine: Callable[..., Any],
    fidentity: Callable[..., Any],
    sources: tuple[PrimExpr, ...],
    several: bool,
) -> CommReducer:
    if not several:
        dtype = sources[0].dtype
        lhs, rhs = (Var(name, dtype) for name in _parameter_names(fcombine))
        result, identity = (fcombine(lhs, rhs),), (fidentity(dtype),)
        return CommReducer((lhs,), (rhs,), _typed(result, sources), _typed(identity, sources))
    x, y = _parameter_names(fcombine)
    left = tuple(Var(f"{x}_{i}", value.dtype) for i, value in enumerate(sources))
    right = tuple(Var(f"{y}_{i}", value.dtype) for i, value in enumerate(sources))
    result = tuple(fcombine(left, right))
    identity = tuple(fidentity(*(value.dtype for value in sources)))
    if len(result) != len(sources) or len(identity) != len(sources):
        raise DiagnosticError(
            f"The reducer combines {len(sources)} values; fcombine gave {len(result)} and "
            f"fidentity {len(identity)}"
        )
    return CommReducer(left, right, _typed(result, sources), _typed(identity, sources))


def _parameter_names(fcombine: Callable[..., Any]) -> tuple[str, str]:
    """What a function calls its two parameters; x and y where it is not a plain one."""
    code = getattr(fcombine, "__code__", None)
    if code is None or code.co_argcount != 2:
        return "x", "y"
    return code.co_varnames[0], code.co_varnames[1]


def _initial_values(
    init: Any, sources: tuple[PrimExpr, ...], several: bool
) -> tuple[PrimExpr, ...]:
    if init is None:
        return ()
    values = tuple(init) if several else (init,)
    if len(values) != len(sources):
        raise DiagnosticError(
            f"{len(sources)} value(s) are reduced, but init has {len(values)} item(s)"
        )
    return _typed(values, sources)


def _typed(values: Sequence[Any], sources: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    return tuple(
        arithmetic.cast(source.dtype, value) for value, source in zip(values, sources, strict=True)
    )
