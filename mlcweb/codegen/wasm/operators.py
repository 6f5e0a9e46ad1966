"""The operators of `tir` as WebAssembly: how scalars and vectors are computed, a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mlcweb.codegen.external import called_name
from mlcweb.codegen.processor.math import EXPANSIONS
from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.wasm import select_scalar as scalar
from mlcweb.codegen.wasm import select_vector as vector
from mlcweb.codegen.wasm.calls import external_call
from mlcweb.codegen.wasm.select_operation import Rule, bitwise, operation
from mlcweb.lower.expand_instructions import instruction_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.builtins import unsupported
from mlcweb.tir.operators import Family, Key, keys, operator_name, register_column

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector


def _any(dtype: str) -> bool:
    return True


class WasmForm(NamedTuple):
    """What emits an operator of scalars and of vectors, which have it for operands of the element
    types for which `on` holds."""

    scalar: Rule
    vector: Rule | None = None
    on: Callable[[str], bool] = _any


def _numbers(dtype: str) -> bool:
    return not dtypes.is_bool(dtype) and not (dtypes.is_float(dtype) and dtypes.bits(dtype) < 32)


def _wide(dtype: str) -> bool:
    return _numbers(dtype) and dtypes.bits(dtype) > 8


def _floats(dtype: str) -> bool:
    return dtypes.is_float(dtype) and dtypes.bits(dtype) >= 32


def _ordered(dtype: str) -> bool:
    return _numbers(dtype) and dtype != "uint64"


def _with_equality(dtype: str) -> bool:
    return dtypes.is_bool(dtype) or _numbers(dtype)


def _logical(dtype: str) -> bool:
    return dtypes.is_bool(dtype) or _ordered(dtype)


def _compare(name: str, on: Callable[[str], bool]) -> WasmForm:
    return WasmForm(scalar.comparison(name), vector.comparison(name), on)


def _at_least_32_bits(dtype: str) -> bool:
    return dtypes.bits(dtype) >= 32


def _both(rule: Rule, on: Callable[[str], bool] = _any) -> WasmForm:
    return WasmForm(rule, rule, on)


FORMS: Mapping[Key, WasmForm] = register_column(
    "wasm",
    {
        E.Add: WasmForm(operation("add", wraps=True), vector.add, _numbers),
        E.Sub: WasmForm(operation("sub", wraps=True), vector.subtract, _numbers),
        E.Mul: _both(operation("mul", wraps=True), _wide),
        E.Div: WasmForm(scalar.division, operation("div"), _floats),
        E.Mod: WasmForm(scalar.remainder),
        E.FloorDiv: WasmForm(scalar.floor_division(wants_quotient=True)),
        E.FloorMod: WasmForm(scalar.floor_division(wants_quotient=False)),
        E.Min: WasmForm(scalar.extremum, vector.extremum, _ordered),
        E.Max: WasmForm(scalar.extremum, vector.extremum, _ordered),
        **{
            key: _compare(key.__name__.lower(), _with_equality if key in (E.EQ, E.NE) else _ordered)
            for key in keys(Family.COMPARISON)
        },
        E.And: WasmForm(scalar.logical("and"), bitwise("and"), _logical),
        E.Or: WasmForm(scalar.logical("or"), bitwise("or"), _logical),
        E.Not: WasmForm(scalar.negation, bitwise("not")),
        "bitwise_and": _both(bitwise("and")),
        "bitwise_or": _both(bitwise("or")),
        "bitwise_xor": _both(bitwise("xor")),
        "bitwise_not": WasmForm(scalar.bitwise_not, bitwise("not")),
        "shift_left": WasmForm(scalar.shift, vector.shift),
        "shift_right": WasmForm(scalar.shift, vector.shift),
        "sqrt": _both(operation("sqrt", wraps=True)),
        "floor": _both(operation("floor")),
        "ceil": _both(operation("ceil")),
        "trunc": _both(operation("trunc")),
        "nearbyint": _both(operation("nearest")),
        "fabs": _both(operation("abs")),
        "abs": WasmForm(scalar.absolute, operation("abs")),
        "copysign": WasmForm(operation("copysign"), vector.copysign),
        **{
            name: _both(
                scalar.function(expansion), _at_least_32_bits if name == "popcount" else _any
            )
            for name, expansion in EXPANSIONS.items()
        },
        E.Select: WasmForm(scalar.choice, vector.choice),
        "if_then_else": WasmForm(scalar.choice, vector.choice),
        "likely": WasmForm(scalar.likely),
        E.Cast: WasmForm(scalar.cast, vector.cast),
        "reinterpret": WasmForm(scalar.reinterpret, vector.reinterpret),
    },
    absent=dict.fromkeys(("fmod", "nextafter", "ldexp"), "no arithmetic for it is written yet"),
)


def has_vector_operator(key: Key, dtype: str) -> bool:
    """Whether vectors with operands of an element type have an operator."""
    form = FORMS.get(key)
    return form is not None and form.vector is not None and form.on(dtype)


def _scalar_call(selector: FunctionSelector, call: E.Call) -> None:
    if called_name(call) is not None:
        external_call(selector, call)
        return
    name = operator_name(call)
    form = FORMS.get(name)
    rule = scalar.STATEMENT_CALLS.get(name) if form is None else form.scalar
    if rule is None:
        raise UnsupportedError(unsupported(name, "WebAssembly form"), call.span)
    rule(selector, call)


def _vector_call(selector: FunctionSelector, call: E.Call) -> None:
    if instruction_of(call) is not None:
        vector.instruction(selector, call)
        return
    form = FORMS.get(operator_name(call))
    if form is None or form.vector is None:
        raise UnsupportedError(
            f"tir.{operator_name(call)} has no WebAssembly form on vectors", call.span
        )
    form.vector(selector, call)


SCALAR_RULES: dict[Any, Rule] = {
    **scalar.LEAVES,
    **{key: form.scalar for key, form in FORMS.items()},
    E.Call: _scalar_call,
}
VECTOR_RULES: dict[Any, Rule] = {
    **vector.LEAVES,
    **{key: form.vector for key, form in FORMS.items() if form.vector is not None},
    E.Call: _vector_call,
}
"""What emits an expression, by the class of its node."""
