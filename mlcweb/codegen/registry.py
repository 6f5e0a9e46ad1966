"""The targets that code can be generated for: one table, from a target's name to its builder.

A builder turns the functions of a module into kernels. Several names may mean one target, and the
general names of a processor ("llvm", "c", "cpu") mean the registered target of highest rank.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.tir.function import PrimFunc

FunctionLookup = Callable[[str], Callable[..., Any]]
"""Finds a registered Python function by name, for calls out of a kernel."""

GENERAL_NAMES = ("cpu", "llvm", "c")
"""Names that course code uses for "this machine's processor"."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function ready to run.

    `run` takes one positional argument per parameter: a NumPy array that it may write in place for
    a buffer (an NDArray if `takes_arrays`), a number for a scalar. Arguments are checked before, by
    the runtime. `run_aliased` takes arrays that share memory, where `run` must not.
    `time_batch(number, *arguments)` runs the kernel `number` times with a loop of its own and
    returns the seconds that took.
    """

    name: str
    function: PrimFunc
    run: Callable[..., Any]
    source: str
    language: str = "python"
    run_aliased: Callable[..., Any] | None = None
    time_batch: Callable[..., float] | None = None
    takes_arrays: bool = False


Builder = Callable[[Mapping[str, PrimFunc], FunctionLookup], Mapping[str, Kernel]]


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A registered target. `module` holds its function `build`, a `Builder`; it is imported when
    first used, since back ends may need NumPy."""

    name: str
    module: str
    aliases: tuple[str, ...]
    rank: int

    def build(self, functions: Mapping[str, PrimFunc], lookup: FunctionLookup) -> Any:
        return importlib.import_module(self.module).build(functions, lookup)


_targets: dict[str, TargetEntry] = {}


def register_target(
    name: str, module: str, aliases: tuple[str, ...] = (), rank: int = 0
) -> TargetEntry:
    """Add a target. Of all, the one with the greatest `rank` is the default for processors."""
    entry = TargetEntry(name, module, aliases, rank)
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


register_target("interpreter", "mlcweb.codegen.interpreter", rank=0)
register_target("numpy", "mlcweb.codegen.numpy", rank=10)
