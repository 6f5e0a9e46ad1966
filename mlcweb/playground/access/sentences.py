"""What makes one program kinder to the cache than another, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcweb.playground.access.cache import Cache, Outcome
from mlcweb.playground.access.instrumented import Loop
from mlcweb.playground.access.recording import Recording
from mlcweb.playground.access.strides import Stride
from mlcweb.playground.compared import differ
from mlcweb.tir.stmt import ForKind

_KINDS = {
    ForKind.PARALLEL: "runs in parallel",
    ForKind.VECTORIZED: "runs as vector lanes",
    ForKind.UNROLLED: "is unrolled",
    ForKind.THREAD_BINDING: "is bound to threads",
}


@dataclass(frozen=True, slots=True, eq=False)
class AccessProfile:
    """A recorded program, how its subscripts move, and what a cache made of it."""

    title: str
    recording: Recording
    strides: Sequence[Stride]
    cache: Cache
    outcome: Outcome

    @property
    def accesses(self) -> int:
        return len(self.recording.site)

    @property
    def fetched(self) -> np.ndarray:
        """Lines that each site fetched."""
        sites = self.recording.site[~self.outcome.hit]
        return np.bincount(sites, minlength=len(self.recording.sites))

    @property
    def lines(self) -> int:
        """Lines that moved between cache and memory."""
        return int(self.fetched.sum() + self.outcome.written.sum())

    @property
    def hit_rate(self) -> float:
        return float(self.outcome.hit.mean()) if self.accesses else 0.0


@dataclass(frozen=True, slots=True)
class _Use:
    """All accesses of one buffer: how the subscript that makes most of them moves, and sums."""

    name: str
    row: int
    verbs: str
    stride: Stride
    accesses: int
    fetched: int
    hits: int


def describe(profile: AccessProfile) -> list[str]:
    """What a program does by itself."""
    sentences = []
    for use in _uses(profile).values():
        rate = _share(use.hits / use.accesses)
        sentences.append(
            f"{use.name} is {use.verbs} {_moves(use)}: {_count(use.accesses, 'access')} "
            f"{'fetches' if use.accesses == 1 else 'fetch'} {_count(use.fetched, 'line')}, "
            f"{rate} hit."
        )
    sentences.append(_whole(profile))
    return sentences


def compare(new: AccessProfile, old: AccessProfile) -> list[str]:
    """What a program does differently from another one.

    Counts of runs that were ended early are compared by their share of the accesses.
    """
    sentences = _order(new, old)
    partly = _partly(new, old)
    scale = new.accesses / max(1, old.accesses) if partly else 1.0
    if partly:
        sentences.insert(0, partly)
    uses, before = _uses(new), _uses(old)
    changes: list[tuple[float, str]] = []
    for name, use in uses.items():
        if name not in before:
            changes.append((use.fetched, _appears(use)))
        elif sentence := _change(use, before[name], scale):
            weight = abs(use.fetched - before[name].fetched * scale)
            changes.append((weight, sentence))
    for name, use in before.items():
        if name not in uses:
            times = _count(use.accesses, "access")
            changes.append((use.fetched * scale, f"{name} is removed, and with it {times}."))
    changes.sort(key=lambda change: -change[0])
    sentences += [sentence for _, sentence in changes]
    if _alike(new, old):
        sentences.append(
            f"It touches the same addresses in the same order as {old.title}, so the cache sees no "
            "difference: what makes it faster or slower is elsewhere, in vector instructions, what "
            "loops cost, or registers."
        )
    else:
        sentences.append(_totals(new, old, scale))
    return sentences


def _uses(profile: AccessProfile) -> dict[str, _Use]:
    recording = profile.recording
    counts = np.bincount(recording.site, minlength=len(recording.sites))
    fetched = profile.fetched
    uses: dict[str, _Use] = {}
    for number, place in enumerate(recording.places):
        sites = [s for s, of in enumerate(recording.place_of) if of == number and counts[s]]
        if not sites:
            continue
        # Of equally frequent subscripts the first is a read, as values come before results.
        main = max(sites, key=lambda site: (counts[site], -site))
        verbs = [
            verb
            for verb, write in (("read", False), ("written", True))
            if any(recording.sites[site].write == write for site in sites)
        ]
        accesses, lines = int(counts[sites].sum()), int(fetched[sites].sum())
        uses[place.name] = _Use(
            place.name,
            place.shape[-1] if len(place.shape) > 1 else 0,
            " and ".join(verbs),
            profile.strides[main],
            accesses,
            lines,
            accesses - lines,
        )
    return uses


def _change(new: _Use, old: _Use, scale: float) -> str:
    """What changed for one buffer, or nothing."""
    before = old.fetched * scale
    moved = _moves(new) != _moves(old)
    counted = scale == 1.0 and new.accesses != old.accesses
    fetched = differ(new.fetched, before)
    if not (moved or counted or fetched):
        return ""
    lines = _fewer(new.fetched, before)
    if moved:
        instead = _moves(old, "", "stride")
        return f"{new.name} is now {new.verbs} {_moves(new)} instead of {instead}: {lines}."
    if counted:
        times = f"{new.accesses:,} times instead of {old.accesses:,}"
        return f"{new.name} is {new.verbs} {_moves(new)} as before, but {times}: {lines}."
    why = ", because they are still there when they are used again" if new.fetched < before else ""
    return f"{new.name} is {new.verbs} {_moves(new)} as before, but {lines}{why}."


def _moves(use: _Use, loop: str = "the innermost loop ", stride: str = "with stride") -> str:
    """How the address moves, with the loop."""
    step = use.stride
    if step.loop is None:
        return "once"
    if step.elements is None:
        return f"at irregular distances in {loop}{step.loop}"
    if step.elements == 0:
        return f"at the same address throughout {loop}{step.loop}"
    row = " (a row)" if abs(step.elements) == use.row else ""
    return f"{stride} {step.elements}{row} in {loop}{step.loop}"


def _appears(use: _Use) -> str:
    rate = _share(use.hits / use.accesses)
    times = _count(use.accesses, "access")
    return f"{use.name} is new, {use.verbs} {_moves(use)}: {times}, {rate} of them hits."


def _order(new: AccessProfile, old: AccessProfile) -> list[str]:
    """How the loops around the busiest subscript differ."""
    loops, before = _loops(new), _loops(old)
    sentences = []
    kinds = {loop.name: loop.kind for loop in before}
    if [(loop.name, loop.extent) for loop in loops] != [(o.name, o.extent) for o in before]:
        names = ", ".join(loop.name for loop in loops) or "none"
        extents = ", ".join(str(loop.extent) for loop in loops)
        instead = ", ".join(loop.name for loop in before) or "none"
        sentences.append(f"The loops are {names} ({extents} iterations) instead of {instead}.")
        kinds = {}
    sentences += [
        f"The loop {loop.name} {_KINDS[loop.kind]}."
        for loop in loops
        if loop.kind in _KINDS and loop.kind is not kinds.get(loop.name)
    ]
    return sentences


def _loops(profile: AccessProfile) -> tuple[Loop, ...]:
    recording = profile.recording
    if not profile.accesses:
        return ()
    return recording.sites[int(np.argmax(np.bincount(recording.site)))].loops


def _alike(new: AccessProfile, old: AccessProfile) -> bool:
    """Whether both touch the same bytes in the same order."""
    ours, theirs = new.recording, old.recording
    return np.array_equal(ours.addresses, theirs.addresses) and np.array_equal(
        ours.writes, theirs.writes
    )


def _partly(new: AccessProfile, old: AccessProfile) -> str:
    """What is to be said where not all accesses are known, or the programs differ in size."""
    if not (new.recording.unfinished or old.recording.unfinished):
        return ""
    first = _count(new.accesses, "access")
    if new.accesses == old.accesses:
        return f"Only the first {first} of both are compared."
    others = _count(old.accesses, "access")
    return f"The first {first} are compared with {others} of the other program, by their shares."


def _totals(new: AccessProfile, old: AccessProfile, scale: float) -> str:
    lines = _fewer(new.lines, old.lines * scale, "moved between cache and memory")
    hits = f"{_share(new.hit_rate)} of the accesses hit instead of {_share(old.hit_rate)}"
    return f"In all, {lines}; {hits}."


def _whole(profile: AccessProfile) -> str:
    moved = profile.lines * profile.cache.line / 1024
    return (
        f"In all, {_share(profile.hit_rate)} of {_count(profile.accesses, 'access')} hit, and "
        f"{moved:,.3g} KiB are moved between cache and memory."
    )


def _fewer(now: float, before: float, verb: str = "fetched") -> str:
    """Two counts of lines, as a ratio and as they are."""
    figures = f"{now:,.0f} instead of {before:,.0f}"
    if not differ(now, before):
        return f"as many lines {verb} as before ({now:,.0f})"
    if not now or not before:
        return f"{figures} lines {verb}"
    if now < before:
        ratio = before / now
        by = f"{ratio:.3g} times" if ratio >= 1.2 else f"{100 * (1 - now / before):.2g} %"
        return f"{by} fewer lines {verb} ({figures})"
    ratio = now / before
    by = f"{ratio:.3g} times as many" if ratio >= 1.2 else f"{100 * (ratio - 1):.2g} % more"
    return f"{by} lines {verb} ({figures})"


def _share(rate: float) -> str:
    """A rate in percent; only all is 100."""
    percent = f"{100 * rate:.3g}"
    return "99.9 %" if percent == "100" and rate < 1 else f"{percent} %"


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"
