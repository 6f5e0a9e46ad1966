"""Structural equality and hashing: programs are equal up to the names of variables and blocks.

Variables map one to one. A variable that neither program defines must be the same object in both,
unless `map_free_vars` lets free variables map as well. Attributes and annotations compare by value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.ir.access_path import AccessKind, AccessPath, AccessStep
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.node import Node

VARIABLE_CLASSES: set[type] = set()
"""Classes compared by binding (variables). Filled by the layers that define them."""

BINDING_CLASSES: set[type] = set()
"""Classes whose first occurrence defines them and everything inside them (buffers)."""


COMPARED_AS: dict[type, Callable[[Any], Any]] = {}
"""Classes that are compared by other values than their fields, and how to get those."""


class StructuralMismatch(ValueError):
    """Two programs differ. `path` leads to the first difference, from the root of the left one."""

    def __init__(self, message: str, path: AccessPath) -> None:
        self.path = path
        super().__init__(message)


class _Comparison:
    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.left: dict[Any, Any] = {}
        self.right: dict[Any, Any] = {}
        self.path: list[tuple[AccessKind, Any, Any]] = []
        """The kinds of the steps to here, and what they go by on the left and on the right."""
        self.difference: tuple[AccessPath, AccessPath, Any, Any] | None = None

    def differ(self, left: Any, right: Any) -> bool:
        if self.difference is None:
            paths = (
                AccessPath.of(AccessStep(kind, keys[side]) for kind, *keys in self.path)
                for side in (0, 1)
            )
            left_path, right_path = paths
            self.difference = (left_path, right_path, left, right)
        return False

    def differ_in_length(self, kind: AccessKind, key: Any, left: Any, right: Any) -> bool:
        """What one side has under a key is missing on the other, where it is None."""
        if self.difference is None:
            self.differ(left, right)
            assert self.difference is not None
            missing = AccessKind(kind + AccessKind.ATTR_MISSING)
            paths = (
                path.then(missing if part is None else kind, key)
                for path, part in zip(self.difference[:2], (left, right), strict=True)
            )
            left_path, right_path = paths
            self.difference = (left_path, right_path, left, right)
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
        if type(left) in COMPARED_AS:
            return self.compare_forms(left, right)
        is_bool_one = isinstance(left, bool) != isinstance(right, bool)
        if left != right or is_bool_one or {type(left), type(right)} == {int, float}:
            return self.differ(left, right)
        return True

    def compare_forms(self, left: Any, right: Any) -> bool:
        """Compare what two values stand for, which may be of different classes."""
        form, other = COMPARED_AS.get(type(left)), COMPARED_AS.get(type(right))
        first = left if form is None else form(left)
        second = right if other is None else other(right)
        # What stands for a node equals that node, too.
        nodes = isinstance(first, Node) and isinstance(second, Node)
        if (form is None and other is None) or not (nodes or (form and other)):
            return self.differ(left, right)
        return self.compare(first, second, False)

    def compare_nodes(self, left: Node, right: Any, defining: bool) -> bool:
        cls = type(left)
        if cls is not type(right):
            return self.compare_forms(left, right)
        if cls in VARIABLE_CLASSES:
            return self.compare_variables(left, right, defining)
        if cls in COMPARED_AS:
            form = COMPARED_AS[cls]
            return left is right or self.compare(form(left), form(right), defining)
        binding = cls in BINDING_CLASSES
        if binding:
            left_partner, right_partner = self.left.get(left), self.right.get(right)
            if left_partner is not None or right_partner is not None:
                return (left_partner is right and right_partner is left) or self.differ(left, right)
        elif left is right and not self.left:
            return True
        for name in cls.structural_fields:
            role = cls.role_of_field[name]
            self.path.append((AccessKind.ATTR, name, name))
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
        left_partner, right_partner = self.left.get(left), self.right.get(right)
        if left_partner is not None or right_partner is not None:
            return (left_partner is right and right_partner is left) or self.differ(left, right)
        if not (defining or self.map_free_vars) and left is not right:
            return self.differ(left, right)
        for name in type(left).structural_fields:
            # What describes a variable may define others, as the symbolic shape of a tensor does.
            self.path.append((AccessKind.ATTR, name, name))
            if not self.compare(getattr(left, name), getattr(right, name), defining):
                return False
            self.path.pop()
        self.bind(left, right)
        return True

    def bind(self, left: Any, right: Any) -> None:
        self.left[left] = right
        self.right[right] = left

    def compare_sequences(self, left: Any, right: Any, defining: bool) -> bool:
        if not isinstance(right, (tuple, list)):
            return self.differ(left, right)
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            self.path.append((AccessKind.ARRAY_ITEM, index, index))
            if not self.compare(a, b, defining):
                return False
            self.path.pop()
        if len(left) == len(right):
            return True
        shorter = min(len(left), len(right))
        ends = (side[shorter] if len(side) > shorter else None for side in (left, right))
        return self.differ_in_length(AccessKind.ARRAY_ITEM, shorter, *ends)

    def compare_mappings(self, left: Mapping[Any, Any], right: Any) -> bool:
        if not isinstance(right, Mapping):
            return self.differ(left, right)
        if any(map(_is_variable, left)):
            return self.compare_by_variables(left, right)
        for key, value in left.items():
            if key not in right:
                return self.differ_in_length(AccessKind.MAP_ITEM, key, value, None)
            self.path.append((AccessKind.MAP_ITEM, key, key))
            if not self.compare(value, right[key], False):
                return self.differ(value, right[key])
            self.path.pop()
        for key in right:
            if key not in left:
                return self.differ_in_length(AccessKind.MAP_ITEM, key, None, right[key])
        return True

    def compare_by_variables(self, left: Mapping[Any, Any], right: Mapping[Any, Any]) -> bool:
        """Entries in order; their keys are variables of the two programs."""
        entries, others = list(left.items()), list(right.items())
        for (key, value), (other_key, other) in zip(entries, others, strict=False):
            self.path.append((AccessKind.MAP_ITEM, key, other_key))
            if not (self.compare(key, other_key, True) and self.compare(value, other, True)):
                return False
            self.path.pop()
        shorter = min(len(entries), len(others))
        for key, value in entries[shorter:]:
            return self.differ_in_length(AccessKind.MAP_ITEM, key, value, None)
        for key, value in others[shorter:]:
            return self.differ_in_length(AccessKind.MAP_ITEM, key, None, value)
        return True

    def compare_whole(self, lhs: Any, rhs: Any) -> bool:
        """Compare two nodes or modules; a module by its parts."""
        left, right = _parts(lhs), _parts(rhs)
        if left is None or right is None:
            return self.compare(lhs, rhs, self.map_free_vars)
        for name, value in left.items():
            self.path.append((AccessKind.ATTR, name, name))
            if not self.compare(value, right[name], self.map_free_vars):
                return False
            self.path.pop()
        return True


def _is_variable(key: Any) -> bool:
    """Whether what is meant is the thing itself, not what it is called."""
    return type(key) in VARIABLE_CLASSES or type(key) in BINDING_CLASSES


def _parts(value: Any) -> dict[str, Any] | None:
    return value.structural_form() if hasattr(value, "structural_form") else None


@nesting_limit("compared")
def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes or modules are the same program up to names."""
    return _Comparison(map_free_vars).compare_whole(lhs, rhs)


