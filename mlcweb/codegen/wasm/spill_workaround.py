"""Orders instructions as wasmtime's compiler needs them to keep sums in registers.

It moves arithmetic behind all loads of a piece of code without branches. In a loop that updates
many sums from many loaded vectors, more of them are alive at once then than there are registers,
and what is spilled lengthens the chain from one iteration to the next: half of the speed is lost.
A branch out of the loop that is never taken, after as many updates as fit, forces these to be
computed before the next loads, since the code behind the loop needs the sums.

Its fused multiplication and addition overwrites the first factor, which is copied if it is needed
again: the factor that is not needed comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction
from mlcweb.codegen.wasm.module import Function

REGISTERS = 12
"""Of 16 registers, some hold what is in the making."""

_UPDATES = frozenset(
    f"{shape}.{operation}"
    for shape in ("f32x4", "f64x2", "i32x4", "i64x2")
    for operation in ("add", "mul", "relaxed_madd", "min", "max", "pmin", "pmax", "max_s", "min_s")
)
_FUSED = ("f32x4.relaxed_madd", "f64x2.relaxed_madd")

_NEVER = -(2**31)
"""No loop counter of ours has this value."""

_STACK_CHANGES = {
    "local.get": 1, "global.get": 1, "local.set": -1, "global.set": -1, "local.tee": 0, "drop": -1,
    "select": -2,
}  # fmt: skip


def spill_workaround(function: Function) -> Function:
    """The function with the updates in crowded innermost loops kept apart."""
    body = list(function.body)
    inserted: dict[int, tuple[Instruction, ...]] = {}
    for start, end in list(_innermost_loops(body)):
        _order_factors(body, start, end)
        guards = _guards(body, start, end)
        if guards:
            inserted.update(guards)
            inserted[start - 1] = (*inserted.get(start - 1, ()), ("block", None))
            inserted[end + 1] = (("end",),)
    new: list[Instruction] = []
    sources: list[object] = []
    names: list[str] = []
    old_names = iter(function.label_names)
    for index, (instruction, source) in enumerate(zip(body, function.sources, strict=True)):
        for added in (*inserted.get(index, ()), instruction):
            new.append(added)
            sources.append(source)
            if added[0] in ("block", "loop", "if"):
                names.append(next(old_names, "") if added is instruction else "")
    for added in inserted.get(len(body), ()):
        new.append(added)
        sources.append(None)
    label_names = tuple(names) if function.label_names else ()
    return replace(function, body=tuple(new), sources=tuple(sources), label_names=label_names)


def _innermost_loops(body: list[Instruction]) -> Iterator[tuple[int, int]]:
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


def _order_factors(body: list[Instruction], start: int, end: int) -> None:
    """Let fused operations start with the factor that is not read again."""
    read_next: dict[object, bool] = {}
    for index in range(end - 1, start - 1, -1):
        name, *immediates = body[index]
        if name == "local.get":
            read_next[immediates[0]] = True
        elif name in ("local.set", "local.tee"):
            read_next[immediates[0]] = False
        elif name in _FUSED and all(body[index - n][0] == "local.get" for n in (1, 2, 3)):
            first, second = body[index - 3 : index - 1]
            if read_next.get(first[1]) and not read_next.get(second[1]):
                body[index - 3 : index - 1] = second, first


def _guards(body: list[Instruction], start: int, end: int) -> dict[int, tuple[Instruction, ...]]:
    """What to insert before which instructions of a loop: branches to the end of a block around."""
    counter = next((i[1] for i in reversed(body[start:end]) if i[0] == "local.tee"), None)
    if counter is None or body[end - 2][0] != "i32.lt_s":
        return {}
    updates: list[tuple[int, object]] = []
    loads: list[int] = []
    depth = 0
    for index in range(start, end):
        name = body[index][0]
        if ".load" in name:
            loads.append(index)
        change = _stack_change(name)
        if change is None:
            return {}
        depth += change
        if depth == 0 and name == "local.set" and body[index - 1][0] in _UPDATES:
            updates.append((index, body[index][1]))
    room = REGISTERS - 1 - len({register for _, register in updates})
    guard = (("local.get", counter), ("i32.const", _NEVER), ("i32.eq",), ("br_if", 1))
    inserted: dict[int, tuple[Instruction, ...]] = {}
    first = start
    group: set[object] = set()
    last = start
    for index, register in updates:
        loaded = sum(first <= load < index for load in loads)
        if group and (register in group or loaded > room):
            inserted[last + 1] = guard
            first = last + 1
            group = set()
        group.add(register)
        last = index
    return inserted


def _stack_change(name: str) -> int | None:
    change = _STACK_CHANGES.get(name)
    if change is not None:
        return change
    if name == "br_if":
        return -1
    effect = OPERATIONS[name].effect
    return None if effect is None else len(effect[1]) - len(effect[0])
