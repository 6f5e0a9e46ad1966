"""Mutators: how evolutionary search changes the decisions of a trace."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from inspect import signature
from itertools import accumulate, takewhile
from math import prod
from operator import mul
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space import TaskPart, of_kind
from mlcweb.meta_schedule.space.multi_level_tiling import COOPERATIVE_FETCH
from mlcweb.meta_schedule.space.rules import PARALLEL, UNROLL_EXPLICIT, UNROLL_IMPLICIT
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.analysis.block_facts import SPATIAL, extent_of, is_root
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.primitives.sampling import locations
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import Block, For


class Mutator(TaskPart, ABC):
    """Changes one decision of a trace."""

    @cached_property
    def rng(self) -> random.Random:
        """Where random numbers come from unless `apply` is given a generator."""
        return random.Random()

    def apply(self, trace: Trace, rng: random.Random | None = None) -> Trace | None:
        """A trace with another decision and without post-processing; None where there is nothing
        to change."""
        return self.mutated(trace, self.rng if rng is None else rng)

    @abstractmethod
    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        """What `apply` gives, by a generator of random numbers."""

    def program(self) -> IRModule:
        """The program of the task; a ValueError where the mutator knows of none."""
        if self.mod is None:
            raise ValueError(f"{type(self).__name__} needs a TuneContext with a module")
        return self.mod

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The default mutators and their probabilities for a kind of target, by the names of
        `DEFAULTS`."""
        return of_kind(kind).mutator_probs()


class PyMutator(Mutator):
    """What mutators of a program's own are subclasses of, in TVM: they define `apply`, and may
    leave the generator of random numbers out."""

    def __init_subclass__(cls) -> None:
        apply = vars(cls).get("apply")
        if apply is None:
            return
        takes_generator = len(signature(apply).parameters) > 2

        @wraps(apply)
        def called(self: Any, trace: Trace, rng: Any = None) -> Trace | None:
            return apply(self, trace, rng) if takes_generator else apply(self, trace)

        cls.apply = called

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        raise NotImplementedError(f"{type(self).__name__}.apply")


def sampled_for(trace: Trace, keys: Collection[str]) -> list[Instruction]:
    """The `sample_categorical` steps whose result is the value of an annotation with one of the
    keys."""
    producers = {
        output: inst
        for inst in trace.insts
        if inst.kind.name == "SampleCategorical"
        for output in inst.outputs
    }
    sampling = []
    for inst in trace.insts:
        if inst.kind.name == "Annotate" and inst.attrs[0] in keys:
            source = producers.get(inst.inputs[1]) if isinstance(inst.inputs[1], Var) else None
            if source is not None and source not in sampling:
                sampling.append(source)
    return sampling


class MutateComputeLocation(Mutator):
    """Chooses another location for one of the blocks with a sampled location."""

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        mod = self.program()
        if not any(inst.kind.name == "SampleComputeLocation" for inst in trace.insts):
            return None
        candidates = _other_locations(trace, mod)
        if not candidates:
            return None
        inst, decisions = rng.choice(candidates)
        return trace.with_decision(inst, rng.choice(decisions), True)


def _other_locations(trace: Trace, mod: IRModule) -> list[tuple[Instruction, list[int]]]:
    """The sampling steps that could decide otherwise, with what they could decide: known only in
    the state of the program at that step."""
    sch = Schedule(mod, error_render_level="none")
    alternatives: list[tuple[Instruction, list[int]]] = []
    sampling = iter([inst for inst in trace.insts if inst.kind.sampling])

    def collect(_: Instruction, inputs: Any, attrs: Any, decision: Any) -> Any:
        inst = next(sampling)
        if inst.kind.name == "SampleComputeLocation":
            block = sch.get(inputs[0])
            assert isinstance(block, Block)
            numbers = [number for number, _ in locations(sch.state, block.identity)]
            others = [number for number in numbers if number != decision]
            if others:
                alternatives.append((inst, others))
        return decision

    try:
        trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=collect)
    except ScheduleError:
        return []
    return alternatives


@dataclass(eq=False)
class MutateParallel(Mutator):
    """Changes how many iterations run in parallel, to a number at which other loops are fused.
    A number that is no product of outer loops stands for the next one that is.

    Args:
        max_jobs_per_core: the most parallel iterations for each core.
    """

    max_jobs_per_core: int

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        mod = self.program()
        annotating = [
            i for i in trace.insts if i.kind.name == "Annotate" and i.attrs[0] == PARALLEL
        ]
        if not annotating:
            return None
        inst = rng.choice(annotating)
        block, present = inst.inputs
        most = self.max_jobs_per_core * self.cores
        products = _products(trace, mod)
        now = next((n for n in products if n >= min(int(present), most)), None)
        bounds = [n for n in products if n <= most and n != now]
        if not bounds:
            return None
        return _with_step(trace, inst, replace(inst, inputs=(block, rng.choice(bounds))))


