"""Parallel loops to functions that threads call, each with a part of the iterations.

Before the loop a kernel looks up in memory whether there is more than one thread. If so, it writes
what the loop uses into a record in its scratch memory and calls the imported launch function with
the number of the loop, its range, and the address of the record. That calls the loop's entry from
several threads, each in an instance of the module of its own: first and last iteration, the record,
and scratch memory of the thread. With a single thread the kernel calls the loop's function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import Function, FunctionType, Import
from mlcweb.codegen.wasm.select_types import stack_type

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector
    from mlcweb.lower.outline_parallel import ParallelRegion

LAUNCH = "parallel.launch"
LAUNCH_TYPE = FunctionType(("i32", "i32", "i32", "i32"))
LAUNCH_IMPORT = Import("parallel", "launch", LAUNCH_TYPE, LAUNCH)
ENTRY_EXPORT = "parallel.{}"
"""What the entry of a loop is exported as, by the loop's number."""

THREADS_ADDRESS = 2048
"""Where the memory has the number of threads that run parallel loops, as an i32."""

SLOT_BYTES = 16
"""A value of any type fits into so many bytes of a record."""


@dataclass(frozen=True, slots=True)
class ParallelLoop:
    """A loop as threads call it: what its entry is exported as, and the scratch bytes it needs."""

    entry: str
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class SelectedLoop:
    """A selected parallel loop: its function, and the entry that unpacks a record for it."""

    function: Function
    entry: Function
    loop: ParallelLoop


def launch(selector: FunctionSelector, region: ParallelRegion) -> None:
    """Emit a parallel loop: on the threads that there are, or here if that is one."""
    emit = selector.emit
    loops = selector.calls.loops
    number = len(loops)
    inner = type(selector)(
        region.function,
        f"{selector.builder.name}_parallel_{number}",
        selector.options,
        selector.checks,
        selector.calls,
        indices=selector.indices,
    )
    selected = inner.select()
    selector.helpers |= selected.helpers
    function = selected.function
    entry = _entry(function)
    loop = ParallelLoop(ENTRY_EXPORT.format(number), selected.scratch_bytes)
    loops.append(SelectedLoop(function, entry, loop))
    kinds = _captured(function)
    needed = max(len(kinds) * SLOT_BYTES, selected.scratch_bytes)
    selector.scratch_bytes = max(selector.scratch_bytes, selector.scratch + needed)
    ends = region.loop.min, region.loop.min + region.loop.extent

    emit("i32.const", 0)
    emit("i32.load", THREADS_ADDRESS)
    emit("i32.const", 1)
    emit("i32.gt_s")
    with selector.builder.branch():
        for position, (var, kind) in enumerate(zip(region.captured, kinds, strict=True)):
            emit("local.get", selector.builder.parameter("scratch"))
            emit("local.get", selector.locals[var])
            emit(f"{kind}.store", selector.scratch + position * SLOT_BYTES)
        emit("i32.const", number)
        for end in ends:
            selector.push(end)
            if stack_type(end.dtype) == "i64":
                emit("i32.wrap_i64")
        selector.push_scratch()
        emit("call", LAUNCH)
        selector.builder.otherwise()
        selector.push(*ends)
        for var in region.captured:
            emit("local.get", selector.locals[var])
        selector.push_scratch()
        emit("call", function.name)


def _captured(function: Function) -> Sequence[ValueType]:
    """The types of what a loop's function takes between its range and its scratch memory."""
    return function.type.parameters[2:-1]


def _entry(function: Function) -> Function:
    """The function that calls a loop's function with what a record holds."""
    builder = FunctionBuilder(
        f"{function.name}_entry",
        [("first", "i32"), ("last", "i32"), ("record", "i32"), ("scratch", "i32")],
    )
    emit = builder.emit
    for end in ("first", "last"):
        emit("local.get", builder.parameter(end))
        if function.type.parameters[0] == "i64":
            emit("i64.extend_i32_s")
    for position, kind in enumerate(_captured(function)):
        emit("local.get", builder.parameter("record"))
        emit(f"{kind}.load", position * SLOT_BYTES)
    emit("local.get", builder.parameter("scratch"))
    emit("call", function.name)
    return builder.build()
