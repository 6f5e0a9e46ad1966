"""Functions as C for one thread of a processor, of C99 and two builtins of GCC and Clang.

It is text to read and to compile elsewhere, with -fwrapv, since integers wrap around in TensorIR:
what a target runs here is its own code. Each function takes pointers to the memory of its buffers,
and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.analysis.threads import stored_data
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.codegen.gpu.languages import Language
from mlcweb.codegen.gpu.printer import KernelPrinter, write_functions
from mlcweb.codegen.processor.pipeline import CALLED_WITH_ARRAYS
from mlcweb.ir.errors import TVMError
from mlcweb.lower.pipeline import TO_FLAT_LOOPS, TO_SERIAL_LOOPS, run_pipeline
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc

MAX_STACK = 1 << 16
"""How many bytes of memory a function may have on its stack; what is larger is static."""


def _header(kernel: DeviceKernel, name: Callable[[object], str]) -> list[str]:
    parameters = [
        f"{'' if b.data in kernel.written else 'const '}{C.types[b.dtype]}* {name(b)}"
        for b in kernel.buffers
    ]
    parameters += [f"{C.types[var.dtype]} {name(var)}" for var in kernel.scalars]
    return [f"void {kernel.name}({', '.join(parameters)}) {{"]


def _no_thread(tag: str) -> str:
    raise TVMError(f"C has no threads, such as those of {tag}")


C = Language(
    name="c",
    types={
        "bool": "bool",
        **{f"{kind}{n}": f"{kind}{n}_t" for kind in ("int", "uint") for n in (8, 16, 32, 64)},
        "float32": "float",
        "float64": "double",
    },
    header=_header,
    index=_no_thread,
    barrier="",
    global_barrier="",
    atomic_add=lambda dtype: "{0} += {1};",
    shared="",
    pointer=lambda scope: "",
    forms={
        E.Min: "min_({}, {})",
        E.Max: "max_({}, {})",
        "abs": "abs_({})",
        "rsqrt": "(1 / sqrt({}))",
        "exp10": "pow(10, {})",
        "popcount": "popcount_({})",
    },
    builtins={"clz": "clz_({})"},
    functions={
        "min_": "#define min_(a, b) ((a) <= (b) || (a) != (a) ? (a) : (b))",
        "max_": "#define max_(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))",
        "abs_": "#define abs_(x) ((x) < 0 ? -(x) : (x))",
        "popcount_": (
            "#define popcount_(x) "
            "__builtin_popcountll((uint64_t)(x) & ~0ULL >> (64 - 8 * sizeof(x)))"
        ),
        "clz_": (
            "#define clz_(x) ((x) == 0 ? 8 * (int)sizeof(x) "
            ": __builtin_clzll((uint64_t)(x) << (64 - 8 * sizeof(x))))"
        ),
    },
    suffixes={"float32": "f", "int64": "LL", "uint64": "ULL", "uint32": "u"},
    includes={
        "": "#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n#include <tgmath.h>"
    },
    inline="static inline",
    reserved="I complex imaginary NAN INFINITY HUGE_VAL NULL typeof asm memcpy",
    has_own_float64=False,
)


def c_source(functions: Mapping[str, PrimFunc]) -> str:
    """The text of some functions.

    Raises:
        TVMError: a function has what the language has not, such as vectors or calls.
    """
    return write_functions(
        [_CPrinter(_whole(name, func), C, functions) for name, func in functions.items()]
    )


def _whole(name: str, func: PrimFunc) -> DeviceKernel:
    """A function as a kernel without axes."""
    flat = run_pipeline(func, (CALLED_WITH_ARRAYS, *TO_SERIAL_LOOPS, *TO_FLAT_LOOPS), ())
    scalars = tuple(param for param in flat.params if param not in flat.buffer_map)
    written = frozenset(stored_data(flat.body))
    return DeviceKernel(
        name, flat.parameter_buffers, scalars, written, {}, {}, (), None, flat.body
    )  # fmt: skip


class _CPrinter(KernelPrinter):
    """Writes one function."""

    def type(self, dtype: str, what: str, in_memory: bool = False) -> str:
        if dtypes.lanes(dtype) > 1:
            raise TVMError(f"{what} is {dtype}; C has no vectors, but compilers vectorize loops")
        return super().type(dtype, what, in_memory)

    def vector_copy(self, loop: S.For) -> bool:
        """The compiler makes vectors of loops itself."""
        return False

    def declare_array(self, buffer: Any, word: str) -> None:
        size = buffer.shape[0]
        count = size.value if isinstance(size, E.IntImm) else 0  # what is no constant is refused
        large = count * dtypes.bits(buffer.dtype) > 8 * MAX_STACK
        super().declare_array(buffer, "static " if large else word)

    def reinterpreted(self, value: Any, dtype: str) -> str:
        kind, own = self.type(dtype, "A value"), self.type(value.dtype, "A value")
        name = f"{own}_as_{kind}"
        self.functions[name] = (
            f"static inline {kind} {name}({own} x) {{\n"
            f"  {kind} y;\n  memcpy(&y, &x, sizeof y);\n  return y;\n}}"
        )
        return f"{name}({self.text(value)})"

    def integer_part(self, value: Any, dtype: str, kind: str) -> str:
        low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
        name, most = f"to_{kind}", kind.upper().replace("_T", "_MAX")
        least = 0 if low == 0 else most.replace("MAX", "MIN")
        self.functions[name] = (
            f"static inline {kind} {name}(double x) {{\n"
            f"  if (x >= {high + 1}.) return {most};\n"
            f"  return x > {low - 1}. ? ({kind})x : x != x ? 0 : {least};\n}}"
        )
        return f"{name}({self.text(value)})"
