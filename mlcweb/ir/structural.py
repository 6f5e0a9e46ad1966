"""Structural equality and hashing: programs are equal up to the names of variables and blocks.

Variables map one to one. A variable that neither program defines must be the same object in both,
unless `map_free_vars` lets free variables map as well. Attributes and annotations compare by value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.ir import printing
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.node import Node

VARIABLE_CLASSES: set[type] = set()
"""Classes compared by binding (variables). Filled by the layers that define them."""

BINDING_CLASSES: set[type] = set()
"""Classes whose first occurrence defines them and everything inside them (buffers)."""


COMPARED_AS: dict[type, Callable[[Any], Any]] = {}
"""Node classes that are compared by other values than their fields, and how to get those."""


class StructuralMismatch(ValueError):
    """Two programs differ. `path` leads to the first difference."""

    def __init__(self, message: str, path: str) -> None:
        self.path = path
        super().__init__(message)


class _Comparison:
    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.left: dict[Any, Any] = {}
        self.right: dict[Any, Any] = {}
        self.path: list[str] = []
        self.difference: tuple[str, Any, Any] | None = None

    def differ(self, left: Any, right: Any) -> bool:
        if self.difference is None:
            self.difference = ("".join(self.path), left, right)
        return False

    def compare(self, left: Any, right: Any, defining: bool) -> bool:
        if isinstance(left, Node):
            return self.compare_nodes(left, right, defining)
        if isinstance(left, (tuple, list)):
            return self.compare_sequences(left, right, defining)
        if isinstance(left, Mapping):
            return self.compare_mappings(left, right)
        if isinstance(left, float) and isinstance(right, float):
            # As in TVM, zeros of different sign differ, as 1 / x does, and all NaNs are one.
            return left.hex() == right.hex() or self.differ(left, right)
        if isinstance(left, bool) != isinstance(right, bool) or left != right:
            return self.differ(left, right)
        return True

    def compare_nodes(self, left: Node, right: Any, defining: bool) -> bool:
        cls = type(left)
        if cls is not type(right):
            return self.differ(left, right)
        if cls in VARIABLE_CLASSES:
            return self.compare_variables(left, right, defining)
        if cls in COMPARED_AS:
            form = COMPARED_AS[cls]
            return left is right or self.compare(form(left), form(right), defining)
        binding = cls in BINDING_CLASSES
        if binding:
            known_left, known_right = self.left.get(left), self.right.get(right)
            if known_left is not None or known_right is not None:
                return (known_left is right and known_right is left) or self.differ(left, right)
        elif left is right and not self.left:
            return True
        for name in cls.structural_fields:
            role = cls.role_of_field[name]
            self.path.append("." + name)
            value, other = getattr(left, name), getattr(right, name)
            if role == "definition" and type(value) in VARIABLE_CLASSES:
                self.forget(value, other)
            inside = defining or binding or role == "definition"
            if not self.compare(value, other, inside):
                return False
            self.path.pop()
        if binding:
            self.bind(left, right)
        return True

    def forget(self, left: Any, right: Any) -> None:
        """Drop what is known of two variables: a loop copied to two places defines its variable
        twice, each time anew."""
        self.right.pop(self.left.pop(left, None), None)
        self.left.pop(self.right.pop(right, None), None)

    def compare_variables(self, left: Any, right: Any, defining: bool) -> bool:
        known_left, known_right = self.left.get(left), self.right.get(right)
        if known_left is not None or known_right is not None:
            return (known_left is right and known_right is left) or self.differ(left, right)
        if not (defining or self.map_free_vars) and left is not right:
            return self.differ(left, right)
        for name in type(left).structural_fields:
            # What describes a variable may define others, as the symbolic shape of a tensor does.
            if not self.compare(getattr(left, name), getattr(right, name), defining):
                return self.differ(left, right)
        self.bind(left, right)
        return True

    def bind(self, left: Any, right: Any) -> None:
        self.left[left] = right
        self.right[right] = left

    def compare_sequences(self, left: Any, right: Any, defining: bool) -> bool:
        if not isinstance(right, (tuple, list)):
            return self.differ(left, right)
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            self.path.append(f"[{index}]")
            if not self.compare(a, b, defining):
                return False
            self.path.pop()
        return len(left) == len(right) or self.differ(left, right)

    def compare_mappings(self, left: Mapping[Any, Any], right: Any) -> bool:
        if not isinstance(right, Mapping) or len(left) != len(right):
            return self.differ(left, right)
        if any(isinstance(key, Node) for key in left):
            for index, (a, b) in enumerate(zip(left.items(), right.items(), strict=True)):
                self.path.append(f"{{{index}}}")
                if not self.compare_sequences(a, b, True):
                    return False
                self.path.pop()
            return True
        for key, value in left.items():
            self.path.append(f"[{key!r}]")
            if key not in right or not self.compare(value, right[key], False):
                return self.differ(value, right.get(key))
            self.path.pop()
        return True


def _comparable(value: Any) -> Any:
    form = getattr(value, "structural_form", None)
    return form() if callable(form) else value


@nesting_limit("compared")
def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes or modules are the same program up to names."""
    return _Comparison(map_free_vars).compare(_comparable(lhs), _comparable(rhs), map_free_vars)


