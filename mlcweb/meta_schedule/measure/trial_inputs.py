"""What trials compute on, and what they must compute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.tir import IntImm

if TYPE_CHECKING:
    import numpy as np


TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""Largest error relative to the largest value of an array: schedules may reorder sums."""


class WrongResult(TVMError):
    """A scheduled program computed something else than the unscheduled one."""


@dataclass(frozen=True, slots=True)
class TrialInputs:
    """The buffers of a function: their names, their content before a call, and their content after
    a correct call, as soon as that is known."""

    function: str
    names: tuple[str, ...]
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...] | None = None

    def expecting(self, results: tuple[np.ndarray, ...]) -> TrialInputs:
        """The same with the content of the buffers after a correct call."""
        return replace(self, expected=results)

    def check(self, results: tuple[np.ndarray, ...]) -> None:
        """Compare what a call left in the buffers with what is expected, if that is known.

        Raises:
            WrongResult: it is something else.
        """
        for name, result, expected in zip(
            self.names, results, self.expected or results, strict=True
        ):
            if result is not expected:
                _compare(name, result, expected)


def random_inputs(module: IRModule, function: str | None = None, seed: int = 0) -> TrialInputs:
    """Random content for all buffers of a function, the same for the same seed.

    Args:
        function: its name; the only function, or "main", by default.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
    """
    import numpy as np

    name = the_function_name(module, function)
    buffers = module[name].parameter_buffers
    if len(buffers) != len(module[name].params):
        raise TVMError(f'"{name}" takes more than buffers, so it cannot be run on random content')
    generator = np.random.default_rng(seed)
    arrays = []
    for buffer in buffers:
        shape = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
        if len(shape) != len(buffer.shape):
            raise TVMError(
                f'The buffer "{buffer.name}" of "{name}" has no constant shape; '
                "bind its sizes to numbers before searching"
            )
        if buffer.dtype.startswith("float"):
            arrays.append(generator.uniform(0.0, 1.0, shape).astype(buffer.dtype))
        else:
            highest = 2 if buffer.dtype == "bool" else 8
            arrays.append(generator.integers(0, highest, shape).astype(buffer.dtype))
    return TrialInputs(name, tuple(buffer.name for buffer in buffers), tuple(arrays))


def tolerance(expected: np.ndarray) -> float:
    """The largest difference from the expected content that reordered sums may make; 0 for
    numbers that are not floating."""
    import numpy as np

    if expected.dtype.kind != "f":
        return 0.0
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return TOLERANCES.get(str(expected.dtype), 1e-4) * scale


def _compare(name: str, result: np.ndarray, expected: np.ndarray) -> None:
    import numpy as np

    if result.dtype.kind != "f":
        wrong = result != expected
    else:
        # Written so that NaN counts as wrong.
        wrong = ~(np.abs(result - expected) <= tolerance(expected))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise WrongResult(
            f"{int(wrong.sum())} of {wrong.size} elements of {name} differ from the unscheduled "
            f"program's; the first is {name}{list(place)}: {result[place]} instead of "
            f"{expected[place]}"
        )
