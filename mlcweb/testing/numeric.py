"""Checks of gradients and of conditions by numbers, and arrays to try programs with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlcweb import te
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.te import create_prim_func
from mlcweb.tir import logic
from mlcweb.tir.arithmetic import cast, convert, logical_not
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.substitute import substitute
from mlcweb.topi.utils import get_const_int, get_const_tuple

Values = Mapping[str, Any] | Sequence[Any]

_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4")
"""Types that NumPy has from the package ml_dtypes."""


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Values,
    grad_values: Values,
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Compare gradients of a function, which gives a number, with finite differences.

    The function takes arrays by position, or by name where `input_values` is a mapping. Where a
    forward difference over `delta` is not within tolerance, a central one decides, and then one of
    five points (https://en.wikipedia.org/wiki/Five-point_stencil). The tolerance of a gradient of n
    elements is `atol * sqrt(n) + rtol * norm`.

    Raises:
        AssertionError: a gradient has another shape than its input, or differs.
        ValueError: there is infinity or NaN.
    """
    import numpy as np

    named = isinstance(input_values, Mapping)
    inputs = dict(_items(input_values))

    def evaluate(values: dict[Any, Any]) -> Any:
        return function(**values) if named else function(*values.values())

    at_point = evaluate(inputs) if function_value is None else function_value

    def slope(name: Any, index: tuple[int, ...], step: float) -> float:
        moved = inputs[name].copy()
        moved[index] += step
        return (evaluate({**inputs, name: moved}) - at_point) / step

    for name, gradient in _items(grad_values):
        if gradient.shape != inputs[name].shape:
            raise AssertionError(
                f"The gradient of {name!r} has the shape {gradient.shape}, and the input "
                f"{inputs[name].shape}"
            )
        numeric, wrong = np.zeros_like(gradient), []
        for index in np.ndindex(*gradient.shape):

            def is_close(value: Any, expected: Any = gradient[index]) -> bool:
                return abs(value - expected) < atol + rtol * abs(value)

            estimate = _difference(lambda step: slope(name, index, step), delta, is_close)  # noqa: B023
            numeric[index] = estimate
            if not is_close(estimate):
                wrong.append(index)
        distance, norm = np.linalg.norm(numeric - gradient), np.linalg.norm(numeric)
        both = f"analytical grad = {gradient}\nnumerical grad = {numeric}"
        if not np.isfinite(distance + norm):
            raise ValueError(f"The gradient of {name!r} has NaN or infinity\n{both}")
        if distance > atol * gradient.size**0.5 + rtol * norm:
            raise AssertionError(
                f"Analytical and numerical grads wrt {name!r} differ too much, at {len(wrong)} of "
                f"{gradient.size} elements, such as {wrong[:10]}\n{both}"
            )


def _items(values: Values) -> list[tuple[Any, Any]]:
    return list(values.items() if isinstance(values, Mapping) else enumerate(values))


def _difference(
    slope: Callable[[float], float], delta: float, is_close: Callable[[float], bool]
) -> float:
    """The cheapest difference that is close, or else the best."""
    forward = slope(delta)
    if is_close(forward):
        return forward
    central = (slope(-delta) + forward) / 2
    if is_close(central):
        return central
    return (2 * (slope(delta / 2) + slope(-delta / 2)) - central) / 3


def check_bool_expr_is_true(bool_expr: Any, vranges: Mapping[Var, Range], cond: Any = None) -> None:
    """Try a condition for all values of variables, those for which `cond` holds.

    Raises: AssertionError: it does not hold; names the first values.
    """
    import numpy as np

    condition = convert(bool_expr)
    if cond is not None:
        condition = logic.any(logical_not(convert(cond)), condition)

    lows = [get_const_int(domain.min) for domain in vranges.values()]

    def element(*indices: Var) -> PrimExpr:
        moved = {var: index + low for var, index, low in zip(vranges, indices, lows, strict=True)}
        return cast("int8", substitute(condition, moved))

    tensor = te.compute([domain.extent for domain in vranges.values()], element)
    out = nd.empty(get_const_tuple(tensor.shape), "int8")
    build(create_prim_func([tensor]), target="numpy")["main"](out)
    counterexamples = np.argwhere(out.numpy() == 0)
    if counterexamples.size:
        numbers = zip(vranges, counterexamples[0], lows, strict=True)
        values = ", ".join(sorted(f"{var.name} = {low + at}" for var, at, low in numbers))
        raise AssertionError(f"Expression {condition} is not true.\nCounterexample: {values}")


def np_dtype_from_str(dtype: str) -> Any:
    """NumPy's type of a name; those that NumPy itself lacks need the package ml_dtypes."""
    import numpy as np

    if dtype in _ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype))
    return np.dtype(dtype)


def generate_random_array(dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of random bits, all of them finite numbers of the type.

    Raises: ValueError: NumPy has no such type.
    """
    import numpy as np

    try:
        numbers = np_dtype_from_str(dtype)
    except TypeError:
        raise ValueError(f'"{dtype}" is no type of NumPy') from None

    def draw(count: Any) -> Any:
        return np.frombuffer(np.random.bytes(int(count) * numbers.itemsize), numbers).copy()

    values = draw(np.prod(shape))
    while not (finite := np.isfinite(values)).all():
        values[~finite] = draw((~finite).sum())
    return values.reshape(shape)
