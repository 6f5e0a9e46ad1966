"""`@T.prim_func`, `@R.function`, `@I.ir_module`: from Python definitions to IR, by reading them."""

from __future__ import annotations

import sys
from types import FrameType, FunctionType
from typing import Any

# The parser needs the names of `T`, of which the decorators are part: it is imported when used.


def prim_func(
    function: FunctionType | None = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    **options: Any,
) -> Any:
    """Turn a Python function into a `PrimFunc`.

    Inside a class the function is returned as it is: the class's decorator reads it.
    """

    if function is not None:
        return _read_definition(function, sys._getframe(1))
    return lambda function: _read_definition(function, sys._getframe(1))


def relax_function(
    function: FunctionType | None = None,
    *,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
    **options: Any,
) -> Any:
    """Turn a Python function into a `relax.Function`.

    Inside a class the function is returned as it is: the class's decorator reads it.
    """
    if function is not None:
        return _read_definition(function, sys._getframe(1))
    return lambda function: _read_definition(function, sys._getframe(1))


def _read_definition(function: FunctionType, frame: FrameType) -> Any:
    if "__qualname__" in frame.f_locals:
        return function
    from mlcweb.script.parser.environment import names_around
    from mlcweb.script.parser.functions import parse_function
    from mlcweb.script.parser.source import source_of_function

    tree, source = source_of_function(function)
    return parse_function(tree, source, names_around(frame, [function]))


def ir_module(cls: type | None = None, **options: Any) -> Any:
    """Turn a Python class of functions into an `IRModule`.

    `check_well_formed=False` leaves out the checks of whole functions.
    """

    def decorate(cls: type, frame: FrameType) -> Any:
        from mlcweb.script.parser.environment import names_around
        from mlcweb.script.parser.functions import parse_module
        from mlcweb.script.parser.source import source_of_class

        tree, source = source_of_class(cls, frame)
        functions = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
        return parse_module(tree, source, names_around(frame, functions), options)

    if cls is not None:
        return decorate(cls, sys._getframe(1))
    return lambda cls: decorate(cls, sys._getframe(1))
