"""Attributes of functions by either of their names and values: "tir.noalias" is "tirx.noalias"
since 2026, and "Primitive" is True where it was 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlcweb.ir.dialect import without_prefix


class FunctionAttrs(dict[str, Any]):
    """A mapping in which "tirx." before a name means "tir."."""

    def __init__(self, attrs: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__((without_prefix(name), value) for name, value in dict(attrs).items())
        if super().get("Primitive") is True:
            self["Primitive"] = 1

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(without_prefix(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(without_prefix(name) if isinstance(name, str) else name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default."""
        return super().get(without_prefix(name), default)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)
