"""`@T.prim_func`, `@R.function`, `@I.ir_module`: from Python definitions to IR, by reading them."""

from __future__ import annotations

import sys
from types import FrameType, FunctionType
from typing import Any

from mlcweb.ir.diagnostics import rendered_diagnostics

# The parser needs the names of `T`, of which the decorators are part: it is imported when used.


def prim_func(
    func: FunctionType | None = None,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = False,
    persistent: bool = False,
    **options: Any,
) -> Any:
    """Turn a Python function into a `PrimFunc`.

    Inside a class the function is returned as it is: the class's decorator reads it.
    """

    if func is not None:
        return _read_definition(func, sys._getframe(1))
    return lambda func: _read_definition(func, sys._getframe(1))


def relax_function(
    f: FunctionType | None = None,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
    **options: Any,
) -> Any:
    """Turn a Python function into a `relax.Function`.

    Inside a class the function is returned as it is: the class's decorator reads it.
    """
    if f is not None:
        return _read_definition(f, sys._getframe(1))
    return lambda f: _read_definition(f, sys._getframe(1))


def _read_definition(function: FunctionType, frame: FrameType) -> Any:
    if "__qualname__" in frame.f_locals:
        return function
    from mlcweb.script.parser.environment import names_around
    from mlcweb.script.parser.functions import parse_function
    from mlcweb.script.parser.source import source_of_function

    with rendered_diagnostics():
        tree, source = source_of_function(function)
        return parse_function(tree, source, names_around(frame, [function]))


def ir_module(
    mod: type | None = None,
    check_well_formed: bool = True,
    s_tir: bool = False,
    **options: Any,
) -> Any:
    """Turn a Python class of functions into an `IRModule`. If a base of the class says so
    (`relax.BasePyModule`), its `of_ir_module(module, class)` makes something else of that.

    `check_well_formed=False` leaves out the checks of whole functions.
    """

    module_options = {"check_well_formed": check_well_formed, "s_tir": s_tir, **options}

    def read(mod: type, frame: FrameType) -> Any:
        module = _read_module(mod, frame, module_options)
        factories = [base.of_ir_module for base in mod.__bases__ if hasattr(base, "of_ir_module")]
        return factories[0](module, mod) if factories else module

    if mod is not None:
        return read(mod, sys._getframe(1))
    return lambda mod: read(mod, sys._getframe(1))


def pyfunc(func: FunctionType) -> FunctionType:
    """Mark a function of a class below `relax.BasePyModule` that stays Python."""
    func.dispatch_token = "pyfunc"  # type: ignore[attr-defined]
    return func


def _read_module(mod: type, frame: FrameType, options: dict[str, Any]) -> Any:
    from mlcweb.script.parser.environment import names_around
    from mlcweb.script.parser.functions import parse_module
    from mlcweb.script.parser.source import source_of_class

    functions = [value for value in vars(mod).values() if isinstance(value, FunctionType)]
    with rendered_diagnostics():
        tree, source = source_of_class(mod, frame)
        return parse_module(tree, source, names_around(frame, functions), options)


def rewriter(rewriter_mod: type) -> Any:
    """Turn a class of two functions, `pattern` and `replacement`, into a rule of rewriting."""
    from mlcweb.relax.dpl import PatternMatchingRewriter

    return PatternMatchingRewriter.from_module(_read_module(rewriter_mod, sys._getframe(1), {}))
