"""Walking and rewriting IR, written once for all node classes from their field tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any, ClassVar, TypeVar

from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.ir.node import Node

NodeType = TypeVar("NodeType", bound=Node)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`, in field order. Definitions and references are left out."""
    return node.children()


def post_order_visit(node: Node, visit: Callable[[Node], None]) -> None:
    """Call `visit` on every node below `node` and on itself, children first."""
    stack = [(node, iter(children(node)))]
    while stack:
        current, below = stack[-1]
        child = next(below, None)
        if child is None:
            stack.pop()
            visit(current)
        else:
            stack.append((child, iter(children(child))))


def walk(node: Node) -> Iterator[Node]:
    """Every node below `node` and itself, parents first, in field order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += current.children()[::-1]


def find_nodes(node: Node, *types: type[NodeType]) -> Iterator[NodeType]:
    """Those of `walk` that are of some classes."""
    return (part for part in walk(node) if isinstance(part, types))


def on(*types: type[Node]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a method of a `Visitor` or `Mutator` as the handler of these node classes."""

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        method.node_types = types  # type: ignore[attr-defined]
        return method

    return mark


class Dispatcher:
    """Collects the methods marked with `on` into one table per class, inherited by subclasses."""

    table: ClassVar[dict[type, Callable[..., Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls.table = dict(cls.table)
        for method in vars(cls).values():
            for node_type in getattr(method, "node_types", ()):
                cls.table[node_type] = method


class Visitor(Dispatcher):
    """Walks a tree; node classes without a handler are walked through."""

    def visit(self, node: Node) -> None:
        handler = self.table.get(type(node))
        if handler is None:
            self.visit_children(node)
        else:
            handler(self, node)

    def visit_children(self, node: Node) -> None:
        try:
            for child in children(node):
                self.visit(child)
        except TOO_DEEP:
            raise nests_too_deep("walked") from None


class Mutator(Dispatcher):
    """Rewrites a tree; whatever does not change is returned as the same object."""

    def rewrite(self, node: Any) -> Any:
        handler = self.table.get(type(node))
        return node.rewritten(self) if handler is None else handler(self, node)

    def rewrite_children(self, node: NodeType) -> NodeType:
        """`node.rewritten(self)`, which handlers of what nests deep call without this step."""
        return node.rewritten(self)

    def rewrite_tuple(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        new = tuple([self.rewrite(item) for item in items])
        return items if all(map(is_, new, items)) else new


class Replacement(Mutator):
    """Puts in place of a node what `choose` gives for it, as it is; other nodes, for which that is
    None, are walked through."""

    def __init__(self, choose: Callable[[Any], Any]) -> None:
        self.choose = choose

    def rewrite(self, node: Any) -> Any:
        new = self.choose(node)
        return node.rewritten(self) if new is None else new


class _Change(Mutator):
    def __init__(self, types: tuple[type[Node], ...], change: Callable[[Any], Node]) -> None:
        self.types = types
        self.change = change

    def rewrite(self, node: Any) -> Any:
        new = node.rewritten(self)
        return self.change(new) if isinstance(new, self.types) else new


def rewrite_nodes(
    node: NodeType, types: type[Node] | tuple[type[Node], ...], change: Callable[[Any], Node]
) -> NodeType:
    """A tree with each node of some classes, whose children are done, replaced by what `change`
    makes of it."""
    return _Change(types if isinstance(types, tuple) else (types,), change).rewrite(node)
