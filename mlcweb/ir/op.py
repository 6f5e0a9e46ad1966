"""Operators: the named functions that a `Call` may call."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Op:
    """A named operator. `pure` calls may be repeated, moved or dropped."""

    name: str
    pure: bool = field(default=True, compare=False)

    @staticmethod
    def get(name: str) -> Op:
        """The operator registered under `name`; KeyError where there is none."""
        return _operators[name]

    def __repr__(self) -> str:
        return f'Op("{self.name}")'


_operators: dict[str, Op] = {}


def register_op(name: str, pure: bool = True) -> Op:
    """Add an operator to the registry and return it; a second call returns the first's result."""
    return _operators.setdefault(name, Op(name, pure))
