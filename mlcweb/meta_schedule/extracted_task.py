"""What there is to tune in a model: a function, and how often it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.ir import IRModule
from mlcweb.runtime.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedTask:
    """A function of a model.

    Attributes:
        task_name: its name in the model, or that of the first of several that are the same.
        mod: the function as a module of its own, in which it is called "main".
        target: what to tune for.
        dispatched: the programs that may take its place; there is one, `mod`.
        weight: calls of it, and of functions that are the same.
    """

    task_name: str
    mod: IRModule
    target: Target
    dispatched: Sequence[IRModule]
    weight: int
