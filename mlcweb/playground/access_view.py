"""Why is it faster? The accesses of a program on a small shape, and what a cache makes of them.

Everything here comes from running the interpreter. NumPy is imported when a program is looked at.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.playground.access import derivation
from mlcweb.playground.access.small import Small, access_count, smaller
from mlcweb.playground.code_view import find_program, function_names, programs

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.playground.access.cache import Cache
    from mlcweb.playground.access.derivation import Derivation
    from mlcweb.playground.access.recording import Recording
    from mlcweb.playground.access.sentences import AccessProfile
    from mlcweb.playground.access.strides import Strides

SIZES = (16, 8, 4, 32, 64)
"""Limits on sizes, in the order in which they are tried where none is asked for."""
ENOUGH = 100_000
"""Accesses that a small program may make; with more, smaller sizes are tried."""
LINE, SIZE, WAYS = 32, 512, 4
"""The cache at first: so small that a matrix of 16x16 does not fit."""


def explain(
    identifier: str,
    name: str | None = None,
    other: str | None = "",
    size: int | None = None,
    line: int = LINE,
    cache_bytes: int = SIZE,
    ways: int = WAYS,
) -> dict[str, Any]:
    """Record the accesses of a function of a registered program.

    Args:
        name: the function; by default "main", or the first.
        other: the program to compare with, or a step on the way to this one; by default the one
            that its schedule started from, None for no comparison.
        size: the largest size that may stay; 0 for the program as it is, None for a good choice.
        line, cache_bytes, ways: the simulated cache, see `access.cache.Cache`.

    Returns:
        Plain JSON. ``functions`` and ``function``; ``other`` (identifier or None); ``steps``, the
        steps of its schedule that can be compared with (``id`` and ``title``); ``size``:
        ``most`` (0 for the program as it is) and ``note``, a sentence on what was run; ``lines``,
        the text of what was run; ``buffers``: ``name``, ``dtype``, ``shape``, ``itemBytes``,
        ``base`` and ``parameter``; ``sites``, the subscripts: ``buffer`` (its number), ``write``,
        ``text``, ``line``, ``block``, ``loops`` (``name``, ``low``, ``extent``), ``badge``,
        ``loop`` (the innermost that takes turns, or None) and ``steps`` (``loop`` and
        ``elements``, None where they differ) of all loops; ``stream``: ``count``, ``site``
        (uint16), ``element`` (uint32) and ``point`` (float64) of every access, in base64;
        ``operations`` of the whole run, None if it was not run to the end; and ``result``, see
        `simulate`.
    """
    module = find_program(identifier)
    names = function_names(module)
    chosen = _same_function(module, name or "main")
    other = default_comparison(identifier) if other == "" else other
    most, note = _chosen_size(module, chosen, size)
    recording, strides = _recorded(module, chosen, most, derivation.of(module))
    func = recording.listing.function
    return {
        "functions": names,
        "function": chosen,
        "other": other,
        "steps": [
            {"id": str(step.number), "title": f"after step {step.number}, {step.method}"}
            for step in derivation.steps(module)
        ],
        "size": {"most": most, "note": _told(note, recording.unfinished)},
        "lines": recording.listing.text.split("\n"),
        "buffers": [
            {
                "name": place.name,
                "dtype": place.dtype,
                "shape": list(place.shape),
                "itemBytes": place.item_bytes,
                "base": place.base,
                "parameter": place.parameter,
            }
            for place in recording.places
        ],
        "sites": _sites(recording, strides),
        "stream": {
            "count": len(recording.site),
            "site": _packed(recording.site, "<u2"),
            "element": _packed(recording.element, "<u4"),
            "point": _packed(recording.point, "<f8"),
        },
        "operations": None if recording.unfinished else estimate_flops(func),
        "result": simulate(identifier, chosen, other, most, line, cache_bytes, ways),
    }


def simulate(
    identifier: str,
    name: str,
    other: str | None,
    size: int,
    line: int = LINE,
    cache_bytes: int = SIZE,
    ways: int = WAYS,
) -> dict[str, Any]:
    """Run recorded accesses through another cache, or compare them with another program's.

    Args:
        size: ``most`` of `explain`'s answer.

    Returns:
        Plain JSON. ``hit`` (uint8) and ``evicted`` (int32: the number of the line that had to go,
        or -1) of every access, in base64; ``rows``, one for each site: ``accesses``, ``hits``,
        ``first`` (misses on lines never touched before), ``fetched`` and ``written`` (lines) and
        ``bytes`` moved for them; ``total``, the same of all; ``sentences`` on the program, or on
        what is different from the other; and ``other``: None, or its ``title`` and ``total``.
    """
    from mlcweb.playground.access.cache import Cache
    from mlcweb.playground.access.sentences import compare, describe

    cache = Cache(line, cache_bytes, ways)
    module = find_program(identifier)
    profile = _walk("this program", module, name, size, cache, derivation.of(module))
    result = {
        "hit": _packed(profile.outcome.hit, "u1"),
        "evicted": _packed(profile.outcome.evicted, "<i4"),
        "rows": _rows(profile),
        "total": _total(profile),
        "sentences": describe(profile),
        "other": None,
    }
    if other is None or other == identifier:
        return result
    try:
        start, made = _other(module, other)
        function = _same_function(start, name)
        before = _walk("the other program", start, function, size, cache, made)
    except TVMError as error:
        result["sentences"].insert(0, f"The other program cannot be compared: {error}.")
        return result
    result["sentences"] = compare(profile, before)
    result["other"] = {"total": _total(before)}
    return result


def default_comparison(identifier: str) -> str | None:
    """The program that the schedule of a program started from, where both are registered."""
    made = derivation.of(find_program(identifier))
    if made is None:
        return None
    starts = (other for other, start in programs().items() if start is not made.result)
    return next((o for o in starts if structural_equal(programs()[o], made.original)), None)


def _chosen_size(module: IRModule, name: str, asked: int | None) -> tuple[int, str]:
    """The limit on sizes to take, 0 for the program as it is, and a sentence about it."""
    if asked == 0:
        return 0, "This is the program as it is."
    reason = ""
    made = derivation.of(module)
    for most in (asked,) if asked else SIZES:
        try:
            small = _small(module, name, most, made)
            if not small.sizes:
                break
            if not asked and access_count(small.module[name]) > ENOUGH:
                continue
            _recorded(module, name, most, made)
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


def _told(note: str, unfinished: str | None) -> str:
    return f"{note} It was ended {unfinished}." if unfinished else note


def _other(module: IRModule, other: str) -> tuple[IRModule, Derivation | None]:
    """The program to compare a module with, and how it was made: a step on the way, or another
    registered program."""
    for step in derivation.steps(module):
        if str(step.number) == other:
            return step.derivation.result, step.derivation
    found = find_program(other)
    return found, derivation.of(found)


@lru_cache(maxsize=16)
def _small(module: IRModule, name: str, most: int, made: Derivation | None) -> Small:
    return smaller(module, name, most, made) if most else Small(module)


@lru_cache(maxsize=8)
def _recorded(
    module: IRModule, name: str, most: int, made: Derivation | None
) -> tuple[Recording, tuple[Strides, ...]]:
    from mlcweb.playground.access.recording import record
    from mlcweb.playground.access.strides import strides

    recording = record(_small(module, name, most, made).module, name)
    return recording, strides(recording)


def _walk(
    title: str,
    module: IRModule,
    name: str,
    most: int,
    cache: Cache,
    made: Derivation | None,
) -> AccessProfile:
    from mlcweb.playground.access.cache import simulate as run_through
    from mlcweb.playground.access.sentences import AccessProfile

    recording, moves = _recorded(module, name, most, made)
    sites = len(recording.sites)
    outcome = run_through(recording.addresses, recording.writes, recording.site, sites, cache)
    return AccessProfile(title, recording, moves, cache, outcome)


def _sites(recording: Recording, strides: Iterable[Strides]) -> list[dict[str, Any]]:
    return [
        {
            "buffer": place,
            "write": site.write,
            "text": site.text,
            "line": site.line,
            "block": site.block,
            "loops": [
                {"name": loop.name, "low": loop.low, "extent": loop.extent} for loop in site.loops
            ],
            "badge": strides_of.badge,
            "loop": strides_of.innermost.loop if strides_of.innermost else None,
            "steps": [{"loop": step.loop, "elements": step.elements} for step in strides_of.steps],
        }
        for site, place, strides_of in zip(
            recording.sites, recording.place_of, strides, strict=True
        )
    ]


def _rows(profile: AccessProfile) -> list[dict[str, int]]:
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
    return [_figures(profile.cache.line, *row) for row in zip(*columns, strict=True)]


def _total(profile: AccessProfile) -> dict[str, int]:
    rows = _rows(profile)
    keys = ("accesses", "hits", "first", "fetched", "written")
    return _figures(profile.cache.line, *(sum(row[key] for row in rows) for key in keys))


def _figures(line: int, accesses: Any, hits: Any, first: Any, fetched: Any, written: Any) -> Any:
    """A row of the table."""
    return {
        "accesses": int(accesses),
        "hits": int(hits),
        "first": int(first),
        "fetched": int(fetched),
        "written": int(written),
        "bytes": int(fetched + written) * line,
    }


def _same_function(module: IRModule, name: str) -> str:
    """The function of that name in another module, or else its main or first one."""
    names = function_names(module)
    return name if name in names else "main" if "main" in names else names[0]


def _packed(values: np.ndarray, dtype: str) -> str:
    """Numbers as bytes in base64."""
    return base64.b64encode(values.astype(dtype).tobytes()).decode()
