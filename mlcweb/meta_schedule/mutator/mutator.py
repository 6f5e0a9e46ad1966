"""The interface of mutators: traces changed a little."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from copy import copy
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from mlcweb.schedule import Trace

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


class Mutator(ABC):
    """Changes one decision of a trace."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:  # noqa: B027
        """Learn of the task; most mutators need not."""

    @abstractmethod
    def apply(self, trace: Trace, rng: random.Random) -> Trace | None:
        """A trace with another decision and without post-processing; None where there is nothing
        to change."""

    def clone(self) -> Self:
        """A mutator of the same options, for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The default mutators and their probabilities for a kind of target: "wasm", or "llvm" as
        TVM has them."""
        from mlcweb.meta_schedule.space_generator.defaults import of_kind

        return of_kind(kind).mutator_probs()


class PyMutator(Mutator):
    """What mutators of a program's own are subclasses of, in TVM. Their `apply` may leave the
    generator of random numbers out, and be called without one."""

    def __init_subclass__(cls) -> None:
        apply = vars(cls).get("apply")
        if apply is None:
            return
        takes_generator = len(signature(apply).parameters) > 2

        @wraps(apply)
        def called(self: Any, trace: Trace, rng: Any = None) -> Trace | None:
            return apply(self, trace, rng) if takes_generator else apply(self, trace)

        cls.apply = called
