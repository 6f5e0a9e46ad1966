"""Going through programs as `tvm_ffi` does: `structural_walk` and what its callbacks answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children


class WalkOrder(IntEnum):
    """Whether a node or what is below it comes first."""

    PREORDER = 0
    POSTORDER = 1


class WalkResult(IntEnum):
    """Whether to go on below a node."""

    ADVANCE = 0
    SKIP = 1


class VisitInterrupt:
    """Ends a walk, which gives it to the caller, with the `value` for the caller in it."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


Callback = Callable[[Any], Any]


def structural_walk(
    root: Node, callbacks: Any = (), *, order: str | WalkOrder = "post"
) -> VisitInterrupt | None:
    """Call the first fitting callback for each statement and expression of `root`.

    Args:
        callbacks: a function for all nodes, a pair of a class (or several) and a function, or a
            sequence of these. A function may answer `WalkResult.SKIP` in pre-order, to leave out
            what is below the node, or a `VisitInterrupt`.
        order: "post", children first, or "pre".

    Returns:
        The `VisitInterrupt` that ended the walk; None where nothing did.

    Raises:
        ValueError: there is no such order.
    """
    if isinstance(order, str):
        orders = {"pre": WalkOrder.PREORDER, "post": WalkOrder.POSTORDER}
        if order not in orders:
            raise ValueError(f'There is no order {order!r} of a walk; "pre" and "post" are')
        order = orders[order]
    entries = list(_entries(callbacks))
    first = order is WalkOrder.PREORDER
    pending: list[tuple[Node, bool]] = [(root, not first)]
    while pending:
        node, waits = pending.pop()
        below = [(child, not first) for child in reversed(children(node))]
        if waits:
            pending += [(node, False), *below]
            continue
        answer = next((call(node) for kinds, call in entries if isinstance(node, kinds)), None)
        if isinstance(answer, VisitInterrupt):
            return answer
        if first and answer is not WalkResult.SKIP:
            pending += below
    return None


def _entries(callbacks: Any) -> Iterator[tuple[tuple[type, ...], Callback]]:
    if callable(callbacks):
        yield (object,), callbacks
    elif _is_pair(callbacks):
        kinds, call = callbacks
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        yield tuple(object if kind is Any else kind for kind in kinds), call
    else:
        for entry in callbacks:
            yield from _entries(entry)


def _is_pair(entry: Sequence[Any]) -> bool:
    if len(entry) != 2 or not callable(entry[1]):
        return False
    kinds = entry[0] if isinstance(entry[0], tuple) else (entry[0],)
    return all(kind is Any or isinstance(kind, type) for kind in kinds)
