"""Keeps wasmtime from needing more vector registers than there are.

Its compiler moves arithmetic behind all loads of a block. In a loop that updates many accumulators
from many loaded vectors, then more of them are alive at once than there are registers, and what is
spilled lengthens the chain from one iteration to the next: half of the speed is lost. A branch that
is never taken, around a few updates, forces those to be computed before the next loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction
from mlcweb.codegen.wasm.module import Function

REGISTERS = 16
UPDATES_TOGETHER = 4
"""So many updates are kept together."""

_UPDATES = frozenset(
    f"{shape}.{operation}"
    for shape in ("f32x4", "f64x2", "i32x4", "i64x2")
    for operation in ("add", "mul", "relaxed_madd", "min", "max", "pmin", "pmax", "max_s", "min_s")
)

_NEVER = -(2**31)
"""No loop counter of ours has this value."""

_STACK_CHANGES = {
    "local.get": 1, "global.get": 1, "local.set": -1, "global.set": -1, "local.tee": 0, "drop": -1,
    "select": -2,
}  # fmt: skip


def keep_order(function: Function) -> Function:
    """The function with the updates in crowded innermost loops kept apart."""
    body = function.body
    inserted: dict[int, tuple[Instruction, ...]] = {}
    for start, end in _innermost_loops(body):
        inserted.update(_guards(body, start, end))
    if not inserted:
        return function
    new: list[Instruction] = []
    sources: list[object] = []
    for index, instruction in enumerate(body):
        added = inserted.get(index, ())
        new += [*added, instruction]
        sources += [function.sources[index]] * (len(added) + 1)
    names = function.label_names
    if names:
        names = _with_guard_names(new, names)
    return replace(function, body=tuple(new), sources=tuple(sources), label_names=names)


def _with_guard_names(body: list[Instruction], names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of all labels: guards have none."""
    old = iter(names)
    result = []
    for position, instruction in enumerate(body):
        if instruction[0] in ("block", "loop", "if"):
            result.append("" if _is_guard(body, position) else next(old))
    return tuple(result)


def _is_guard(body: list[Instruction], position: int) -> bool:
    return body[position][0] == "block" and body[position + 2 : position + 3] == [
        ("i32.const", _NEVER)
    ]


def _innermost_loops(body: tuple[Instruction, ...]) -> Iterator[tuple[int, int]]:
    """Where the bodies of loops without blocks in them start and end."""
    start = None
    for index, instruction in enumerate(body):
        name = instruction[0]
        if name in ("block", "loop", "if", "else"):
            start = index + 1 if name == "loop" else None
        elif name == "end":
            if start is not None:
                yield start, index
            start = None


def _guards(
    body: tuple[Instruction, ...], start: int, end: int
) -> dict[int, tuple[Instruction, ...]]:
    """What to insert before which instructions of a loop."""
    counter = next((i[1] for i in reversed(body[start:end]) if i[0] == "local.tee"), None)
    updates: list[int] = []
    loads = depth = 0
    for index in range(start, end):
        name = body[index][0]
        loads += ".load" in name
        change = _stack_change(name)
        if change is None:
            return {}
        depth += change
        if depth == 0 and name == "local.set" and body[index - 1][0] in _UPDATES:
            updates.append(index)
    if counter is None or loads + len(updates) < REGISTERS or body[end - 2][0] != "i32.lt_s":
        return {}
    guard = (
        ("block", None), ("local.get", counter), ("i32.const", _NEVER), ("i32.eq",), ("br_if", 0),
    )  # fmt: skip
    inserted: dict[int, tuple[Instruction, ...]] = {}
    first = start
    for last in updates[UPDATES_TOGETHER - 1 : -1 : UPDATES_TOGETHER]:
        inserted[first] = (*inserted.get(first, ()), *guard)
        first = last + 1
        inserted[first] = (("end",),)
    return inserted


def _stack_change(name: str) -> int | None:
    known = _STACK_CHANGES.get(name)
    if known is not None:
        return known
    if name == "br_if":
        return -1
    effect = OPERATIONS[name].effect
    return None if effect is None else len(effect[1]) - len(effect[0])
