"""Whether the statements of a software pipeline may overlap as its annotations say.

A statement of stage s and order o runs what belongs to iteration i at time (i + s, o). Two
accesses of one element, of which one writes, keep their order: each distance between their
iterations at which they would change places must be impossible
(`mlcweb/schedule/analysis/distances.py`). Buffers that the loop allocates have versions, so that
only accesses of one iteration meet there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.lower.pipeline_annotations import PipelineError
from mlcweb.schedule.analysis.dependences import accesses_of
from mlcweb.schedule.analysis.distances import Access, distances_of
from mlcweb.schedule.analysis.scopes import scope_below
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A statement of a pipelined loop, as a block without iterators; `number` is that of its stage,
    `order` its position in the new body."""

    block: S.Block
    number: int
    order: int
    is_async: bool


class Dependences:
    """The dependences between the statements of a loop, which are in program order. `around` are
    the loops around it."""

    def __init__(self, loop: S.For, around: Sequence[S.For], stages: Sequence[Stage]) -> None:
        self.stages = stages
        self.loop = S.For(
            loop.loop_var, loop.min, loop.extent, S.ForKind.SERIAL,
            S.sequence(*(S.BlockRealize((), const(True), stage.block) for stage in stages)),
            span=loop.span,
        )  # fmt: skip
        nest: S.Stmt = self.loop
        for outer in reversed(around):
            nest = replace(outer, kind=S.ForKind.SERIAL, thread_binding=None, body=nest)
        root = S.BlockRealize((), const(True), S.Block((), (), (), "root", nest))
        state = ScheduleState(IRModule({"main": PrimFunc((), body=root)}))
        self.scope = scope_below(state, state.loop(loop.loop_var))
        self.units = {stage: self.scope.unit(stage.block) for stage in stages}

    def between(self, first: Stage, second: Stage) -> Iterator[tuple[Access, Access]]:
        """The accesses of two statements to one buffer, of which one writes."""
        one, other = self.units[first], self.units[second]
        for buffer in self.scope.conflicts(one, other):
            for a, b in product(accesses_of(one, buffer), accesses_of(other, buffer)):
                if a.writes or b.writes:
                    yield a, b

    def meet(self, a: Access, b: Access, distance: int) -> bool:
        """Whether two accesses may be of one element, the second in an iteration that is so many
        later."""
        signs = [{0: (distance, distance)}]
        return distances_of(a, b, [self.loop], signs, None) is not None

    def overlap(self, buffer: Buffer) -> bool:
        """Whether a statement touches what one of a later stage, and further back in the body,
        still uses for the iteration before. There one of the two writes it."""
        return any(
            self.meet(b, a, 1)
            for first, second in permutations(self.stages, 2)
            if first.number < second.number and first.order < second.order
            for a, b in self.between(first, second)
            if a.region.buffer is buffer
        )

    def check_order(self, own: Container[Buffer]) -> None:
        """Raise a PipelineError where a dependence does not keep its order. `own` are the buffers
        that the loop allocates."""
        for pair in combinations(self.stages, 2):
            for a, b in self.between(*pair):
                for distance in _turned_around(*pair, a.region.buffer in own):
                    if self.meet(a, b, distance):
                        raise PipelineError(self.fault(pair, (a, b), distance), self.loop.span)

    def fault(
        self, pair: tuple[Stage, Stage], accesses: tuple[Access, Access], distance: int
    ) -> str:
        """What to say of accesses that would change places."""
        numbers = [self.stages.index(stage) for stage in pair]
        verbs = ["writes" if access.writes else "reads" for access in accesses]
        buffer = accesses[0].region.buffer.name
        earlier, later = (0, 1) if distance >= 0 else (1, 0)
        when = {0: "in the same iteration", 1: "in the next iteration"}
        where = [f"stage {stage.number} at position {stage.order}" for stage in pair]
        versions = "" if distance == 0 else ", or allocate the buffer in the loop, for versions"
        return (
            f'In the software pipeline of loop "{self.loop.loop_var.name}" statement '
            f'{numbers[later]} {verbs[later]} elements of "{buffer}" '
            f"{when.get(abs(distance), f'{abs(distance)} iterations later')} that statement "
            f"{numbers[earlier]} {verbs[earlier]} before, and would come first: {where[later]} "
            f"goes before {where[earlier]}. Give it a later stage, or a later position in the same "
            f"stage{versions}"
        )


def _turned_around(first: Stage, second: Stage, is_own: bool) -> list[int]:
    """The distances at which two statements change places, near ones first: how many iterations the
    second one, which is later in the program, is later."""
    # It runs first where (i + distance + its stage, its order) is less than (i + stage, order).
    latest = first.number - second.number - (second.order > first.order)
    earliest = first.number - second.number + (first.order > second.order)
    if is_own:
        return [0] if latest >= 0 else []
    return [*range(latest + 1), *range(-1, earliest - 1, -1)]
