"""Small functions that generated code calls: integer divisions that no instruction does, written in
the text format of WebAssembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import Function

NEEDS = {
    "i32_floordiv": ("i32_truncdiv",),
    "i64_floordiv": ("i64_truncdiv",),
}
"""The helpers that a helper calls."""


def helper_functions(names: Iterable[str]) -> list[Function]:
    """The helpers of these names and those that they need, in a fixed order."""
    needed = set(names)
    for name in tuple(needed):
        needed.update(NEEDS.get(name, ()))
    return [_helper(name) for name in sorted(needed)]


@cache
def _helper(name: str) -> Function:
    return _MAKERS[name](name)


def _assembled(
    name: str,
    parameters: Mapping[str, ValueType],
    result: ValueType,
    text: str,
    locals_: Mapping[str, ValueType] = {},
) -> Function:
    """A function from the text of its body."""
    builder = FunctionBuilder(name, list(parameters.items()), [result])
    for local, type in locals_.items():
        builder.local(type, local)
    builder.code(text)
    return builder.build()


def _truncdiv(int_type: ValueType, name: str) -> Function:
    """a / b towards zero. The least integer over -1 is itself; the instruction traps there."""
    text = f"""
        local.get b  {int_type}.const -1  {int_type}.eq
        if {int_type}
            {int_type}.const 0  local.get a  {int_type}.sub
        else
            local.get a  local.get b  {int_type}.div_s
        end"""
    return _assembled(name, {"a": int_type, "b": int_type}, int_type, text)


def _floor(int_type: ValueType, wants_quotient: bool, name: str) -> Function:
    """Quotient or remainder of the division that rounds down: one less (one divisor more) than the
    division towards zero, where there is a remainder whose sign is not that of the divisor."""
    towards_zero, correction = "local.get remainder", "local.get b"
    if wants_quotient:
        towards_zero = f"local.get a  local.get b  call {int_type}_truncdiv"
        correction = f"{int_type}.const -1"
    text = f"""
        local.get a  local.get b  {int_type}.rem_s  local.set remainder
        {towards_zero}
        {correction}
        {int_type}.const 0
        local.get remainder  local.get b  {int_type}.xor  {int_type}.const 0  {int_type}.lt_s
        local.get remainder  {int_type}.const 0  {int_type}.ne
        i32.and
        select
        {int_type}.add"""
    parameters = {"a": int_type, "b": int_type}
    return _assembled(name, parameters, int_type, text, {"remainder": int_type})


_MAKERS: dict[str, Callable[[str], Function]] = {
    "i32_truncdiv": partial(_truncdiv, "i32"),
    "i64_truncdiv": partial(_truncdiv, "i64"),
    "i32_floordiv": partial(_floor, "i32", True),
    "i64_floordiv": partial(_floor, "i64", True),
    "i32_floormod": partial(_floor, "i32", False),
    "i64_floormod": partial(_floor, "i64", False),
}
