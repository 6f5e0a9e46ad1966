"""Running a function in the interpreter, and keeping every access that it makes."""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlcweb.codegen.external import callables
from mlcweb.codegen.interpreter import build_function, support
from mlcweb.codegen.names import NameTable
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.playground.access.instrumented import InstrumentedSource, Subscript
from mlcweb.playground.protocol.access import AccessBuffer
from mlcweb.playground.source_lines import Listing, listing
from mlcweb.runtime.registry import get_global_func
from mlcweb.tir import PrimFunc
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.dtype import size_in_bytes

ALIGNMENT = 64
"""Buffers begin at multiples of this many bytes, one after another."""

MAX_ACCESSES = 200_000
MAX_SECONDS = 10.0
_CLOCK_EVERY = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The accesses of one run, in order.

    Attributes:
        listing: the program as it ran; lines of `sites` are lines of it.
        places: the buffers; `sites` are the subscripts that touched them.
        place_of: for each site its number in `places`.
        site: which of `sites` made each access; int64, like the other arrays.
        element: the element touched, counted row by row in its buffer.
        point: the iteration of the loops around it, as one number (mixed radix, innermost last).
        unfinished: why the run was ended before the program's end, or None.
    """

    listing: Listing
    places: tuple[AccessBuffer, ...]
    sites: tuple[Subscript, ...]
    place_of: tuple[int, ...]
    site: np.ndarray
    element: np.ndarray
    point: np.ndarray
    unfinished: str | None

    @property
    def addresses(self) -> np.ndarray:
        """The byte that each access begins at."""
        place = np.array(self.place_of, np.int64)[self.site]
        bases = np.array([place.base for place in self.places], np.int64)
        sizes = np.array([place.item_bytes for place in self.places], np.int64)
        return bases[place] + sizes[place] * self.element

    @property
    def writes(self) -> np.ndarray:
        """Whether each access is a write."""
        return np.array([site.write for site in self.sites], bool)[self.site]

    def elements(self) -> list[tuple[str, int]]:
        """The accesses as names of buffers and numbers of elements."""
        names = [self.places[place].name for place in self.place_of]
        return [(names[s], int(e)) for s, e in zip(self.site, self.element, strict=True)]


def record(
    module: IRModule,
    name: str,
    max_accesses: int = MAX_ACCESSES,
    max_seconds: float = MAX_SECONDS,
) -> Recording:
    """Run a function on random content and record its accesses, up to a number of them or a time.

    What functions do that it calls by name is not recorded.

    Raises:
        TVMError: it takes something else than buffers of constant shape, or leaves their bounds.
    """
    shown = listing(module[name])
    func = shown.function
    contents = random_inputs(IRModule({name: func}), name).inputs
    writer = InstrumentedSource(support.namespace)
    identifier = NameTable().fresh(name)
    # Which accesses there are does not depend on rounding, and NumPy has no bfloat16.
    source = re.sub(r"\bbfloat16\b", "float32", writer.function(func, identifier))
    tape = _Tape(max_accesses, max_seconds)
    functions = {var.name_hint: each for var, each in module.functions.items()}

    def lookup(called: str) -> Any:
        return functions.get(called) or get_global_func(called, True)

    names = {
        **support.namespace,
        "at": support.index_checker(writer.expressions.sites),
        "lookup": callables(lookup, build_function),
        "see": tape.see,
        "see_view": tape.see_view,
    }
    exec(compile(source, f"<recording of {name}>", "exec"), names)
    unfinished = None
    try:
        with np.errstate(all="ignore"):
            names[identifier](*contents)
    except _TapeEnds as end:
        unfinished = str(end)
    sites = tuple(writer.subscripts)
    places = _places(func, sites)
    numbers = {buffer: number for number, buffer in enumerate(places)}
    return Recording(
        shown,
        tuple(places.values()),
        sites,
        tuple(numbers[site.owner] for site in sites),
        np.array(tape.sites, np.int64),
        np.array(tape.elements, np.int64),
        np.array(tape.points, np.int64),
        unfinished,
    )


def _places(func: PrimFunc, sites: Sequence[Subscript]) -> dict[Buffer, AccessBuffer]:
    """Where buffers lie: those of the caller in their order, then those that the function makes."""
    places: dict[Buffer, AccessBuffer] = {}
    end = 0
    for buffer in dict.fromkeys([*func.parameter_buffers, *(site.owner for site in sites)]):
        shape = constant_shape(buffer) or ()
        size = size_in_bytes(buffer.dtype)
        places[buffer] = AccessBuffer(buffer.name, buffer.dtype, list(shape), size, end)
        end += -(-prod(shape) * size // ALIGNMENT) * ALIGNMENT
    return places


class _TapeEnds(Exception):
    """The tape is full; the message says of what."""


class _Tape:
    """What generated code calls with its accesses."""

    def __init__(self, max_accesses: int, max_seconds: float) -> None:
        self.sites = array("q")
        self.elements = array("q")
        self.points = array("q")
        self.most = max_accesses
        self.seconds = max_seconds
        self.end = time.monotonic() + max_seconds

    def see(self, site: int, memory: np.ndarray, point: int, indices: Any) -> Any:
        """Note an access of a buffer that has its memory to itself."""
        element = 0
        for index, extent in zip(indices, memory.shape, strict=True):
            element = element * extent + index
        self.note(site, element, point)
        return indices

    def see_view(
        self, site: int, view: np.ndarray, memory: np.ndarray, point: int, indices: Any
    ) -> Any:
        """Note an access of a view of the memory of another buffer."""
        element = support.element_offset(view, memory)
        for index, stride in zip(indices, support.strides_in_elements(view), strict=True):
            element = element + index * stride
        self.note(site, element, point)
        return indices

    def note(self, site: int, element: Any, point: int) -> None:
        count = len(self.sites)
        if count >= self.most:
            raise _TapeEnds(f"after {self.most:,} accesses")
        if count % _CLOCK_EVERY == 0 and time.monotonic() > self.end:
            raise _TapeEnds(f"after {self.seconds:g} seconds")
        for each in element.tolist() if isinstance(element, np.ndarray) else (element,):
            self.sites.append(site)
            self.elements.append(each)
            self.points.append(point)
