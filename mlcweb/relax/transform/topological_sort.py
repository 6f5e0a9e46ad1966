"""TopologicalSort: the bindings of dataflow blocks in another order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from mlcweb.ir.node import Node
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import free_vars
from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info
from mlcweb.relax.analysis.variables import symbolic_vars_used
from mlcweb.relax.transform.registration import functionwise

ORDERS = ("depth-first", "breadth-first")
DIRECTIONS = ("from-inputs", "from-outputs")


def TopologicalSort(order: str = "depth-first", direction: str = "from-inputs") -> Pass:
    """Sort the bindings of dataflow blocks.

    Args:
        order: "depth-first" brings what uses a value close to it, "breadth-first" goes level by
            level.
        direction: "from-inputs" begins with what depends on nothing in the block, "from-outputs"
            at the end with what nothing in the block depends on.
    """
    for name, value, allowed in (("order", order, ORDERS), ("direction", direction, DIRECTIONS)):
        if value not in allowed:
            raise ValueError(
                f"TopologicalSort: {name} is {' or '.join(map(repr, allowed))}, not {value!r}"
            )
    sorting = _Sorting(order == "breadth-first", direction == "from-inputs")
    return functionwise("TopologicalSort", sorting.rewrite)


class _Sorting(Mutator):
    def __init__(self, breadth_first: bool, from_inputs: bool) -> None:
        self.breadth_first = breadth_first
        self.from_inputs = from_inputs

    @on(E.DataflowBlock)
    def block(self, block: E.DataflowBlock) -> Node:
        used, users = _dependences(block)
        first = self.order(used, users) if self.from_inputs else self.order(users, used)[::-1]
        bindings = [block.bindings[i] for i in first]
        return E.DataflowBlock(bindings, span=block.span)

    def order(self, before: list[list[int]], after: list[list[int]]) -> list[int]:
        """Positions, each after all `before` it."""
        waiting = [len(each) for each in before]
        ready = [i for i, count in enumerate(waiting) if not count]
        queue = deque(self.pushed(ready))
        done: list[int] = []
        while queue:
            here = queue.popleft() if self.breadth_first else queue.pop()
            done.append(here)
            freed = []
            for other in after[here]:
                waiting[other] -= 1
                if not waiting[other]:
                    freed.append(other)
            queue.extend(self.pushed(freed))
        return done

    def pushed(self, positions: list[int]) -> Iterable[int]:
        """Positions as they are put on the queue: of a stack the last is taken first."""
        stack = not self.breadth_first and self.from_inputs
        return reversed(positions) if stack else positions


def _dependences(block: E.DataflowBlock) -> tuple[list[list[int]], list[list[int]]]:
    """For each binding, the positions of those that it needs, and of those that need it."""
    position: dict[object, int] = {}
    used: list[list[int]] = []
    users: list[list[int]] = [[] for _ in block.bindings]
    for i, binding in enumerate(block.bindings):
        needs: list[object] = [*free_vars(binding.value), *symbolic_vars_used(binding.value)]
        if binding.var.struct_info is not None:
            needs.extend(dims.prim_vars(binding.var.struct_info))
        used.append(list(dict.fromkeys(position[need] for need in needs if need in position)))
        for other in used[-1]:
            users[other].append(i)
        position[binding.var] = i
        if isinstance(binding, E.MatchCast):
            for var in definable_tir_vars_in_struct_info(binding.struct_info):
                position.setdefault(var, i)
    return used, users
