"""Attributes of calls: plain values by name, read as `attrs.axis` or `attrs["axis"]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Attrs(Mapping[str, Any]):
    """An immutable mapping whose values are attributes as well. Two with equal values are equal."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, object] | None = None, **more: object) -> None:
        object.__setattr__(self, "_values", {**(values or {}), **more})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._values:
            names = ", ".join(self._values) or "none"
            raise AttributeError(f"The call has no attribute {name}; its attributes: {names}")
        return self._values[name]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("The attributes of a call do not change")

    def __hash__(self) -> int:
        return hash(tuple((key, str(value)) for key, value in self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)
