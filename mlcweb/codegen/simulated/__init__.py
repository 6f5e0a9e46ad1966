"""A simulated GPU that watches its threads: slow, for small inputs, and strict.

The threads of a block run in turns, each from one barrier to the next, and every access to memory
that others see is noted. A program stops with an error that names both threads and both lines where
its result would depend on their order, where not all threads reach a barrier, where one reads
memory of a block or of its own that nobody has written, and where an index is out of bounds.

Barriers that shared memory needs are put in as for a GPU's source, where all threads reach them;
`PassContext(disabled_pass=["tir.ThreadSync"])` leaves the program with those that it has itself.
"""

from __future__ import annotations

from mlcweb.codegen.interpreter import compile_python
from mlcweb.codegen.registry import FunctionLookup, Kernel, one_by_one
from mlcweb.codegen.simulated.source import SimulatedSource
from mlcweb.lower.narrow_floats import emulate_narrow_floats
from mlcweb.lower.narrow_formats import WITHOUT_NUMPY
from mlcweb.lower.launch_threads import passes_to_simulated_threads
from mlcweb.tir.function import PrimFunc


def build_function(name: str, func: PrimFunc, lookup: FunctionLookup) -> Kernel:
    """A kernel that simulates the threads of one function."""
    passes = *passes_to_simulated_threads(), emulate_narrow_floats(*WITHOUT_NUMPY)
    run, source = compile_python(
        name, func, SimulatedSource(), lookup, build_function, "simulated", passes
    )
    return Kernel(name, func, run, source)


build = one_by_one(build_function)
