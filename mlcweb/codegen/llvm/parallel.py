"""Parallel loops to functions that threads call, each with a part of the iterations.

A kernel writes what the loop uses into a record. If there are several threads, which the host tells
in a variable, it calls the launch function, whose pointer the host has put into another one, with
the loop's entry, its range, and the record; else it calls the entry itself. Without a host, in an
object file, there is one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.codegen.llvm.builder import FunctionBuilder
from mlcweb.codegen.llvm.types import INDEX, value_type
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector
    from mlcweb.lower.outline_parallel import ParallelRegion

THREADS = "parallel.threads"
LAUNCH = "parallel.launch"

VARIABLES = (
    '@"parallel.one" = internal constant i32 1',
    f'@"{THREADS}" = global ptr @"parallel.one"',
    f'@"{LAUNCH}" = global ptr null',
)

SLOT_BYTES = 64
"""A value of any type fits into so many bytes of a record."""


def launch(selector: Selector, region: ParallelRegion) -> None:
    """Write a parallel loop: on the threads that there are, or here if that is one."""
    name = f"{selector.name} parallel {len(selector.parts)}"
    inner = type(selector)(
        region.function,
        name,
        selector.checks,
        selector.calls,
        exported=False,
        distinct=selector.distinct,
        fused=selector.fused,
        indices=selector.indices,
    )
    selector.parts += [inner.select(), _entry(name, region)]
    builder, loop = selector.builder, region.loop
    builder.declared |= inner.builder.declared
    record = builder.allocate(SLOT_BYTES * len(region.captured))
    for position, var in enumerate(region.captured):
        place = builder.value(f"getelementptr i8, ptr {record}, i64 {position * SLOT_BYTES}")
        builder.line(f"store {value_type(var.dtype)} {selector.values[var]}, ptr {place}")
    first = selector.wide(loop.min)
    last = builder.value(f"add {INDEX} {first}, {selector.wide(loop.extent)}")
    entry = f'@"{name} entry"'
    where = f"{INDEX} {first}, {INDEX} {last}, ptr {record}"

    def together() -> str:
        function = builder.value(f'load ptr, ptr @"{LAUNCH}"')
        return builder.value(f"call i32 {function}(ptr {entry}, {where})")

    threads = builder.value(f'load ptr, ptr @"{THREADS}"')
    several = builder.value(f"icmp sgt i32 {builder.value(f'load i32, ptr {threads}')}, 1")
    alone = f"call i32 {entry}({where})"
    builder.stop_if_failed(selector.either(several, "i32", together, lambda: builder.value(alone)))


def _entry(name: str, region: ParallelRegion) -> str:
    """The function that calls a loop's function with what a record holds."""
    builder = FunctionBuilder(
        f"{name} entry", [f"{INDEX} %first", f"{INDEX} %last", "ptr %record"], "internal "
    )
    arguments: list[str] = []
    for end, param in zip(("%first", "%last"), region.function.params, strict=False):
        kind = value_type(param.dtype)
        wide = dtypes.bits(param.dtype) == 64
        bound = end if wide else builder.value(f"trunc {INDEX} {end} to {kind}")
        arguments.append(f"{kind} {bound}")
    for position, var in enumerate(region.captured):
        kind = value_type(var.dtype)
        place = builder.value(f"getelementptr i8, ptr %record, i64 {position * SLOT_BYTES}")
        arguments.append(f"{kind} {builder.value(f'load {kind}, ptr {place}')}")
    builder.stop_if_failed(builder.value(f'call i32 @"{name}"({", ".join(arguments)})'))
    return builder.build()
