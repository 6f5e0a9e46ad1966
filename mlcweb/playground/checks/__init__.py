"""Checkers of the lessons' exercises: functions of these names, by what the exercises are about.

A checker takes the variables that the reader's cells have defined. It returns what to say to
someone who got it right, and raises `Wrong` with what to say to someone who did not yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from mlcweb.ir import Span, TVMError
from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.playground.protocol.program import Verdict

_CHECKERS = {
    "tensorir": ("first_program", "jfactor", "broadcast_add", "conv2d", "bmm_relu"),
    "models": ("packed_functions", "te_linear", "matmul_add_fusion"),
    "searching": ("stochastic_schedule", "beat_this_time"),
    "gpu": ("gpu_coalesce", "thread_blocks", "tensorize", "pack_weights", "tensor_cores"),
}
"""The exercises by the modules of their checkers, which are imported when one is asked for."""

GPU_KERNELS = (
    "gpu_map",
    "gpu_zip",
    "gpu_guard",
    "gpu_broadcast",
    "gpu_blocks",
    "gpu_shared",
    "gpu_pooling",
    "gpu_dot",
    "gpu_conv1d",
    "gpu_prefix_sum",
    "gpu_axis_sum",
    "gpu_matmul",
    "gpu_find_race",
)
"""Those that one module checks, `gpu_puzzles`."""

EXERCISES = (*chain.from_iterable(_CHECKERS.values()), *GPU_KERNELS)

_checker = lazy_attributes(__name__, {**_CHECKERS, "gpu_puzzles": ()})


def judge(exercise: str, variables: Mapping[str, Any]) -> Verdict:
    """Check an exercise; an error that the reader's program raises meanwhile is a verdict, too."""
    if exercise not in EXERCISES:
        raise TVMError(f'there is no exercise "{exercise}"')
    try:
        if exercise in GPU_KERNELS:
            return Verdict(True, _checker("gpu_puzzles").check(exercise, variables))
        return Verdict(True, _checker(exercise)(variables))
    except Wrong as wrong:
        return Verdict(False, str(wrong), _excerpt(wrong))
    except Exception as error:
        reason = str(getattr(error, "reason", "") or getattr(error, "message", "") or error)
        message = f"Your program raised {type(error).__name__}: {reason}"
        return Verdict(False, message, _excerpt(error))


def _excerpt(error: Exception) -> str:
    """The lines of the program that an error is about, with carets."""
    span = getattr(error, "span", None)
    return span.render() if isinstance(span, Span) else ""
