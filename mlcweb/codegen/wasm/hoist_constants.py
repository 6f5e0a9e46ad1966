"""Vector constants inside loops become locals that are set once, at the start of the function.

Engines may build a constant anew, in several steps, wherever it stands.
"""

from __future__ import annotations

from dataclasses import replace

from mlcweb.codegen.wasm.instructions import Instruction
from mlcweb.codegen.wasm.module import Function

TRIVIAL = (bytes(16), b"\xff" * 16)
"""Constants that every engine makes with one instruction."""


def hoist_constants(function: Function) -> Function:
    """The function with its vector constants in locals, where they stand in loops."""
    first = len(function.type.parameters) + len(function.locals)
    kept: dict[bytes, int] = {}
    body: list[Instruction] = []
    loops: list[bool] = []
    depth = 0
    for instruction in function.body:
        name = instruction[0]
        if name in ("block", "loop", "if"):
            loops.append(name == "loop")
            depth += name == "loop"
        elif name == "end":
            depth -= loops.pop()
        elif name == "v128.const" and depth and instruction[1] not in TRIVIAL:
            local = kept.setdefault(instruction[1], first + len(kept))
            instruction = ("local.get", local)
        body.append(instruction)
    if not kept:
        return function
    start: list[Instruction] = []
    for value, local in kept.items():
        start += [("v128.const", value), ("local.set", local)]
    names = function.local_names and (*function.local_names, *("constant" for _ in kept))
    return replace(
        function,
        locals=(*function.locals, *("v128" for _ in kept)),
        local_names=names,
        body=(*start, *body),
        sources=(*(None for _ in start), *function.sources),
    )
