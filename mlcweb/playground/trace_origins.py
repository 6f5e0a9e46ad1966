"""Where the loops of a scheduled program come from: which loops they were split off or fused from.

A loop is known by its variable. The steps say what becomes of it: a split makes parts, a fusion one
loop of several; where a step makes loops that it does not name (as compute_at does), what the loops
drive tells which loops they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mlcweb.schedule.analysis.scopes import driven_iterators
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, block_realizes_below
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, For

TIMES = " \N{MULTIPLICATION SIGN} "
ORDINALS = ("outermost", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """How a loop came to be.

    Attributes:
        extent: as text.
        sources: the loops that it was made from; none for a loop of the first program.
        position, parts: which part of a split loop it is, from 0, of how many.
        step: the step that made it; 0 for the first program's.
        method: the schedule method that made it.
    """

    name: str
    extent: str
    kind: Literal["program", "split", "fuse", "copy", "made"]
    sources: tuple[Origin, ...] = ()
    position: int = 0
    parts: int = 0
    step: int = 0
    method: str = ""

    @property
    def roots(self) -> tuple[Origin, ...]:
        """The loops that it goes back to in the end, each once."""
        if not self.sources:
            return (self,)
        roots: dict[Origin, None] = {}
        for source in self.sources:
            roots.update(dict.fromkeys(source.roots))
        return tuple(roots)

    def text(self) -> str:
        """Where it came from in words, such as "outer part of j, 16 of 128"."""
        if self.kind == "program":
            return "a loop of the program"
        sources = self.sources
        past = "; ".join(source._clause() for source in sources if source.kind != "program")
        past = f" ({past})" if past and self.kind in ("split", "fuse") else ""
        if self.kind == "split":
            whole = sources[0]
            return f"{self._part()} of {whole.name}, {self.extent} of {whole.extent}{past}"
        names = listed(source.name for source in sources)
        if self.kind == "fuse":
            product = " · ".join(source.extent for source in sources)
            return f"{names} fused, {product}{past}"
        maker = f"made by step {self.step}, {self.method}"
        if not sources:
            return maker
        return f"{'repeats' if self.kind == 'copy' else 'runs over'} {names}; {maker}"

    def _clause(self) -> str:
        """The same as a part of another loop's origin."""
        verb = {"split": "is the ", "fuse": "is ", "made": "", "copy": ""}[self.kind]
        return f"{self.name} {verb}{self.text()}"

    def _part(self) -> str:
        if self.parts == 1:
            return "whole"
        if self.position == self.parts - 1:
            return "inner part" if self.parts == 2 else "innermost part"
        if self.parts == 2:
            return "outer part"
        name = ORDINALS[self.position] if self.position < len(ORDINALS) else f"{self.position + 1}."
        return f"{name} of {self.parts} parts"


@dataclass(frozen=True, slots=True)
class Origins:
    """The origin of every loop of a program, and the numbers of the roots in order of appearance,
    by which they are coloured."""

    loops: Mapping[Var, Origin]
    numbers: Mapping[Origin, int]

    @staticmethod
    def of_program(state: ScheduleState) -> Origins:
        """Before any step: each loop is its own."""
        loops = {
            var: Origin(var.name, extent_text(place.loop.extent), "program")
            for var, place in state.index.loops.items()
        }
        return Origins(loops, {origin: n for n, origin in enumerate(loops.values())})

    def after(
        self,
        step: int,
        method: str,
        inputs: tuple[Any, ...],
        outputs: tuple[Any, ...],
        before: ScheduleState,
        state: ScheduleState,
    ) -> Origins:
        """After a step with these inputs and outputs (see `trace_replay.ReplayedStep`)."""
        loops = dict(self.loops)
        places = state.index.loops
        named = [place.loop for place in outputs if isinstance(place, LoopPlace)]
        loop_places = [place for place in _places(inputs) if isinstance(place, LoopPlace)]
        taken = [loops[p.loop.loop_var] for p in loop_places if p.loop.loop_var in loops]
        if method in ("split", "fuse") and taken:
            sources = tuple(taken[:1] if method == "split" else taken)
            for position, loop in enumerate(named):
                var, extent = loop.loop_var, extent_text(loop.extent)
                loops[var] = Origin(
                    var.name, extent, method, sources, position, len(named), step, method
                )
        # Names are not unique, so that loops around what the step is about come first.
        likely = {
            parent.loop_var: loops[parent.loop_var]
            for place in _places(inputs)
            for parent in place.parents
            if isinstance(parent, For) and parent.loop_var in loops
        }
        driven: dict[tuple[BlockIdentity, int], tuple[Origin, ...]] | None = None
        for var, place in places.items():
            if var in loops:
                continue
            if driven is None:
                driven = self._driven(before)
            kind, sources = self._sources(place, driven, likely)
            extent = extent_text(place.loop.extent)
            loops[var] = Origin(var.name, extent, kind, sources, step=step, method=method)
        numbers = dict(self.numbers)
        for var in places:
            for root in loops[var].roots:
                numbers.setdefault(root, len(numbers))
        return Origins(loops, numbers)

    def colours(self, var: Var) -> list[int]:
        """The numbers of the loops that a loop goes back to."""
        return [self.numbers[root] for root in self.loops[var].roots]

    def _sources(
        self,
        place: LoopPlace,
        driven: Mapping[tuple[BlockIdentity, int], tuple[Origin, ...]],
        likely: Mapping[Var, Origin],
    ) -> tuple[Literal["copy", "made"], tuple[Origin, ...]]:
        """The origin of a loop that no output of a step names: the loop that its name says, or
        those that drove what it drives now."""
        name = place.loop.loop_var.name
        for var, origin in reversed((*self.loops.items(), *likely.items())):
            if name in (f"{var.name}_init", f"{var.name}_m"):
                return "copy", (origin,)
        sources: dict[Origin, None] = {}
        for realize in block_realizes_below(place.loop):
            variables = driven_iterators(realize, place.loop.loop_var)
            for position, iter_var in enumerate(realize.block.iter_vars):
                if iter_var.var in variables:
                    key = realize.block.identity, position
                    sources.update(dict.fromkeys(driven.get(key, ())))
        return "made", tuple(sources)

    def _driven(self, state: ScheduleState) -> dict[tuple[BlockIdentity, int], tuple[Origin, ...]]:
        """Which loops drive each iterator of each block."""
        driven: dict[tuple[BlockIdentity, int], tuple[Origin, ...]] = {}
        for identity, place in state.index.blocks.items():
            around = [loop.loop_var for loop in place.loops]
            drives = {var: driven_iterators(place.realize, var) for var in around}
            for position, iter_var in enumerate(place.block.iter_vars):
                driven[identity, position] = tuple(
                    self.loops[var]
                    for var in around
                    if iter_var.var in drives[var] and var in self.loops
                )
        return driven


def extent_text(extent: PrimExpr | For | int) -> str:
    """An extent as the page writes it."""
    return str(extent.value) if isinstance(extent, IntImm) else repr(extent)


def _places(values: Iterable[Any]) -> Iterable[LoopPlace | BlockPlace]:
    for value in values:
        if isinstance(value, LoopPlace | BlockPlace):
            yield value
        elif isinstance(value, tuple):
            yield from _places(value)


def listed(names: Iterable[str]) -> str:
    """Names as a sentence has them: "a, b and c"."""
    items = list(names)
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
