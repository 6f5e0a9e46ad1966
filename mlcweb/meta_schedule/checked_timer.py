"""Timing of programs that must compute what a reference program computes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.tir import IntImm

if TYPE_CHECKING:
    import numpy as np

TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""Largest error relative to the largest value of an array: schedules may reorder sums."""


class WrongResult(TVMError):
    """A scheduled program computed something else than the unscheduled one."""


class CheckedTimer:
    """Builds a program, compares its results with the reference program's, and times it.

    All buffers start with the same random content for both programs and are compared afterwards.
    Both programs are built for the same target.

    Args:
        reference: the unscheduled program.
        target: a target's name, as `build` takes it.
        function: which function to run; the only one or "main" by default.
        seed: of the random content.
        repeat: how many batches are timed; the median counts.
        min_repeat_ms: least duration of a batch, in milliseconds.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
    """

    def __init__(
        self,
        reference: IRModule,
        *,
        target: str = "llvm",
        function: str | None = None,
        seed: int = 0,
        repeat: int = 3,
        min_repeat_ms: float = 10.0,
    ) -> None:
        self.reference = reference
        self.target = target
        self.function = the_function_name(reference, function)
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.inputs = _random_arrays(reference, self.function, seed)

    @cached_property
    def expected(self) -> list[np.ndarray]:
        """The content of the buffers after the reference program has run."""
        return self._run(self.reference)[2]

    @cached_property
    def baseline_seconds(self) -> float:
        """Time of the reference program."""
        return self._time(*self._run(self.reference)[:2])

    def __call__(self, module: IRModule) -> float:
        """Time of `module` in seconds.

        Raises:
            WrongResult: its results are not those of the reference program.
        """
        library, arguments, results = self._run(module)
        for position, (result, expected) in enumerate(zip(results, self.expected, strict=True)):
            _compare(self._parameter(position), result, expected)
        return self._time(library, arguments)

    def _run(self, module: IRModule) -> tuple[Any, list[Any], list[np.ndarray]]:
        import mlcweb

        library = mlcweb.build(module, target=self.target)
        arguments = [mlcweb.nd.array(array) for array in self.inputs]
        library[self.function](*arguments)
        return library, arguments, [argument.numpy() for argument in arguments]

    def _time(self, library: Any, arguments: list[Any]) -> float:
        import mlcweb

        evaluator = library.time_evaluator(
            self.function,
            mlcweb.cpu(),
            number=1,
            repeat=self.repeat,
            min_repeat_ms=self.min_repeat_ms,
        )
        return float(evaluator(*arguments).median)

    def _parameter(self, position: int) -> str:
        return self.reference[self.function].parameter_buffers[position].name


def _random_arrays(module: IRModule, name: str, seed: int) -> list[np.ndarray]:
    import numpy as np

    function = module[name]
    buffers = function.parameter_buffers
    if len(buffers) != len(function.params):
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
            arrays.append(
                generator.integers(0, 2 if buffer.dtype == "bool" else 8, shape).astype(
                    buffer.dtype
                )
            )
    return arrays


def _compare(name: str, result: np.ndarray, expected: np.ndarray) -> None:
    import numpy as np

    if result.dtype.kind != "f":
        wrong = result != expected
    else:
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        tolerance = TOLERANCES.get(str(result.dtype), 1e-4) * scale
        # Written so that NaN counts as wrong.
        wrong = ~(np.abs(result - expected) <= tolerance)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise WrongResult(
            f"{int(wrong.sum())} of {wrong.size} elements of {name} differ from the unscheduled "
            f"program's; the first is {name}{list(place)}: {result[place]} instead of "
            f"{expected[place]}"
        )
