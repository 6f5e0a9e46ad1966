"""Why is it faster? The accesses of a program on a small shape, and what a cache makes of them.

Everything here comes from running the interpreter. NumPy is imported when a program is looked at.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import astuple
from typing import TYPE_CHECKING

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.playground.access.small import Small, access_count, smaller
from mlcweb.playground.compared import Program, choices, same_function
from mlcweb.playground.compared import program as program_of
from mlcweb.playground.protocol.access import (
    FIRST_CACHE,
    AccessFigures,
    AccessLoop,
    AccessReport,
    AccessResult,
    AccessSite,
    AccessSize,
    AccessStream,
    CacheSettings,
)
from mlcweb.tir.function import prim_funcs

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.playground.access.cache import Cache
    from mlcweb.playground.access.recording import Recording
    from mlcweb.playground.access.sentences import AccessProfile
    from mlcweb.playground.access.strides import Stride

SIZES = (16, 8, 4, 32, 64)
"""Limits on sizes, in the order in which they are tried where none is asked for."""
ENOUGH = 100_000
"""Accesses that a small program may make; with more, smaller sizes are tried."""


def explain(
    program_id: str,
    function_name: str | None = None,
    other_id: str | None = "",
    size: int | None = None,
    cache: CacheSettings = FIRST_CACHE,
) -> AccessReport:
    """Record the accesses of a function of a registered program.

    Args:
        function_name: by default "main", or the first.
        other_id: the program to compare with, or a step on the way to this one; by default the one
            that its schedule started from, None for no comparison.
        size: the largest size that may stay; 0 for the program as it is, None for a good choice.
    """
    program = program_of(program_id)
    chosen = same_function(program.module, function_name or "main")
    other = _default_comparison(program) if other_id == "" else other_id
    most, note = _chosen_size(program, chosen, size)
    recording, strides = _recorded(program, chosen, most)
    func = recording.listing.function
    ending = f" It was ended {recording.unfinished}." if recording.unfinished else ""
    return AccessReport(
        functions=list(prim_funcs(program.module)),
        function=chosen,
        other=other,
        steps=choices(program.steps),
        size=AccessSize(most, note + ending),
        lines=recording.listing.text.split("\n"),
        buffers=list(recording.places),
        sites=_sites(recording, strides),
        stream=AccessStream(
            len(recording.site),
            _packed(recording.site, "<u2"),
            _packed(recording.element, "<u4"),
            _packed(recording.point, "<f8"),
        ),
        operations=None if recording.unfinished else estimate_flops(func),
        result=simulate(program_id, chosen, other, most, cache),
    )


def simulate(
    program_id: str,
    function_name: str,
    other_id: str | None,
    size: int,
    cache: CacheSettings = FIRST_CACHE,
) -> AccessResult:
    """Run recorded accesses through another cache, or compare them with another program's; `size`
    is ``most`` of `explain`'s answer."""
    from mlcweb.playground.access.cache import Cache
    from mlcweb.playground.access.sentences import compare, describe

    model = Cache(cache.line, cache.size, cache.ways)
    program = program_of(program_id)
    profile = _walk("this program", program, function_name, size, model)
    result = AccessResult(
        hit=_packed(profile.outcome.hit, "u1"),
        evicted=_packed(profile.outcome.evicted, "<i4"),
        rows=_rows(profile),
        total=_total(profile),
        sentences=describe(profile),
        other=None,
    )
    if other_id is None or other_id == program_id:
        return result
    try:
        start = program.other(other_id)
        function = same_function(start.module, function_name)
        before = _walk("the other program", start, function, size, model)
    except TVMError as error:
        result.sentences.insert(0, f"The other program cannot be compared: {error}.")
        return result
    result.sentences = compare(profile, before)
    result.other = _total(before)
    return result


def _default_comparison(program: Program) -> str | None:
    """The program that the schedule of a program started from, where the page can ask for it."""
    derivation = program.made
    if derivation is None:
        return None
    for identifier, start in program.document.programs.items():
        if start is not derivation.result and structural_equal(start, derivation.original):
            return identifier
    return None


def _chosen_size(program: Program, name: str, asked: int | None) -> tuple[int, str]:
    """The limit on sizes to take, 0 for the program as it is, and a sentence about it."""
    if asked == 0:
        return 0, "This is the program as it is."
    reason = ""
    for most in (asked,) if asked else SIZES:
        try:
            small = _small(program, name, most)
            if not small.sizes:
                break
            if not asked and access_count(small.module[name]) > ENOUGH:
                continue
            _recorded(program, name, most)
        except TVMError as error:
            reason = reason or str(error).strip().split("\n")[0]
            continue
        return most, _note(small)
    else:
        reason = reason or "it makes too many accesses"
    if not reason:
        return 0, "The program is small as it is."
    return 0, f"This is the program as it is, since there is no smaller one like it: {reason}."


def _note(small: Small) -> str:
    sizes = ", ".join(f"{old} → {new}" for old, new in small.sizes.items())
    same = "schedule" if small.replayed else "loops"
    return f"Shown at a smaller size ({sizes}), with the same {same}."


def _small(program: Program, name: str, most: int) -> Small:
    if not most:
        return Small(program.module)
    return program.document.cached(smaller, program.module, name, most, program.made)


def _recorded(program: Program, name: str, most: int) -> tuple[Recording, tuple[Stride, ...]]:
    return program.document.cached(_record, _small(program, name, most).module, name)


def _record(module: IRModule, name: str) -> tuple[Recording, tuple[Stride, ...]]:
    from mlcweb.playground.access.recording import record
    from mlcweb.playground.access.strides import strides

    recording = record(module, name)
    return recording, strides(recording)


def _walk(title: str, program: Program, name: str, most: int, cache: Cache) -> AccessProfile:
    from mlcweb.playground.access.cache import simulate as run_through
    from mlcweb.playground.access.sentences import AccessProfile

    recording, moves = _recorded(program, name, most)
    sites = len(recording.sites)
    outcome = run_through(recording.addresses, recording.writes, recording.site, sites, cache)
    return AccessProfile(title, recording, moves, cache, outcome)


def _sites(recording: Recording, strides: Iterable[Stride]) -> list[AccessSite]:
    return [
        AccessSite(
            place,
            site.write,
            site.text,
            site.line,
            [AccessLoop(loop.name, loop.low, loop.extent) for loop in site.loops],
            stride.badge,
            stride.loop,
        )
        for site, place, stride in zip(recording.sites, recording.place_of, strides, strict=True)
    ]


def _rows(profile: AccessProfile) -> list[AccessFigures]:
    import numpy as np

    count, site = len(profile.recording.sites), profile.recording.site
    accesses = np.bincount(site, minlength=count)
    first = np.bincount(site[profile.outcome.first], minlength=count)
    columns = (
        accesses,
        accesses - profile.fetched,
        first,
        profile.fetched,
        profile.outcome.written,
    )
    line = profile.cache.line
    return [
        AccessFigures(*counts, bytes=(counts[3] + counts[4]) * line)
        for counts in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _total(profile: AccessProfile) -> AccessFigures:
    return AccessFigures(*map(sum, zip(*map(astuple, _rows(profile)), strict=True)))


def _packed(values: np.ndarray, dtype: str) -> str:
    """Numbers as bytes in base64."""
    return base64.b64encode(values.astype(dtype).tobytes()).decode()
