"""The reference: programs run element by element in plain Python, every access checked.

A function is turned into Python source once and compiled. It accepts TensorIR with blocks as well
as lowered programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.codegen.external import callables
from mlcweb.codegen.interpreter.source import PythonSource
from mlcweb.codegen.names import NameTable
from mlcweb.codegen.registry import FunctionLookup, Kernel, one_by_one
from mlcweb.lower.narrow_floats import emulate_narrow_floats
from mlcweb.lower.narrow_formats import WITHOUT_NUMPY
from mlcweb.lower.expand_instructions import EXPANSION
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.pipeline import run_pipeline, without_threads
from mlcweb.tir.function import PrimFunc

BuildFunction = Callable[[str, PrimFunc, FunctionLookup], Kernel]

EMULATION = emulate_narrow_floats(*WITHOUT_NUMPY)


def build_function(name: str, func: PrimFunc, lookup: FunctionLookup) -> Kernel:
    """A kernel that interprets one function; `lookup` finds what it calls."""
    from mlcweb.codegen.interpreter import support

    writer = PythonSource(support.namespace)
    run, source = compile_python(name, func, writer, lookup, build_function, "interpreter")
    return Kernel(name, func, run, source)


build = one_by_one(build_function)


def compile_python(
    name: str,
    func: PrimFunc,
    writer: PythonSource,
    lookup: FunctionLookup,
    build_called: BuildFunction,
    target: str,
    lowering: Sequence[LoweringPass] = (EXPANSION, without_threads, EMULATION),
) -> tuple[Callable[..., Any], str]:
    """The function that a writer writes after passes, and its text. PrimFuncs that it calls are
    built by `build_called`."""
    import numpy as np

    from mlcweb.codegen.interpreter import support

    identifier = NameTable(writer.namespace).fresh(name)
    source = writer.function(run_pipeline(func, lowering), identifier)
    names = {
        **writer.namespace,
        **writer.constants,
        "at": support.index_checker(writer.expressions.sites),
        "lookup": callables(lookup, build_called),
    }
    exec(support.compiled(source, f"<{target}: {name}>"), names)
    function = names[identifier]

    def run(*arguments: Any) -> Any:
        # Arithmetic as the machine does it: no warnings for overflow, NaN or division by zero.
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run, source