@nesting_limit("compared")
def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> tuple[AccessPath, AccessPath] | None:
    """The paths to the first difference of two nodes or modules, in each of them; None if they are
    equal. Where something is missing on one side, its path ends at what is not there."""
    comparison = _Comparison(map_free_vars)
    comparison.compare_whole(lhs, rhs)
    return None if comparison.difference is None else comparison.difference[:2]


@nesting_limit("compared")
def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise `StructuralMismatch` (a ValueError) that shows the first difference of two programs."""
    comparison = _Comparison(map_free_vars)
    if comparison.compare_whole(lhs, rhs):
        return
    assert comparison.difference is not None
    path, other_path, left, right = comparison.difference
    raise StructuralMismatch(
        f"StructuralEqual check failed, caused by lhs at {path}:\n{_shown(lhs, path, left)}\n"
        f"and rhs at {other_path}:\n{_shown(rhs, other_path, right)}",
        path,
    )


def _shown(whole: Any, path: AccessPath, part: Any) -> str:
    """A program with what is at a path underlined; of what is no program, only that part."""
    if hasattr(whole, "script"):
        return whole.script(path_to_underline=[path], syntax_sugar=False)
    return f"{part}  ({type(part).__name__})"


def _leaf_bytes(item: Any) -> bytes:
    """What stands for a value without parts in a hash. Bytes, such as weights, are not printed."""
    if isinstance(item, bytes):
        return b"bytes:%d;%b" % (len(item), item)
    return f"{type(item).__name__}:{item!r};".encode()


class _Hash:
    """What is hashed of a value, part by part."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.parts: list[bytes] = []
        self.numbers: dict[Node, int] = {}
        self.count = 0

    def feed(self, item: Any, defining: bool) -> None:
        if isinstance(item, Node):
            self.feed_node(item, defining)
        elif isinstance(item, (tuple, list)):
            self.parts.append(b"[%d" % len(item))
            for entry in item:
                self.feed(entry, defining)
        elif item is None or isinstance(
            item, (str, int)
        ):  # Most are; to ask for a mapping takes longer.
            self.parts.append(_leaf_bytes(item))
        elif isinstance(item, Mapping):
            self.feed_mapping(item)
        elif type(item) in COMPARED_AS:
            self.feed(COMPARED_AS[type(item)](item), defining)
        else:
            self.parts.append(_leaf_bytes(item))

    def feed_node(self, item: Node, defining: bool) -> None:
        cls = type(item)
        binding = cls in BINDING_CLASSES
        if binding or cls in VARIABLE_CLASSES:
            number = self.numbers.get(item)
            if number is not None:
                self.parts.append(b"#%d" % number)
                return
            self.numbers[item] = self.count
            self.count += 1
            free = not (binding or defining or self.map_free_vars)
            self.parts.append(b"free%d" % id(item) if free else b"var")
        if cls in COMPARED_AS:
            self.feed(COMPARED_AS[cls](item), defining)
            return
        self.parts.append(cls.__name__.encode() + b"(")
        inside = defining or binding
        for name in cls.structural_fields:
            value = getattr(item, name)
            defined = cls.role_of_field[name] == "definition"
            if defined and type(value) in VARIABLE_CLASSES:
                self.numbers.pop(value, None)
            self.feed(value, inside or defined)
        self.parts.append(b")")

    def feed_mapping(self, item: Mapping[Any, Any]) -> None:
        by_name = not any(map(_is_variable, item))
        entries = list(item.items())
        if by_name:  # the functions of a module, too
            entries = sorted((getattr(key, "name_hint", key), entry) for key, entry in entries)
        self.parts.append(b"{%d" % len(entries))
        for key, entry in entries:
            self.feed(key, not by_name)
            self.feed(entry, not by_name)


@nesting_limit("hashed")
def structural_hash(value: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash that agrees with `structural_equal` and is the same in every process."""
    fed, parts = _Hash(map_free_vars), _parts(value)
    fed.feed(value if parts is None else parts, map_free_vars)
    digest = hashlib.blake2b(b"".join(fed.parts), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
