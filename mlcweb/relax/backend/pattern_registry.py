"""Patterns of calls that external compilers take, by name: "compiler.operator"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from mlcweb.relax.transform.fuse_by_pattern import FusionPattern

Pattern: TypeAlias = "FusionPattern | tuple[Any, ...]"
"""A pattern, or a tuple of its fields: (name, pattern, named parts, check)."""

_patterns: list[FusionPattern] = []


def register_patterns(patterns: Iterable[Pattern]) -> None:
    """Add patterns. Later ones have priority over earlier ones.

    Raises: TypeError: one is neither a FusionPattern nor a tuple.
    """
    new = []
    for each in patterns:
        if not isinstance(each, (FusionPattern, tuple)):
            raise TypeError(
                f"Cannot register type {type(each)} as pattern: it is a FusionPattern, or a tuple "
                "(name, pattern, named parts, check)"
            )
        new.append(each if isinstance(each, FusionPattern) else FusionPattern(*each))
    _patterns.extend(new)


def remove_patterns(names: Iterable[str]) -> None:
    """Remove the patterns of these names."""
    removed = set(names)
    _patterns[:] = [each for each in _patterns if each.name not in removed]


def get_patterns_with_prefix(prefix: str) -> list[FusionPattern]:
    """The patterns whose names begin with `prefix`, those with the highest priority first."""
    return [each for each in reversed(_patterns) if each.name.startswith(prefix)]


def get_pattern(name: str) -> FusionPattern | None:
    """The pattern of a name that was registered last; None where there is none."""
    return next((each for each in reversed(_patterns) if each.name == name), None)
