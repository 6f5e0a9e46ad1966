"""From where to where in a function the memory of a tensor is needed.

Values that may hold the same tensor (a tuple and its fields, a branch and its results, what a
function gives and gets) form a group; the memory is needed until the group is last read, and
forever if the group leaves the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlcweb.relax_vm.instructions import (
    Alloc,
    Branch,
    CallFunction,
    CallPacked,
    CallValue,
    FunctionPlan,
    GetItem,
    Instruction,
    MakeFunction,
    MakeTuple,
    Register,
    walk,
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """An allocation: the positions of it and of the last instruction that needs it, which is None
    where the tensor leaves the function."""

    alloc: Alloc
    start: int
    end: int | None


class _Groups:
    """Registers that may hold the same tensor (disjoint sets)."""

    def __init__(self) -> None:
        self._parent: dict[Register, Register] = {}

    def find(self, register: Register) -> Register:
        parent = self._parent.get(register, register)
        if parent == register:
            return register
        self._parent[register] = root = self.find(parent)
        return root

    def join(self, first: Register, *others: Register) -> None:
        for other in others:
            self._parent[self.find(other)] = self.find(first)


def lifetimes(plan: FunctionPlan, keeps_arguments: Callable[[str], bool]) -> list[Lifetime]:
    """The lifetimes of all allocations, in order. `keeps_arguments` tells of the functions of the
    module whether something that they call may keep what they are given."""
    groups = _Groups()
    last: dict[Register, int] = {}
    leaving: list[Register] = [plan.body.result]
    allocations: list[tuple[int, Alloc]] = []
    for position, instruction in enumerate(walk(plan.body)):
        for register in instruction.reads:
            last[register] = position
        if isinstance(instruction, Alloc):
            allocations.append((position, instruction))
            last[instruction.dst] = position
        elif isinstance(instruction, Branch):
            groups.join(instruction.dst, instruction.true.result, instruction.false.result)
        elif isinstance(instruction, (MakeTuple, GetItem, CallFunction, CallValue)):
            groups.join(instruction.dst, *instruction.reads)
        if _lets_go(instruction, keeps_arguments):
            leaving.extend(instruction.reads)
    gone = {groups.find(register) for register in leaving}
    ends: dict[Register, int] = {}
    for register, position in last.items():
        root = groups.find(register)
        ends[root] = max(ends.get(root, 0), position)
    return [
        Lifetime(alloc, start, None if root in gone else ends[root])
        for start, alloc in allocations
        for root in (groups.find(alloc.dst),)
    ]


def _lets_go(instruction: Instruction, keeps_arguments: Callable[[str], bool]) -> bool:
    """Whether the instruction passes tensors to code that may keep them."""
    if isinstance(instruction, CallPacked):
        return instruction.dst is not None
    if isinstance(instruction, CallFunction):
        return keeps_arguments(instruction.function)
    return isinstance(instruction, (CallValue, MakeFunction))


def functions_that_keep(plans: Mapping[str, FunctionPlan]) -> frozenset[str]:
    """The functions of a module that may keep their arguments, by themselves or by what they
    call."""
    keeping: set[str] = set()
    growing = True
    while growing:
        before = len(keeping)
        for name, plan in plans.items():
            if any(_lets_go(item, keeping.__contains__) for item in walk(plan.body)):
                keeping.add(name)
        growing = len(keeping) > before
    return frozenset(keeping)
