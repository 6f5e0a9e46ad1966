"""Assertions for tests of programs and schedules, under the names that TVM gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.ir.dialect import dialect_of
from mlcweb.ir.module import BaseFunc
from mlcweb.schedule import Schedule, Trace
from mlcweb.script import tir as T
from mlcweb.testing import env, marks
from mlcweb.testing.compare import CompareBeforeAfter
from mlcweb.testing.marks import (
    device_enabled, enabled_targets, fixture, main, parameter, parameters, parametrize_targets,
)  # fmt: skip
from mlcweb.testing.numeric import (
    check_bool_expr_is_true, check_numerical_grads, generate_random_array, np_dtype_from_str,
)  # fmt: skip
from mlcweb.tir import PrimFunc
from mlcweb.tir.arithmetic import convert

__all__ = [
    "CompareBeforeAfter",
    "assert_allclose",
    "assert_prim_expr_equal",
    "assert_structural_equal",
    "assert_structural_equal_ignore_global_symbol",
    "check_bool_expr_is_true",
    "check_numerical_grads",
    "device_enabled",
    "enabled_targets",
    "env",
    "fixture",
    "generate_random_array",
    "main",
    "np_dtype_from_str",
    "parameter",
    "parameters",
    "parametrize_targets",
    "verify_trace_roundtrip",
]

TEXT_FORMATS = ("python", "json")


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True
) -> None:
    """Raise an AssertionError unless two arrays have one shape and
    `abs(actual - desired) <= atol + rtol * abs(desired)` everywhere.

    Arrays are NDArrays, NumPy arrays, or anything that NumPy makes an array of.
    """
    import numpy as np

    actual_array, desired_array = (
        x.numpy() if hasattr(x, "numpy") else np.asanyarray(x) for x in (actual, desired)
    )
    if actual_array.shape != desired_array.shape:
        raise AssertionError(
            f"The shapes differ: {actual_array.shape} and, desired, {desired_array.shape}"
        )
    np.testing.assert_allclose(actual_array, desired_array, rtol=rtol, atol=atol, verbose=verbose)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raise a ValueError unless two integer expressions surely have one value."""
    if not Analyzer().can_prove_equal(convert(lhs), convert(rhs)):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def assert_structural_equal_ignore_global_symbol(
    func1: BaseFunc, func2: BaseFunc, *args: Any, **kwargs: Any
) -> None:
    """`assert_structural_equal` of two functions, whatever names they have for the linker."""
    left, right = (func.with_attr("global_symbol", "main") for func in (func1, func2))
    assert_structural_equal(left, right, *args, **kwargs)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = TEXT_FORMATS,
    dialect: str | None = None,
) -> Schedule:
    """Write the trace of `sch` as text, replay the text on `mod`, from which `sch` started, and
    assert that this gives the same module and the same trace. Returns the new schedule.

    `text_format` is "python", "json", or several of them, each tried by itself; `dialect` is the
    spelling of the text, by default that of the steps.
    """
    if not isinstance(text_format, str):
        schedules = [
            verify_trace_roundtrip(
                sch, mod, debug_mask=debug_mask, text_format=each, dialect=dialect
            )
            for each in text_format
        ]
        return schedules[-1]
    if text_format not in TEXT_FORMATS:
        raise ValueError(f'text_format is "python" or "json", not "{text_format}"')
    again = Schedule(mod, debug_mask=debug_mask)
    spelling = dialect or sch.trace.dialect
    if text_format == "json":
        import json

        record = json.loads(json.dumps(sch.trace.as_json(dialect=spelling)))
        Trace.apply_json_to_schedule(record, again)
    else:
        module = dialect_of(spelling).of("tir")
        names: dict[str, Any] = {"T": T, module: _SCHEDULES}
        exec(sch.trace.text("  ", spelling), names)
        names["apply_trace"](again)
    assert_structural_equal(again.mod, sch.mod)
    traces = (again.trace.as_python(dialect=spelling), sch.trace.as_python(dialect=spelling))
    assert traces[0] == traces[1], "the traces differ"
    return again


class _SCHEDULES:
    """What a printed trace needs of the module that it names."""

    Schedule = Schedule


def __getattr__(name: str) -> Any:
    """`requires_llvm` and its like."""
    return getattr(marks, name)
