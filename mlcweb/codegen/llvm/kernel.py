"""Functions to the text of an LLVM module: what it defines, and how that is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.llvm.builder import FunctionBuilder
from mlcweb.codegen.llvm.calls import callee_name, python_name
from mlcweb.codegen.llvm.machine import Processor
from mlcweb.codegen.llvm.parallel import VARIABLES
from mlcweb.codegen.llvm.pipeline import lower_for_llvm
from mlcweb.codegen.llvm.selector import Selector
from mlcweb.codegen.llvm.types import argument_type
from mlcweb.codegen.processor.calls import Calls, PythonCall
from mlcweb.codegen.processor.checks import FAULT_CHECK, FAULT_INDEX, Check
from mlcweb.lower.outline_parallel import outline_parallel
from mlcweb.tir.function import PrimFunc

REPEAT_SUFFIX = "_repeat"

_LIBRARY = re.compile(
    r"(malloc|free|mem(cpy|set|move)|(floor|ceil|trunc|nearbyint|fma|sqrt|fabs|copysign)[fl]?)"
)
"""Functions of the C library that LLVM calls where the processor has no instruction."""


def symbol(name: str) -> str:
    """What a function is called in the module: its own name, unless the C library has it."""
    return f"{name}_kernel" if _LIBRARY.fullmatch(name) else name


@dataclass(frozen=True)
class LlvmModule:
    """A module as text.

    For each function it defines the function under its `symbol`, which takes pointers to buffers
    and scalars in the order of its parameters and returns a status (zero, or why it stopped), and a
    function `<symbol>_repeat`, which takes how often to call it first. The variables `fault_check`
    and `fault_index` say which of the `checks` stopped a kernel. The pointers of the Python
    functions that it calls are to be put into the variables `python.0`, `python.1`, …; where it is
    `parallel`, those of `codegen/llvm/parallel.py` are to be set, too.
    """

    text: str
    functions: Mapping[str, PrimFunc]
    checks: tuple[Check, ...] = ()
    python_calls: tuple[PythonCall, ...] = ()
    parallel: bool = False


def compile_functions(
    functions: Mapping[str, PrimFunc],
    processor: Processor,
    *,
    lookup: Callable[[str], Any] = lambda name: None,
    distinct: bool = True,
    bounds_check: bool = False,
    fused: bool = True,
) -> LlvmModule:
    """Compile TensorIR functions of constant shapes. `lookup` finds the micro-kernels that they
    call by name; what it finds no PrimFunc for is called in Python.

    Args:
        distinct: whether the arrays that the functions are called with share no memory.
        bounds_check: whether accesses outside of their buffers stop the kernel.
        fused: whether a product and a sum of vectors may be rounded once.

    Raises:
        UnsupportedError: something in them has no LLVM form.
    """
    checks: list[Check] = []
    texts: list[str] = []
    parts: list[str] = []
    declared: set[str] = set()
    fused = fused and processor.fuses

    def select(name: str, func: PrimFunc, calls: Calls[None], exported: bool = False) -> None:
        told = distinct if exported else None
        lowered = lower_for_llvm(func, processor, bounds_check, checks, told)
        # Threads would see each other's writes, or find another fault first.
        shared = told is True and not bounds_check
        selector = Selector(
            lowered,
            name,
            checks,
            calls,
            exported=exported,
            distinct=told is True,
            fused=fused,
            regions=outline_parallel(lowered) if shared else {},
        )
        texts.append(selector.select())
        parts.extend(selector.parts)
        declared.update(selector.builder.declared)

    def select_callee(name: str, func: PrimFunc, calls: Calls[None]) -> None:
        select(callee_name(name), func, calls)

    calls = Calls(lookup, select_callee)
    for name, func in functions.items():
        select(symbol(name), func, calls, exported=True)
        texts.append(_repeat(symbol(name), func))
    variables = [f"@{FAULT_CHECK} = global i32 0", f"@{FAULT_INDEX} = global i64 0"]
    variables += [f'@"{python_name(number)}" = global ptr null' for number in calls.python.values()]
    if parts:
        variables += VARIABLES
        texts += parts
    attributes = "attributes #0 = { nounwind }"
    text = "\n\n".join(["\n".join(variables), *texts, "\n".join(sorted(declared)), attributes])
    python = tuple(calls.python)
    return LlvmModule(text + "\n", dict(functions), tuple(checks), python, bool(parts))


def _repeat(name: str, func: PrimFunc) -> str:
    """A function that calls another so many times as its first argument says."""
    kinds = [
        "ptr" if param in func.buffer_map else argument_type(param.dtype) for param in func.params
    ]
    parameters = [f"{kind} %p{position}" for position, kind in enumerate(kinds)]
    builder = FunctionBuilder(name + REPEAT_SUFFIX, ["i64 %number", *parameters])
    again, done = builder.label("again"), builder.label("done")
    before = builder.block
    builder.jump(again)
    builder.start(again)
    left, set_sources = builder.late_phi("i64")
    # Each call counts, though all of them write the same.
    builder.line('call void asm sideeffect "", "~{memory}"()')
    status = builder.value(f'call i32 @"{name}"({", ".join(parameters)})')
    builder.stop_if_failed(status)
    fewer = builder.value(f"sub i64 {left}, 1")
    set_sources(("%number", before), (fewer, builder.block))
    builder.branch(builder.value(f"icmp sgt i64 {fewer}, 0"), again, done)
    builder.start(done)
    return builder.build()
