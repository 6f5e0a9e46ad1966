"""What the parts of a search know of its task: a `TuneContext`, which is made of these parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mlcweb.ir import IRModule
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule


class Task(Protocol):
    """A task, as `TuneContext` documents it."""

    mod: IRModule | None
    target: Target | None
    space_generator: Any
    task_name: str
    rand_state: int
    num_threads: int

    @property
    def postprocs(self) -> Sequence[Any]:
        """What every schedule goes through at the end."""
        ...

    @property
    def mutator_probs(self) -> Mapping[Any, float]:
        """How traces are changed, each with its probability."""
        ...

    def generate_design_space(self) -> list[Schedule]:
        """The schedules whose traces are replayed with other decisions."""
        ...
