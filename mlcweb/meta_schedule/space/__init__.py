"""The schedules of a program that a search chooses from: rules, generators, post-processors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
