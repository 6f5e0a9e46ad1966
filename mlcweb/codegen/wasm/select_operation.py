"""Operators that are one instruction, of scalars and of vectors alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.wasm.instructions import OPERATIONS
from mlcweb.codegen.wasm.select_cast import wrap
from mlcweb.codegen.wasm.select_types import (
    check_vector,
    stack_type,
    vector_shape,
)
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.operators import operands_of

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector

Rule = Callable[["FunctionSelector", Any], None]


def operation(name: str, wraps: bool = False) -> Rule:
    """The instruction of this name for the type of the result; the result of scalars may have to be
    wrapped into its type."""

    def rule(selector: FunctionSelector, expression: Any) -> None:
        dtype = expression.dtype
        if dtypes.lanes(dtype) == 1:
            mnemonic = f"{stack_type(dtype)}.{name}"
        else:
            check_vector(dtype)
            mnemonic = f"{vector_shape(dtypes.element_of(dtype))}.{name}"
        if mnemonic not in OPERATIONS:
            raise UnsupportedError(f"WebAssembly has no {mnemonic}", expression.span)
        selector.push(*operands_of(expression))
        selector.emit(mnemonic)
        if wraps:
            wrap(selector, dtype)

    return rule


def bitwise(name: str) -> Rule:
    """The instruction of this name on bits, which vectors have for all their types."""

    def rule(selector: FunctionSelector, expression: Any) -> None:
        selector.push(*operands_of(expression))
        selector.emit(f"{stack_type(expression.dtype)}.{name}")

    return rule
