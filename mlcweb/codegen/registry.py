"""The targets that code can be generated for: one table, from a target's name to its builder.

A builder turns the functions of a module into kernels. Several names may mean one target, and the
general names of a processor ("llvm", "c", "cpu") mean the registered target of highest rank, unless
a target is registered under that very name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.ir.transform import register_option
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Cast
from mlcweb.tir.function import PrimFunc

FunctionLookup = Callable[[str], Any]
"""Finds what a name means that a kernel calls: a Python function, or a PrimFunc to be compiled with
the kernel. An error where there is nothing of the name."""

BOUNDS_CHECK = register_option("mlcweb.bounds_check", bool)
"""Whether compiled code stops at an access outside of its buffer, and says which."""

RELAXED_MADD = register_option("mlcweb.relaxed_madd", bool)
"""Whether compiled code may round a product and a sum of vectors once instead of twice."""

LLVM_PROCESSOR = register_option("mlcweb.llvm_processor", dict)
"""The processor that the target "llvm" makes code for, by LLVM's names: "mtriple", "mcpu", "mattr"
(default: this machine's own)."""

LLVM_OPT_LEVEL = register_option("mlcweb.llvm_opt_level", int)
"""How much LLVM optimises, from 0 to 3 (default)."""

GENERAL_NAMES = ("cpu", "llvm", "c")
"""Names that course code uses for "this machine's processor"."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function ready to run.

    `run` takes one positional argument per parameter: a NumPy array that it may write in place for
    a buffer (an NDArray if `takes_arrays`), a number for a scalar. Arguments are checked before, by
    the runtime. `run_aliased` takes arrays that share memory, where `run` must not.
    `time_batch(number, *arguments)` runs the kernel `number` times with a loop of its own and
    returns the seconds that took. `pointer_call` is how to call it with addresses, where it may be;
    `pointers(arguments)` tells that for arrays of given shapes, which may be symbolic.
    `call_seconds` measures what a call takes that has nothing to do, where that may be much.
    """

    name: str
    function: PrimFunc
    run: Callable[..., Any]
    source: str
    language: str = "python"
    run_aliased: Callable[..., Any] | None = None
    time_batch: Callable[..., float] | None = None
    takes_arrays: bool = False
    pointer_call: Any = None
    pointers: Callable[[tuple[Any, ...]], Any] | None = None
    call_seconds: Callable[[], float] | None = None


class Builder(Protocol):
    """The function `build` of a back end."""

    def __call__(
        self,
        functions: Mapping[str, PrimFunc],
        lookup: FunctionLookup,
        *,
        config: Mapping[str, Any],
    ) -> Mapping[str, Kernel]:
        """A kernel for each function. `config` has the options that were set, which a back end
        that cannot do otherwise leaves alone."""
        ...


def one_by_one(build_function: Callable[[str, PrimFunc, FunctionLookup], Kernel]) -> Builder:
    """The builder of a back end that makes each kernel for itself, and checks all accesses whatever
    the options say."""

    def build(
        functions: Mapping[str, PrimFunc],
        lookup: FunctionLookup,
        *,
        config: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Kernel]:
        return {name: build_function(name, func, lookup) for name, func in functions.items()}

    return build


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A registered target. `load` imports its builder, when that is first used, since back ends may
    need NumPy."""

    name: str
    load: Callable[[], Builder]
    aliases: tuple[str, ...]
    rank: int

    def build(
        self,
        functions: Mapping[str, PrimFunc],
        lookup: FunctionLookup,
        config: Mapping[str, Any] = MappingProxyType({}),
    ) -> Mapping[str, Kernel]:
        """The kernels of some functions, with the options of `config`."""
        builder = self.load()
        with nesting_limit("built"):
            for func in functions.values():
                _refuse_element_types(func)
            return builder(functions, lookup, config=config)


def _refuse_element_types(func: PrimFunc) -> None:
    """Most floats of fewer than 16 bits, and vectors as elements of buffers, are read, printed and
    scheduled, but no target computes them."""
    for node in (*func.buffer_map.values(), *walk(func.body)):
        buffer = getattr(node, "buffer", node)
        if isinstance(buffer, Buffer) and dtypes.lanes(buffer.dtype) > 1:
            raise TVMError(
                f'No target here has buffers of vectors, as "{buffer.name}" of {buffer.dtype}; '
                "declare its numbers one by one, and index it with a slice"
            )
        if not isinstance(node, (Buffer, BufferLoad, Cast)):
            continue
        element = dtypes.element_of(node.dtype)
        if element in dtypes.NARROW_FLOATS and element not in dtypes.NUMBERS_OF_BYTES:
            others = " or ".join(dtypes.NUMBERS_OF_BYTES)
            raise TVMError(f"No target here computes with {node.dtype}; use float16, {others}")


_targets: dict[str, TargetEntry] = {}


def register_target(
    name: str, load: Callable[[], Builder], aliases: tuple[str, ...] = (), rank: int = 0
) -> TargetEntry:
    """Add a target. `load` imports its builder; it is called when something is built. Of all
    targets, the one with the greatest `rank` is the default for processors."""
    entry = TargetEntry(name, load, aliases, rank)
    _targets[name] = entry
    return entry


def default_target() -> TargetEntry:
    """The best target for this machine's processor."""
    return max(_targets.values(), key=lambda entry: entry.rank)


def find_target(name: str) -> TargetEntry:
    """The target that `name` means; a TVMError lists the names there are."""
    if name in _targets:
        return _targets[name]
    for entry in _targets.values():
        if name in entry.aliases:
            return entry
    if name in GENERAL_NAMES:
        return default_target()
    raise TVMError(f'No code generator for target "{name}"; there are {", ".join(target_names())}')


def target_names() -> list[str]:
    """Every name that `find_target` knows."""
    names = {name for entry in _targets.values() for name in (entry.name, *entry.aliases)}
    return sorted(names | set(GENERAL_NAMES))
