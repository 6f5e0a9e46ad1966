"""The way from a root to one of its parts: attributes, items of arrays, entries of maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

__all__ = ["AccessKind", "AccessPath", "AccessStep", "ObjectPath"]


class AccessKind(IntEnum):
    """What a step goes by. The last three end at a part that is not there."""

    ATTR = 0
    ARRAY_ITEM = 1
    MAP_ITEM = 2
    ATTR_MISSING = 3
    ARRAY_ITEM_MISSING = 4
    MAP_ITEM_MISSING = 5


_FORMATS = {
    AccessKind.ATTR: ".{}",
    AccessKind.ARRAY_ITEM: "[{!r}]",
    AccessKind.MAP_ITEM: "[{!r}]",
    AccessKind.ATTR_MISSING: ".<missing attribute {}>",
    AccessKind.ARRAY_ITEM_MISSING: "[<missing element {!r}>]",
    AccessKind.MAP_ITEM_MISSING: "[<missing entry {!r}>]",
}


@dataclass(frozen=True)
class AccessStep:
    """One step: its kind, and the name, index or key that it goes by."""

    kind: AccessKind
    key: Any


@dataclass(frozen=True, init=False)
class AccessPath:
    """Steps from a root. Paths are values: equal if their steps are, and never changed.

    `root()` is where all begin; each of the other methods gives a path that is one step longer.
    """

    steps: tuple[AccessStep, ...]

    def __init__(self) -> None:
        raise ValueError("An AccessPath begins at the root: AccessPath.root()")

    @classmethod
    def root(cls, name: str | None = None) -> AccessPath:
        """The empty path. `name` is ignored: TVM called roots by names before 2025."""
        return cls.of(())

    @classmethod
    def of(cls, steps: Iterable[AccessStep]) -> AccessPath:
        """The path of these steps."""
        path = object.__new__(cls)
        object.__setattr__(path, "steps", tuple(steps))
        return path

    def then(self, kind: AccessKind, key: Any) -> AccessPath:
        """The path with one more step."""
        return self.of((*self.steps, AccessStep(kind, key)))

    def attr(self, attr_key: str) -> AccessPath:
        return self.then(AccessKind.ATTR, attr_key)

    def array_item(self, index: int) -> AccessPath:
        return self.then(AccessKind.ARRAY_ITEM, index)

    def map_item(self, key: Any) -> AccessPath:
        return self.then(AccessKind.MAP_ITEM, key)

    def attr_missing(self, attr_key: str) -> AccessPath:
        return self.then(AccessKind.ATTR_MISSING, attr_key)

    def array_item_missing(self, index: int) -> AccessPath:
        return self.then(AccessKind.ARRAY_ITEM_MISSING, index)

    def map_item_missing(self, key: Any = None) -> AccessPath:
        return self.then(AccessKind.MAP_ITEM_MISSING, key)

    array_index = array_item
    map_value = map_item
    missing_array_element = array_item_missing
    missing_map_entry = map_item_missing

    @property
    def parent(self) -> AccessPath | None:
        """The path without its last step; None for the root."""
        return self.of(self.steps[:-1]) if self.steps else None

    @property
    def step(self) -> AccessStep | None:
        """The last step; None for the root."""
        return self.steps[-1] if self.steps else None

    @property
    def depth(self) -> int:
        """The number of objects on the path, the root counted, too."""
        return len(self)

    def to_steps(self) -> tuple[AccessStep, ...]:
        return self.steps

    def is_prefix_of(self, other: AccessPath) -> bool:
        """Whether `other` begins with all steps of this path, or is equal to it."""
        return other.steps[: len(self.steps)] == self.steps

    def values(self, root: Any) -> Iterator[Any]:
        """What is found on the way from `root`, itself first, as far as its parts are there."""
        yield root
        value = root
        for step in self.steps:
            try:
                value = (
                    getattr(value, step.key) if step.kind == AccessKind.ATTR else value[step.key]
                )
            except (AttributeError, IndexError, KeyError, TypeError):
                return
            yield value

    def __len__(self) -> int:
        return len(self.steps) + 1

    def __str__(self) -> str:
        return "<root>" + "".join(_FORMATS[step.kind].format(step.key) for step in self.steps)

    __repr__ = __str__


ObjectPath = AccessPath
"""What TVM called it before 2025."""
