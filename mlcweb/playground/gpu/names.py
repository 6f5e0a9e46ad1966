"""What a program calls the accesses of its kernels: subscripts, and loops bound to threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children
from mlcweb.playground.gpu.counts import Launch, lane_addresses
from mlcweb.playground.gpu.profile import KernelProfile
from mlcweb.playground.gpu.sites import Site
from mlcweb.playground.protocol.gpu import LANES, GpuCost
from mlcweb.playground.source_lines import Listing, line_of
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.substitute import substitute

_PRINTED_AXIS = re.compile(r"\b(threadIdx|blockIdx)_([xyz])\b")


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A site as readers know it.

    Attributes:
        text: The subscript in the program, such as "A[vi, vk]".
        index: The element, by axes such as threadIdx.x.
        line: In the program, where that is known.
        loop: The one bound to the axis along which lanes follow each other, where that is known.
        axis: That axis.
        stride: How many elements lie between lanes along it; None where that varies.
    """

    site: Site
    text: str
    index: str
    line: int | None
    loop: str
    axis: str
    stride: int | None
    counts: GpuCost | None


@dataclass(slots=True)
class _Names:
    """Of the statements at a line: subscripts by buffer and kind, loops by the axis they are bound
    to."""

    subscripts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)


def accesses(profile: KernelProfile, listing: Listing) -> list[Access]:
    """The sites of a kernel of a listed function."""
    lines = _names(listing)
    axis = lane_axis(profile.launch)
    seen: dict[object, int] = {}
    result = []
    for site, counts in zip(profile.sites, profile.counts, strict=True):
        line = _line(site)
        names = lines.get(line or 0, _Names())
        kind = "load" if site.kind == "load" else "store"
        key = (line, site.buffer.name, kind)
        number = seen[key] = seen.get(key, -1) + 1
        index = _index(site, profile.launch)
        texts = names.subscripts.get((site.buffer.name, kind), [])
        text = texts[number] if number < len(texts) else f"{site.buffer.name}[{index}]"
        stride = lane_stride(site, profile.launch)
        loop = names.bound.get(axis, "")
        result.append(Access(site, text, index, line, loop, axis, stride, counts))
    return result


def _line(site: Site) -> int | None:
    span = site.statement.span
    return line_of(site.statement) if span is not None and not span.filename else None


def lane_axis(launch: Launch) -> str:
    """The axis along which the lanes of a warp follow each other."""
    longer = (axis for axis, extent in zip("xyz", launch.block, strict=True) if extent > 1)
    return f"threadIdx.{next(longer, 'x')}"


def lane_stride(site: Site, launch: Launch) -> int | None:
    """How many elements lie between lanes next to each other in a row of threads; None where that
    varies, or depends on data."""
    addresses = lane_addresses(site, launch, 0) or []
    row = next((extent for extent in launch.block if extent > 1), 1)
    steps = {
        (second - first) // site.item_bytes
        for lane, (first, second) in enumerate(pairwise(addresses))
        if first is not None and second is not None and (lane + 1) % min(row, LANES)
    }
    return steps.pop() if len(steps) == 1 else None


def _index(site: Site, launch: Launch) -> str:
    tags = {var: E.Var(tag, var.dtype) for var, tag in launch.kernel.indices.items()}
    return _PRINTED_AXIS.sub(r"\1.\2", str(substitute(site.index, tags)))


def _names(listing: Listing) -> dict[int, _Names]:
    lines: dict[int, _Names] = {}
    for statement, bound in _statements(listing.function.body, {}):
        line = line_of(statement)
        if line is None or isinstance(statement, (S.Block, S.BlockRealize)):
            continue
        names = lines.setdefault(line, _Names(bound=bound))
        for kind, buffer, text in _subscripts(statement):
            texts = names.subscripts.setdefault((buffer, kind), [])
            if text not in texts:
                texts.append(text)
    return lines


def _statements(statement: Node, bound: dict[str, str]) -> Iterator[tuple[Node, dict[str, str]]]:
    """The statements below, with the loops around them that are bound to axes."""
    if isinstance(statement, S.For) and statement.thread_binding is not None:
        bound = {**bound, statement.thread_binding.thread_tag: statement.loop_var.name}
    yield statement, bound
    for child in children(statement):
        if isinstance(child, S.Stmt):
            yield from _statements(child, bound)


def _subscripts(node: Node) -> Iterator[tuple[str, str, str]]:
    """What a statement itself touches: kind, buffer and text, loads before the store."""
    for child in children(node):
        if not isinstance(child, S.Stmt):
            yield from _subscripts(child)
    if isinstance(node, E.BufferLoad):
        yield "load", node.buffer.name, str(node)
    elif isinstance(node, S.BufferStore):
        yield "store", node.buffer.name, str(E.BufferLoad(node.buffer, node.indices))