@nesting_limit("compared")
def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise `StructuralMismatch` (a ValueError) that shows the first difference of two programs."""
    comparison = _Comparison(map_free_vars)
    if comparison.compare(_comparable(lhs), _comparable(rhs), map_free_vars):
        return
    assert comparison.difference is not None
    path, left, right = comparison.difference
    raise StructuralMismatch(
        "StructuralEqual check failed: the programs first differ at <root>"
        f"{path}\n  left:  {_excerpt(left)}\n  right: {_excerpt(right)}\n"
        + _context("left", lhs, left)
        + _context("right", rhs, right),
        path,
    )


def _excerpt(value: Any) -> str:
    text = str(value)
    first, _, rest = text.partition("\n")
    kind = type(value).__name__
    return f"{first}{' …' if rest else ''}  ({kind})"


def _context(side: str, whole: Any, part: Any) -> str:
    """A program with the part marked, where the part has a line in it."""
    if not isinstance(part, Node) or not hasattr(whole, "script"):
        return ""
    text = printing.text_with_marks(whole, (part,))
    known = text != printing.text_with_marks(whole, ())
    return f"\n{side} program:\n{text}\n" if known else ""


def _leaf_bytes(item: Any) -> bytes:
    """What stands for a value without parts in a hash. Bytes, such as weights, are not printed."""
    if isinstance(item, bytes):
        return b"bytes:%d;%b" % (len(item), item)
    return f"{type(item).__name__}:{item!r};".encode()


@nesting_limit("hashed")
def structural_hash(value: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash that agrees with `structural_equal` and is the same in every process."""
    digest = hashlib.blake2b(digest_size=8)
    numbers: dict[Node, int] = {}
    count = 0

    def feed(item: Any, defining: bool) -> None:
        nonlocal count
        if isinstance(item, Node):
            cls = type(item)
            if cls in VARIABLE_CLASSES or cls in BINDING_CLASSES:
                known = numbers.get(item)
                if known is not None:
                    digest.update(b"#%d" % known)
                    return
                free = cls in VARIABLE_CLASSES and not defining and not map_free_vars
                numbers[item] = count
                count += 1
                digest.update(b"free%d" % id(item) if free else b"var")
            if cls in COMPARED_AS:
                feed(COMPARED_AS[cls](item), defining)
                return
            digest.update(cls.__name__.encode() + b"(")
            for name in cls.structural_fields:
                value, role = getattr(item, name), cls.role_of_field[name]
                if role == "definition" and type(value) in VARIABLE_CLASSES:
                    numbers.pop(value, None)
                feed(value, defining or cls in BINDING_CLASSES or role == "definition")
            digest.update(b")")
        elif isinstance(item, (tuple, list)):
            digest.update(b"[%d" % len(item))
            for entry in item:
                feed(entry, defining)
        elif isinstance(item, Mapping):
            by_name = not any(isinstance(key, Node) for key in item)
            entries = sorted(item.items()) if by_name else list(item.items())
            digest.update(b"{%d" % len(entries))
            for key, entry in entries:
                feed(key, not by_name)
                feed(entry, not by_name)
        else:
            digest.update(_leaf_bytes(item))

    feed(_comparable(value), map_free_vars)
    return int.from_bytes(digest.digest(), "little")
