"""The operators of `tir` as LLVM's instructions, a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mlcweb.codegen.external import called_name
from mlcweb.codegen.llvm import expressions as X
from mlcweb.codegen.llvm.calls import external_call
from mlcweb.codegen.llvm.memory import load
from mlcweb.codegen.processor.math import EXPANSIONS
from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.lower.expand_instructions import instruction_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.builtins import unsupported
from mlcweb.tir.operators import Family, Key, keys, operator_name, register_column

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector


class LlvmForm(NamedTuple):
    """What writes an operator, and for which element types vectors have it."""

    rule: X.Rule
    on: Callable[[str], bool] = lambda dtype: True


_INTRINSICS = ("sqrt", "floor", "ceil", "trunc", "nearbyint")

FORMS: Mapping[Key, LlvmForm] = register_column(
    "llvm",
    {
        E.Add: LlvmForm(X.add),
        E.Sub: LlvmForm(X.subtract),
        E.Mul: LlvmForm(X.arithmetic("mul")),
        # Vectors of integers are not divided: each lane might have to stop the kernel.
        E.Div: LlvmForm(X.division("div"), dtypes.is_float),
        E.Mod: LlvmForm(X.division("rem"), lambda dtype: False),
        E.FloorDiv: LlvmForm(X.division("floordiv"), lambda dtype: False),
        E.FloorMod: LlvmForm(X.division("floorrem"), lambda dtype: False),
        E.Min: LlvmForm(X.extremum),
        E.Max: LlvmForm(X.extremum),
        **{key: LlvmForm(X.comparison(key.__name__.lower())) for key in keys(Family.COMPARISON)},
        E.And: LlvmForm(X.logical("and")),
        E.Or: LlvmForm(X.logical("or")),
        E.Not: LlvmForm(X.negation),
        "bitwise_and": LlvmForm(X.bitwise("and")),
        "bitwise_or": LlvmForm(X.bitwise("or")),
        "bitwise_xor": LlvmForm(X.bitwise("xor")),
        "bitwise_not": LlvmForm(X.bitwise_not),
        "shift_left": LlvmForm(X.shift),
        "shift_right": LlvmForm(X.shift),
        "fabs": LlvmForm(X.absolute),
        "abs": LlvmForm(X.absolute),
        **{name: LlvmForm(X.intrinsic_of(name)) for name in _INTRINSICS},
        "copysign": LlvmForm(X.copy_sign),
        **{name: LlvmForm(X.function(expansion)) for name, expansion in EXPANSIONS.items()},
        E.Select: LlvmForm(X.choice),
        "if_then_else": LlvmForm(X.choice),
        "likely": LlvmForm(X.likely),
        E.Cast: LlvmForm(X.cast),
        "reinterpret": LlvmForm(X.reinterpret),
    },
    absent=dict.fromkeys(("fmod", "nextafter", "ldexp"), "no arithmetic for it is written yet"),
)


def has_vector_operator(key: Key, dtype: str) -> bool:
    """Whether vectors with operands of an element type have an operator."""
    form = FORMS.get(key)
    return form is not None and form.on(dtype)


def _checked_index(selector: Selector, call: E.Call) -> str:
    index, extent, number = call.args
    assert isinstance(number, E.IntImm)
    value, kind = selector.value(index), X.typed(index)
    inside = selector.builder.value(f"icmp ult {kind} {value}, {selector.value(extent)}")
    wide = X.convert(selector, value, index.dtype, "int64")
    selector.fail_unless(inside, number.value, wide)
    return value


_STATEMENT_CALLS: dict[str, X.Rule] = {
    "checked_index": _checked_index,
    "assume": lambda selector, call: "0",
    "tvm_storage_sync": lambda selector, call: "0",
}
"""Calls that are no operators, as they have an effect or are only there to tell something."""


def _call(selector: Selector, call: E.Call) -> str:
    if called_name(call) is not None:
        return external_call(selector, call)
    name = operator_name(call)
    form = FORMS.get(name)
    rule = _STATEMENT_CALLS.get(name) if form is None else form.rule
    if instruction_of(call) is not None:
        rule = X.instruction
    if rule is None:
        raise UnsupportedError(unsupported(name, "LLVM form"), call.span)
    return rule(selector, call)


RULES: dict[Any, X.Rule] = {
    E.Var: X.variable,
    E.IntImm: X.number,
    E.FloatImm: X.number,
    E.BufferLoad: load,
    E.Let: X.let,
    E.Broadcast: X.broadcast,
    E.Ramp: X.ramp,
    **{key: form.rule for key, form in FORMS.items()},
    E.Call: _call,
}
"""What writes an expression, by the class of its node."""
