"""The sequences that nodes hold, as TVM's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, SupportsIndex, TypeVar, overload

T = TypeVar("T")
Item = TypeVar("Item", covariant=True)

_item = tuple.__getitem__
_BACKWARDS = slice(None, None, -1)


class Array(tuple[Item, ...]):
    """A tuple that joins any iterable and equals a list of the same items; a slice is a list."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Item: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Item]: ...
    def __getitem__(self, key: Any, /) -> Any:  # type: ignore[override]
        return list(_item(self, key)) if type(key) is slice else _item(self, key)

    def __reversed__(self) -> Iterator[Item]:
        return iter(_item(self, _BACKWARDS))

    def __add__(self, other: Iterable[T], /) -> Array[Item | T]:
        return Array((*self, *other))

    def __radd__(self, other: Iterable[T], /) -> Array[T | Item]:
        return Array((*other, *self))

    def __eq__(self, other: object, /) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object, /) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class ArrayOf(Generic[T]):
    """The type of a node's field that takes any sequence and holds an array of it."""

    def __get__(self, node: Any, owner: Any = None) -> Array[T]: ...
    def __set__(self, node: Any, values: Iterable[T]) -> None: ...
