"""What a benchmark measures: a computation, and the programs that do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlcweb.ir import IRModule
from mlcweb.script import from_source
from mlcweb.tir import Schedule

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Workload:
    """A computation on float32 arrays.

    `inputs` makes the arguments from a random generator, `reference` the result from them.
    `operator` is what other engines call the computation; None where they are not asked. `flops`
    is the number of additions and multiplications; 0 where the time alone says more. The programs
    by name are modules whose "main" takes the inputs and the output; that of the name "best" is
    compared with others. "main" of a `model` is a graph function, which a virtual machine runs: it
    takes the inputs and returns the output. `source` makes the program before any schedule, where
    it is too slow to be among the programs.
    """

    name: str
    operator: str | None
    inputs: Callable[[np.random.Generator], list[Array]]
    reference: Callable[..., Array]
    programs: Mapping[str, Callable[[], IRModule]] = field(repr=False)
    flops: int = 0
    tolerance: float = 1e-4
    model: bool = False
    source: Callable[[], IRModule] | None = field(default=None, repr=False)

    @property
    def as_written(self) -> Callable[[], IRModule]:
        """Makes the program before any schedule."""
        return self.source or self.programs["untransformed"]

    def arguments(self) -> tuple[list[Array], Array]:
        """The inputs, always the same, and what is to come out."""
        inputs = self.inputs(np.random.default_rng(0))
        return inputs, self.reference(*inputs)

    def check(self, result: Array, expected: Array) -> None:
        """An AssertionError where a result is wrong."""
        np.testing.assert_allclose(
            result.reshape(expected.shape), expected, self.tolerance, self.tolerance
        )


def uniform(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Array]]:
    """A maker of arrays of numbers between -1 and 1."""
    return lambda random: [(2 * random.random(s, "float32") - 1).astype("float32") for s in shapes]


def program(text: str, **sizes: int) -> IRModule:
    """The module with the only function "main" that a text in TVMScript defines."""
    func: Any = from_source(text, sizes)
    return IRModule({"main": func.with_attr("global_symbol", "main")})


def scheduled(text: str, schedule: Callable[[Schedule], Any], **sizes: int) -> IRModule:
    """The same after a schedule."""
    sch = Schedule(program(text, **sizes))
    schedule(sch)
    return sch.mod
