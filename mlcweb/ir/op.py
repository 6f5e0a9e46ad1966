"""Operators: the named functions that a `Call` may call, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.errors import InternalError

T = TypeVar("T")


class UnknownOpError(InternalError, AttributeError, KeyError):
    """No operator has the name. TVM raises an AttributeError, or an InternalError before 2025."""


@dataclass(frozen=True, slots=True)
class Op:
    """A named operator. `pure` calls may be repeated, moved or dropped.

    Whatever else a layer knows of an operator (how to deduce a result, how to lower a call) is an
    attribute of it: a value by name, set once with `register_op_attr`.
    """

    name: str
    pure: bool = field(default=True, compare=False)
    arguments: tuple[str, ...] = field(default=(), compare=False)

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator registered under `op_name`, in either spelling; an UnknownOpError where
        there is none."""
        op = _operators.get(without_prefix(op_name))
        if op is None:
            raise UnknownOpError(f"There is no operator {op_name}; Op.list_op_names() lists all")
        return op

    @staticmethod
    def list_op_names() -> list[str]:
        """The names of all operators."""
        return sorted(_operators)

    def same_as(self, other: object) -> bool:
        """Identity, under TVM's name."""
        return self is other

    @property
    def num_inputs(self) -> int:
        return len(self.arguments)

    def get_attr(self, attr_name: str) -> Any:
        """The value of an attribute, or None."""
        return _attributes.get(_key(self, attr_name), (None, 0))[0]

    def has_attr(self, attr_name: str) -> bool:
        return _key(self, attr_name) in _attributes

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Set an attribute, unless it was set with a higher `plevel`."""
        key = _key(self, attr_name)
        if _attributes.get(key, (None, 0))[1] <= plevel:
            _attributes[key] = value, plevel

    def reset_attr(self, attr_name: str) -> None:
        """Take an attribute away."""
        _attributes.pop(_key(self, attr_name), None)

    def __repr__(self) -> str:
        return f'Op("{self.name}")'


_operators: dict[str, Op] = {}
_attributes: dict[tuple[str, str], tuple[Any, int]] = {}
_SPELLINGS = {"FInferType": "FInferStructInfo"}
"""What TVM since 2026 calls attributes."""


def _key(op: Op, attr_name: str) -> tuple[str, str]:
    return op.name, _SPELLINGS.get(attr_name, attr_name)


def register_op(name: str, pure: bool = True, arguments: tuple[str, ...] = ()) -> Op:
    """Add an operator to the registry and return it; a second call returns the first's result."""
    return _operators.setdefault(name, Op(name, pure, arguments))


@overload
def register_op_attr(
    op_name: str, attr_key: str, value: None = None, level: int = 10
) -> Callable[[T], T]: ...


@overload
def register_op_attr(op_name: str, attr_key: str, value: T, level: int = 10) -> T: ...


def register_op_attr(
    op_name: str, attr_key: str, value: T | None = None, level: int = 10
) -> T | Callable[[T], T]:
    """Set an attribute of an operator; without `value`, a decorator that sets what it decorates."""

    def set_value(value: T) -> T:
        register_op(without_prefix(op_name)).set_attr(attr_key, value, level)
        return value

    return set_value if value is None else set_value(value)
