"""The schedules of a program that a search chooses from: rules, generators, post-processors."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from mlcweb.ir import IRModule
    from mlcweb.runtime.target import Target


class TaskInfo(Protocol):
    """What the parts of a space learn of their task: some of what `TuneContext` has."""

    @property
    def mod(self) -> IRModule | None:
        """The program."""
        ...

    @property
    def target(self) -> Target | None:
        """What to build for."""
        ...


class TaskPart:
    """What works for one task: a rule, a post-processor, a mutator. Each task has its own."""

    mod: IRModule | None = None
    """The program of the task."""

    target: Target | None = None
    """The target, by default the best for this machine."""

    def _initialize_with_tune_context(self, context: TaskInfo) -> None:
        """Learn of the task."""
        self.mod, self.target = context.mod, context.target

    def clone(self) -> Self:
        """The same with the same options, for another task."""
        return copy(self)

    @property
    def cores(self) -> int:
        """Cores of the target, which bound how much is made parallel."""
        return 1 if self.target is None else int(self.target.attrs.get("num-cores", 1))

    def limit(self, name: str) -> int:
        """What the target has of something; 0 where that is not known."""
        return 0 if self.target is None else int(self.target.limits.get(name, 0))


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a kind of target has by default; made anew for each task."""

    sch_rules: Callable[[], list[Any]]
    postprocs: Callable[[], list[Any]]
    mutator_probs: Callable[[], dict[Any, float]]


DEFAULTS: dict[str, Defaults] = {}
"""The defaults by kind of target, as `defaults.py` fills them in: "wasm" is for code of this
package; the others are TVM's: "llvm" for processors, "vnni" and "avx512" (x86), "asimd" and
"dotprod" (Arm) for those with instructions that add products of integers, "hexagon" for wide
vectors, "cuda" and "cuda-tensorcore" for GPUs."""


def of_kind(kind: str) -> Defaults:
    """The defaults of a kind; a ValueError lists those there are."""
    if kind not in DEFAULTS:
        kinds = ", ".join(f'"{name}"' for name in DEFAULTS)
        raise ValueError(f'There are no default rules for "{kind}", but for {kinds}')
    return DEFAULTS[kind]