def _products(trace: Trace, mod: IRModule) -> list[int]:
    """The numbers of iterations that the outer loops of each block have, fused, in order."""
    sch = Schedule(mod, error_render_level="none")
    try:
        trace.apply_to_schedule(sch, remove_postproc=True)
    except ScheduleError:
        return []
    products: set[int] = set()
    for place in sch.state.index.blocks.values():
        if not is_root(place):
            outer = takewhile(_is_fusible, place.loops)
            products.update(accumulate((extent_of(loop) or 1 for loop in outer), mul))
    return sorted(products)


def _is_fusible(loop: For) -> bool:
    return loop_type(loop) == SPATIAL and extent_of(loop) is not None


def _with_step(trace: Trace, old: Instruction, new: Instruction) -> Trace:
    """The trace without post-processing, and with one step replaced."""
    simplified = trace.simplified(remove_postproc=True)
    return Trace([new if inst is old else inst for inst in simplified.insts], simplified.decisions)


class MutateTileSize(Mutator):
    """Moves a factor from one tile of a loop to another, or chooses another vector length for
    cooperative fetching."""

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        tilings = [inst for inst in trace.insts if _is_tiling(inst, trace)]
        return _changed(trace, [*tilings, *sampled_for(trace, (COOPERATIVE_FETCH,))], rng)


def _is_tiling(inst: Instruction, trace: Trace) -> bool:
    if inst.kind.name != "SamplePerfectTile":
        return False
    tiles = trace.get_decision(inst) or ()
    return len(tiles) >= 2 and prod(tiles) > 1


def _changed(trace: Trace, steps: list[Instruction], rng: random.Random) -> Trace | None:
    """The trace with another decision of one of the steps; None where there is none."""
    if not steps:
        return None
    inst = rng.choice(steps)
    decision = other_decision(trace, inst, rng)
    return None if decision is None else trace.with_decision(inst, decision, True)


def other_decision(trace: Trace, inst: Instruction, rng: random.Random) -> Any:
    """Another decision of a step: a tiling with a factor moved from one tile to another, or
    another index; None where there is none, and for other steps."""
    decision = trace.get_decision(inst)
    if inst.kind.name == "SamplePerfectTile":
        return _moved_factor(list(decision or ()), _limit_of(inst), rng)
    if inst.kind.name == "SampleCategorical":
        others = [index for index in range(len(inst.attrs[0])) if index != decision]
        return rng.choice(others) if others else None
    return None


def _limit_of(inst: Instruction) -> int | None:
    """The largest innermost factor that a tiling may have; None where there is no limit."""
    limit = int(constant_value(inst.attrs[1]) or -1)
    return limit if limit >= 1 else None


def _moved_factor(tiles: list[int], limit: int | None, rng: random.Random) -> list[int] | None:
    """The tiles after one of all possible moves; None where the limit of the innermost tile
    allows none."""
    last = len(tiles) - 1
    moves = [
        (source, target, factor)
        for source, tile in enumerate(tiles)
        for factor in range(2, tile + 1)
        if tile % factor == 0
        for target in range(len(tiles))
        if target != source and (target != last or limit is None or tiles[last] * factor <= limit)
    ]
    if not moves:
        return None
    source, target, factor = rng.choice(moves)
    tiles[source] //= factor
    tiles[target] *= factor
    return tiles


class MutateUnroll(Mutator):
    """Chooses another of the bounds of unrolling, with their probabilities."""

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        sampling = sampled_for(trace, (UNROLL_EXPLICIT, UNROLL_IMPLICIT))
        if not sampling:
            return None
        inst = rng.choice(sampling)
        weights = [float(constant_value(p) or 0.0) for p in inst.attrs[1]]
        weights[trace.get_decision(inst)] = 0.0
        if not any(weights):
            return None
        decision = rng.choices(range(len(weights)), weights)[0]
        return trace.with_decision(inst, decision, True)


class MutateThreadBinding(Mutator):
    """Chooses another number of threads, of those that a loop is split by and then bound."""

    def mutated(self, trace: Trace, rng: random.Random) -> Trace | None:
        return _changed(trace, _sampled_threads(trace), rng)


def _sampled_threads(trace: Trace) -> list[Instruction]:
    """The `sample_categorical` steps whose result is the extent of a loop that is bound."""
    bound = {
        inst.inputs[0]
        for inst in trace.insts
        if inst.kind.name == "Bind" and str(inst.attrs[0]).startswith("threadIdx")
    }
    factors = {
        factor
        for inst in trace.insts
        if inst.kind.name == "Split"
        for factor, part in zip(inst.inputs[1:], inst.outputs, strict=True)
        if part in bound and isinstance(factor, Var)
    }
    return [
        inst
        for inst in trace.insts
        if inst.kind.name == "SampleCategorical" and inst.outputs[0] in factors
    ]


create = Mutator.create
