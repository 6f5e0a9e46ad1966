"""Measured times, as builders, runners, callbacks and databases of TVM's programs read them."""

from __future__ import annotations

from collections.abc import Iterable


class RunSeconds(float):
    """Seconds per call. A number as any other, which TVM's programs also ask for its `value`, since
    there it is a FloatImm."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number itself."""
        return float(self)


def run_seconds(times: Iterable[float] | None) -> tuple[RunSeconds, ...] | None:
    """Times of batches; constants of TensorIR are taken, too."""
    return None if times is None else tuple(RunSeconds(float(time)) for time in times)
