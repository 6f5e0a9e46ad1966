"""`tvm.testing.CompareBeforeAfter`: tests of a pass, as a class that says what it makes of what."""

from __future__ import annotations

import ast
import inspect
import sys
from types import FrameType, FunctionType
from typing import Any

from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.script import ir as I
from mlcweb.script.parser.environment import names_around
from mlcweb.script.parser.functions import parse_function
from mlcweb.script.parser.source import source_of_function


class CompareBeforeAfter:
    """Base of classes of tests. A subclass has

    - `transform`: the pass, or a method that gives it;
    - `before` or `Before`: what it starts from, a script, a class of scripts, a module, or a method
      that gives one of them;
    - `expected` or `Expected`: what it makes, in one of these forms, or the class of the error that
      it raises.

    Methods may ask for fixtures of pytest.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        frame = sys._getframe(1)
        for name in ("before", "expected", "transform"):
            for spelling in (name, name.capitalize()):
                if spelling in vars(cls):
                    setattr(cls, name, _fixture(vars(cls)[spelling], name, frame))

    def test_compare(self, before: Any, expected: Any, transform: Any) -> None:
        """The pass makes the expected module of the first one, or raises the expected error."""
        import pytest

        if inspect.isclass(expected) and issubclass(expected, Exception):
            with pytest.raises(expected):
                transform(_module(before))
            return
        assert_structural_equal(transform(_module(before)), _module(expected))


def _fixture(value: Any, name: str, frame: FrameType) -> Any:
    """A fixture that gives what an attribute of a class of tests says."""
    import pytest

    if _is_fixture(value):
        return value
    if (
        isinstance(value, FunctionType)
        and next(iter(inspect.signature(value).parameters)) == "self"
    ):
        return pytest.fixture(value)
    if isinstance(value, FunctionType) and name != "transform":
        tree, source = source_of_function(value)
        if not tree.decorator_list:
            tree.decorator_list.append(ast.Name("prim_func"))
        value = parse_function(tree, source, names_around(frame, [value]))
    elif inspect.isclass(value) and not issubclass(value, Exception):
        value = I.ir_module(value)

    def given(self: Any) -> Any:
        return value

    return pytest.fixture(given)


def _is_fixture(value: Any) -> bool:
    return "fixture" in type(value).__name__.lower() or hasattr(value, "_pytestfixturefunction")


def _module(program: Any) -> IRModule:
    """A module, of a function one that has it as "main"."""
    if isinstance(program, IRModule):
        return program
    return IRModule({"main": program.without_attr("global_symbol")})
