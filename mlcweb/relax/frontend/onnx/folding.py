"""Computing with tensors that are known when a model is imported.

`fold(op_type, node, values)` gives the result, or None where the operator is not one of those that
shapes are computed with, or where the result depends on what a symbolic extent is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TypeAlias

from mlcweb.relax import dims
from mlcweb.relax.frontend.onnx import arguments
from mlcweb.relax.frontend.onnx.known import (
    MAX_ELEMENTS,
    Element,
    Known,
    broadcast,
    broadcast_elements,
    flat_index,
    known,
    known_list,
    positions,
)  # fmt: skip
from mlcweb.relax.frontend.onnx.node import Node
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import floordiv
from mlcweb.tir.expr import IntImm, PrimExpr

Compute: TypeAlias = Callable[..., Element]
"""Of elements, and at last of whether they are integers."""


class _Undecided(Exception):
    """The result depends on what a symbolic extent is."""


def fold(op_type: str, node: Node, values: list[Known | None]) -> Known | None:
    """The result of an operator of which all inputs are known."""
    rule = _RULES.get(op_type)
    if rule is None:
        return None
    try:
        result = rule(node, *values)
    except (_Undecided, ArithmeticError, ValueError, LookupError, TypeError, AttributeError):
        # Where the node itself is wrong, its converter says how.
        return None
    return None if result is None or math.prod(result.shape) > MAX_ELEMENTS else result


def _value(element: Element) -> Element:
    """An extent, simplified; an integer where it is one."""
    if isinstance(element, PrimExpr):
        element = dims.simplify(element)
    return element.value if isinstance(element, IntImm) else element


def _elementwise(compute: Compute, dtype: str | None = None) -> Callable[..., Known | None]:
    def rule(node: Node, *values: Known) -> Known | None:
        shape = broadcast([value.shape for value in values])
        if shape is None or math.prod(shape) > MAX_ELEMENTS:
            return None
        rows = zip(*(broadcast_elements(value, shape) for value in values), strict=True)
        whole = not dtypes.is_float(values[-1].dtype)
        elements = [_value(compute(*row, whole)) for row in rows]
        return known(shape, elements, dtype or values[-1].dtype)

    return rule


def _numbers(*elements: Element) -> None:
    if any(isinstance(element, PrimExpr) for element in elements):
        raise _Undecided


def _number_rule(compute: Compute) -> Compute:
    """Of numbers only."""

    def checked(*elements: Element) -> Element:
        _numbers(*elements[:-1])
        return compute(*elements[:-1])

    return checked


def _divide(a: Element, b: Element, whole: bool) -> Element:
    if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
        return floordiv(a, b)  # extents are not negative
    if not whole:
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Element, b: Element) -> Element:
    if isinstance(a, float) or isinstance(b, float):
        raise _Undecided  # by the attribute fmod
    return a % b


def _equal(a: Element, b: Element, whole: bool) -> bool:
    if not isinstance(a, PrimExpr) and not isinstance(b, PrimExpr):
        return a == b
    if a is b:
        return True
    for one, other in ((a, b), (b, a)):
        if isinstance(one, PrimExpr) and isinstance(other, int) and other < 0:
            return False  # an extent is not negative
    raise _Undecided


def _power(a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int):
        if b < 0:
            raise _Undecided
        return pow(a, b, 1 << 64)  # wrapped to its type by whoever asks
    result = a**b
    if isinstance(result, complex):
        raise _Undecided
    return result


def _fold_binary(compute: Callable[[Element, Element], Element]) -> Compute:
    def chain(*elements: Element) -> Element:
        result = elements[0]
        for element in elements[1:-1]:
            result = compute(result, element)
        return result

    return chain


def _cast(node: Node, x: Known) -> Known:
    return _converted(x, arguments.cast_dtype(node))


def _cast_like(node: Node, x: Known, like: Known) -> Known:
    return _converted(x, like.dtype)


def _converted(x: Known, dtype: str) -> Known:
    if not dtypes.is_integer(dtype) and x.symbolic and not dtypes.is_float(dtype):
        raise _Undecided
    return known(x.shape, [int(e) if _truncates(e, dtype) else e for e in x.elements], dtype)


def _truncates(element: Element, dtype: str) -> bool:
    return isinstance(element, float) and dtypes.is_integer(dtype)


def _constant_of_shape(node: Node, shape: Known) -> Known | None:
    _numbers(*shape.elements)
    if min(shape.elements, default=1) < 0 or math.prod(shape.elements) > MAX_ELEMENTS:
        return None
    fill = arguments.fill_value(node)
    return known(shape.elements, fill.elements * math.prod(shape.elements), fill.dtype)


def _gather(node: Node, data: Known, indices: Known) -> Known:
    _numbers(*indices.elements)
    axis = arguments.axis_of(node, 0, len(data.shape))
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    extent = data.shape[axis]
    shape = (*before, *indices.shape, *after)
    elements = []
    for index in positions(shape):
        middle = index[axis : axis + len(indices.shape)]
        chosen = indices.elements[flat_index(middle, indices.shape)] % extent
        at = (*index[:axis], chosen, *index[axis + len(indices.shape) :])
        elements.append(data.elements[flat_index(at, data.shape)])
    return known(shape, elements, data.dtype)


def _concat(node: Node, *values: Known) -> Known | None:
    if any(len(value.shape) != 1 for value in values):
        return None
    elements = [element for value in values for element in value.elements]
    return known_list(elements, values[0].dtype)


def _slice(node: Node, data: Known, *ignored: Known | None) -> Known | None:
    if len(data.shape) != 1:
        return None
    starts, ends, _, steps = arguments.slice_arguments(node, 1)
    start, end = starts[0], ends[0]
    if isinstance(start, PrimExpr) or isinstance(end, PrimExpr):
        raise _Undecided
    return known_list(data.elements[slice(start, end, steps[0])], data.dtype)


def _reshaped(node: Node, data: Known, *ignored: Known | None) -> Known | None:
    """Squeeze, Unsqueeze and Reshape: the elements stay, the shape is deduced."""
    shape = arguments.result_shape(node, data.shape)
    numbers = tuple(extent for extent in shape if not isinstance(extent, PrimExpr))
    return Known(numbers, data.elements, data.dtype) if len(numbers) == len(shape) else None


def _where(node: Node, condition: Known, x: Known, y: Known) -> Known | None:
    shape = broadcast([condition.shape, x.shape, y.shape])
    if shape is None:
        return None
    columns = [broadcast_elements(value, shape) for value in (condition, x, y)]
    return known(shape, [a if c else b for c, a, b in zip(*columns, strict=True)], x.dtype)


def _expand(node: Node, data: Known, shape: Known) -> Known | None:
    _numbers(*shape.elements)
    full = broadcast([data.shape, shape.elements])
    if full is None or math.prod(full) > MAX_ELEMENTS:
        return None
    return known(full, broadcast_elements(data, full), data.dtype)


def _range(node: Node, start: Known, limit: Known, delta: Known) -> Known | None:
    (first,), (last,), (step,) = start.elements, limit.elements, delta.elements
    _numbers(first, last, step)
    count = max(math.ceil((last - first) / step), 0)
    if count > MAX_ELEMENTS:
        return None
    return known_list([first + i * step for i in range(count)], start.dtype)


def _reduced(compute: Compute) -> Callable[..., Known | None]:
    """A reduction of all elements."""

    def rule(node: Node, data: Known, *ignored: Known | None) -> Known | None:
        axes, keepdims = arguments.reduced_axes(node, len(data.shape))
        if sorted(axes) != list(range(len(data.shape))) or not data.elements:
            return None
        shape = [1] * len(data.shape) if keepdims else []
        return known(shape, [_value(compute(*data.elements, None))], data.dtype)

    return rule


_minimum = _number_rule(lambda *elements: min(elements))
_maximum = _number_rule(lambda *elements: max(elements))
_sum = _fold_binary(operator.add)
_product = _fold_binary(operator.mul)

_RULES: dict[str, Callable[..., Known | None]] = {
    "Identity": lambda node, x: x,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Add": _elementwise(_sum),
    "Sub": _elementwise(_fold_binary(operator.sub)),
    "Mul": _elementwise(_product),
    "Div": _elementwise(_divide),
    "Mod": _elementwise(_number_rule(_remainder)),
    "Pow": _elementwise(_number_rule(_power)),
    "Min": _elementwise(_minimum),
    "Max": _elementwise(_maximum),
    "Neg": _elementwise(_number_rule(operator.neg)),
    "Abs": _elementwise(_number_rule(abs)),
    "Sqrt": _elementwise(_number_rule(math.sqrt)),
    "Exp": _elementwise(_number_rule(math.exp)),
    "Log": _elementwise(_number_rule(math.log)),
    "Floor": _elementwise(_number_rule(math.floor)),
    "Ceil": _elementwise(_number_rule(math.ceil)),
    "Reciprocal": _elementwise(_number_rule(lambda x: 1 / x)),
    "Equal": _elementwise(_equal, "bool"),
    "Less": _elementwise(_number_rule(operator.lt), "bool"),
    "LessOrEqual": _elementwise(_number_rule(operator.le), "bool"),
    "Greater": _elementwise(_number_rule(operator.gt), "bool"),
    "GreaterOrEqual": _elementwise(_number_rule(operator.ge), "bool"),
    "And": _elementwise(_number_rule(operator.and_), "bool"),
    "Or": _elementwise(_number_rule(operator.or_), "bool"),
    "Not": _elementwise(_number_rule(operator.not_), "bool"),
    "Where": _where,
    "ConstantOfShape": _constant_of_shape,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Squeeze": _reshaped,
    "Unsqueeze": _reshaped,
    "Reshape": _reshaped,
    "Expand": _expand,
    "Range": _range,
    "ReduceProd": _reduced(_product),
    "ReduceSum": _reduced(_sum),
    "ReduceMax": _reduced(_maximum),
    "ReduceMin": _reduced(_minimum),
}
