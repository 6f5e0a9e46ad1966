"""What memory makes of a kernel, and what one schedule does better than another, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.playground.compared import differ
from mlcweb.playground.gpu.names import Access
from mlcweb.playground.protocol.gpu import GpuCost

FRAGMENTS = (
    "NVIDIA does not say how wmma moves fragments; bank conflicts are counted as if A and B came "
    "by ldmatrix (eight rows of 16 bytes at a time), and accumulators in pairs, as mma has them."
)


def describe(accesses: Sequence[Access]) -> list[str]:
    """What is to be said of kernels by themselves."""
    counted = [(access, access.counts) for access in accesses if access.counts is not None]
    sentences = []
    for access, counts in counted:
        if access.site.shared and counts.most > 1:
            sentences.append(_conflict(access, counts))
        elif not access.site.shared and counts.sectors > 1.01 * counts.ideal:
            sentences.append(_scattered(access, counts))
    sentences = list(dict.fromkeys(sentences))
    for shared, good in (
        (False, "Every access to global memory is coalesced: no warp makes more transactions than "
                "its bytes need."),
        (True, "No access to shared memory has bank conflicts."),
    ):  # fmt: skip
        costs = [counts for access, counts in counted if access.site.shared == shared]
        if costs and not any(_is_costly(counts, shared) for counts in costs):
            sentences.append(good)
    if any(access.site.tile and access.site.shared for access, _ in counted):
        sentences.append(FRAGMENTS)
    for why, in_fragments in (
        ("their addresses depend on data", False),
        ("NVIDIA does not say how a warp moves a fragment that lies so", True),
    ):
        unknown = [
            access.text
            for access in accesses
            if access.counts is None
            and bool(access.site.tile and access.site.shared) == in_fragments
        ]
        if unknown:
            sentences.append(f"Not counted, since {why}: {', '.join(unknown)}.")
    return sentences


def total(accesses: Sequence[Access]) -> str:
    """The transactions of kernels."""
    sectors = sum(access.counts.sectors for access in accesses if access.counts)
    return f"In all, warps make {_number(sectors)} transactions of 32 bytes with global memory."


def _is_costly(counts: GpuCost, shared: bool) -> bool:
    return counts.most > 1 if shared else counts.sectors > 1.01 * counts.ideal


def _scattered(access: Access, counts: GpuCost) -> str:
    least = counts.ideal / counts.requests
    how = _between(counts.least, counts.most)
    return (
        f"A warp makes {how} transactions for {access.text} where {least:.3g} would do: "
        f"{_neighbours(access)}."
    )


def _conflict(access: Access, counts: GpuCost) -> str:
    return (
        f"{access.text} has bank conflicts: one bank has to give {counts.most} words at a time, "
        f"so a warp waits {counts.passes / counts.ideal:.3g} times as long as without; "
        f"{_neighbours(access)}."
    )


def _neighbours(access: Access) -> str:
    """How far lanes are from each other, and why."""
    return f"threads next to each other{_along(access)} {_distance(access.stride)}"


def _along(access: Access) -> str:
    return f" (loop {access.loop}, {access.axis})" if access.loop else f" on {access.axis}"


def _distance(stride: int | None) -> str:
    if stride is None:
        return "are at varying distances"
    if stride == 0:
        return "use the same element"
    return f"are {abs(stride):,} element{'s' if abs(stride) != 1 else ''} apart"


@dataclass(frozen=True, slots=True)
class _Use:
    """All accesses of kernels to one buffer; `main` is the one that costs most."""

    name: str
    shared: bool
    main: Access
    requests: float
    cost: float


def compare(new: Sequence[Access], old: Sequence[Access], title: str) -> list[str]:
    """What kernels do differently from others, the largest difference first."""
    uses, before = _uses(new), _uses(old)
    changes: list[tuple[float, str]] = []
    for name, use in uses.items():
        other = before.get(name)
        if other is not None and (sentence := _change(use, other, uses)):
            changes.append((abs(use.cost - other.cost), sentence))
        elif other is None and use.shared:
            changes.append((0, _staged(use)))
    changes.sort(key=lambda change: -change[0])
    sentences = [sentence for _, sentence in changes]
    sectors, sectors_before = (
        sum(use.cost for use in each.values() if not use.shared) for each in (uses, before)
    )
    if differ(sectors, sectors_before):
        ratio = _ratio(sectors, sectors_before, "transactions")
        sentences.append(f"In all, {ratio} with global memory than {title}.")
    else:
        sentences.append(
            f"In all, it makes as many transactions with global memory as {title} "
            f"({_number(sectors)})."
        )
    return sentences


def _uses(accesses: Sequence[Access]) -> dict[str, _Use]:
    groups: dict[str, list[tuple[Access, GpuCost]]] = {}
    for access in accesses:
        if access.counts is not None:
            groups.setdefault(access.site.buffer.name, []).append((access, access.counts))
    uses = {}
    for name, group in groups.items():
        shared = group[0][0].site.shared
        costs = [counts.passes if shared else counts.sectors for _, counts in group]
        main = group[costs.index(max(costs))][0]
        requests = sum(counts.requests for _, counts in group)
        uses[name] = _Use(name, shared, main, requests, sum(costs))
    return uses


def _change(new: _Use, old: _Use, uses: dict[str, _Use]) -> str:
    """What changed for one buffer, or nothing."""
    if not differ(new.cost, old.cost):
        return ""
    what = "passes through the banks" if new.shared else "transactions"
    return f"{new.name}: {_ratio(new.cost, old.cost, what)}, because {_reason(new, old, uses)}."


def _reason(new: _Use, old: _Use, uses: dict[str, _Use]) -> str:
    asks, asked = new.requests, old.requests
    copies = [name for name, use in uses.items() if use.shared and name.startswith(new.name)]
    if asks < asked and copies:
        return (
            f"a block fetches it into {copies[0]} once, and its threads read it there "
            f"({_number(asks)} requests of warps instead of {_number(asked)})"
        )
    per_request, per_request_before = new.cost / asks, old.cost / asked
    strides_differ = new.main.stride != old.main.stride or new.main.loop != old.main.loop
    if differ(per_request, per_request_before) and strides_differ:
        loop, axis = new.main.loop, new.main.axis
        bound = f"{loop} is bound to {axis}: " if loop and loop != old.main.loop else ""
        return (
            f"{bound}threads next to each other {_distance(new.main.stride)}, and were "
            f"{_distance(old.main.stride).removeprefix('are ')}"
        ).replace("were use", "used")
    if differ(asks, asked):
        fewer = "less" if asks < asked else "more"
        return f"warps ask {fewer} often ({_number(asks)} requests instead of {_number(asked)})"
    return "its elements lie differently in memory"


def _staged(use: _Use) -> str:
    counts = use.main.counts
    assert counts is not None
    conflict = f"{counts.most}-way bank conflicts" if counts.most > 1 else "no bank conflicts"
    return f"{use.name} is in shared memory, with {conflict} at {use.main.text}."


def _ratio(now: float, before: float, what: str) -> str:
    """Two counts, as a ratio and as they are."""
    figures = f"{_number(now)} instead of {_number(before)}"
    if not now or not before:
        return f"{figures} {what}"
    more = now > before
    ratio = now / before if more else before / now
    return f"{ratio:.3g} times {'as many' if more else 'fewer'} {what} ({figures})"


def _between(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def _number(value: float) -> str:
    return f"{value:,.0f}"
