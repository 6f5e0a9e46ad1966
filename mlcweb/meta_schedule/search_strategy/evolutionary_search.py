"""Evolutionary search: what was fast is changed a little, and a cost model says what to try.

The scheme is Ansor's (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep
Learning", OSDI 2020): a population of the fastest known and of random programs; generations of
mutations in which the better are chosen more often; then the best that were not measured yet, and
a few at random, so that the model meets what it does not know. Unlike there, a program takes about
as long to make as to measure, so that what a round found and had no room for waits for the next.

`benchmarks/tuning/ablation.py` shows what each part brings. Of the product of 128 x 128 (LLVM, 64
trials, eight seeds) a proposal carries out 15 steps in 15 ms of the processor; 30 in 18 ms without
the replay cache, which finds the same programs; 28 in 23 ms without conditions; where nothing waits
for the next round it takes half as long again. Such searches find 1.07 times the best known, and
1.09 without the cost model. A convolution tells nothing of the model: its searches come within a
tenth of the best after two trials, and to 1.01 times the best, with it and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from mlcweb.ir import TVMError, structural_hash
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, replay_text, trace_text
from mlcweb.meta_schedule.search_strategy.decisions import with_other_decision
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    RunnerResult,
    SearchStrategy,
    peeked,
)
from mlcweb.schedule import Schedule, ScheduleError, Trace
from mlcweb.schedule.instruction import plain

MAX_REPLAYS = 2
"""Traces that are replayed for a generation, for each of its children at most."""

MAX_WAITING = 4
"""Programs that wait to be measured, for each of a population at most."""

MAX_TRIED = 1 << 16
"""Combinations of decisions that are known as tried, at most."""


@dataclass(slots=True)
class _Individual:
    """A program, with what the cost model thinks of it."""

    sch: Schedule
    shash: int
    score: float = 0.0


@dataclass(kw_only=True, eq=False)
class EvolutionarySearch(SearchStrategy):
    """Searches by mutation, selection and a cost model.

    The options are TVM's. Their defaults are smaller: there, a program is made in a fraction of the
    time and measured in a multiple of it.

    Args:
        population_size: programs in a generation.
        init_measured_ratio: the share of the first generation that are the fastest known.
        init_min_unmeasured: programs drawn at random before anything is learnt.
        max_fail_count: draws in a row without a new program that end the search.
        genetic_num_iters: generations in a round.
        genetic_mutate_prob: the probability that a candidate of a generation is changed.
        genetic_max_fail_count: mutations considered for each child, at most.
        children: programs made in a generation.
        num_empty_iters_before_early_stop: rounds without anything new that end the search, where
            rounds are asked for one by one.
        eps_greedy: the share of a round that is drawn at random.
        round_size: candidates in a round, where `num_trials_per_iter` does not say fewer: after
            each the search learns.
    """

    population_size: int = 16
    init_measured_ratio: float = 0.9
    init_min_unmeasured: int = 16
    max_fail_count: int = 50
    genetic_num_iters: int = 1
    genetic_mutate_prob: float = 0.9
    genetic_max_fail_count: int = 8
    eps_greedy: float = 0.1
    round_size: int = 8
    children: int = 8
    num_empty_iters_before_early_stop: int = 5

    def __post_init__(self) -> None:
        for name in ("init_measured_ratio", "genetic_mutate_prob", "eps_greedy"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share, from 0 to 1; {getattr(self, name)} is none")

    def pre_tuning(self, *args: object, **kwargs: object) -> None:
        super().pre_tuning(*args, **kwargs)  # type: ignore[arg-type]
        if self.database is None:
            self.database = MemoryDatabase()
        assert self.context.mod is not None
        self.workload = self.database.commit_workload(self.context.mod)
        self._cached: dict[str, _Individual] = {}
        self._waiting: dict[int, _Individual] = {}
        self._tried: set[int] = set()
        self._has_learnt = False
        self._empty_rounds = 0

    def propose(self) -> Iterator[MeasureCandidate] | None:
        room = min(self.room(), self.round_size)
        if room <= 0:
            return None
        measured = self._fastest()
        first = min(self.init_min_unmeasured, self.max_trials // 2) - self.proposed
        if not measured or first > 0:
            candidates = peeked(self._at_random(min(self.room(), max(room, first))))
            if candidates is not None or not measured:
                return candidates
        return peeked(self._round(measured, room))

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round; empty where nothing new was found, and None after
        `num_empty_iters_before_early_stop` such rounds or where no trials are left."""
        candidates = self.propose() if self.room() > 0 else None
        if candidates is not None:
            return list(candidates)
        self._empty_rounds += 1
        ends = not self.proposed or self.room() <= 0
        if ends or self._empty_rounds >= self.num_empty_iters_before_early_stop:
            return None
        return []

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        if self.cost_model is not None:
            self.cost_model.update(self.context, measure_candidates, results)
            self._has_learnt = self._has_learnt or any(result.run_secs for result in results)
        # Those among them that are fast need not be replayed.
        for candidate, result in zip(measure_candidates, results, strict=True):
            if result.run_secs:
                individual = _Individual(candidate.sch, candidate.shash)
                self._cached[trace_text(candidate.sch.trace)] = individual

    def _fastest(self) -> list[_Individual]:
        """The fastest schedules of the database. Those of earlier searches are replayed, once."""
        assert self.database is not None
        count = max(1, int(self.population_size * self.init_measured_ratio))
        fastest: dict[str, _Individual] = {}
        for record in self.database.get_top_k(self.workload, count):
            text = record.trace_text
            individual = self._cached.get(text) or self._of_record(record)
            if individual is not None:
                fastest[text] = individual
        # What is no longer among the fastest is forgotten.
        self._cached = fastest
        return list(fastest.values())

    def _of_record(self, record: TuningRecord) -> _Individual | None:
        sch = self.sampler.blank()
        try:
            replay_text(record.trace_text, sch)
        except (ScheduleError, TVMError, ValueError):
            return None
        if not sch.trace.insts:
            return None  # a default schedule, which has no decisions
        shash = structural_hash(sch.mod)
        self.seen.add(shash)
        return _Individual(sch, shash)

    def _at_random(self, count: int) -> Iterator[MeasureCandidate]:
        """New programs drawn at random. What the model thinks of them is noted all the same: those
        that it did not choose itself tell most about it."""
        for candidate in self.fresh_candidates(count, self.max_fail_count):
            individual = _Individual(candidate.sch, candidate.shash)
            self._mark_tried(_decided(_without_postproc(candidate.sch.trace)))
            self._score([individual])
            yield replace(candidate, predicted=self._prediction(individual))

    def _round(self, measured: list[_Individual], room: int) -> Iterator[MeasureCandidate]:
        at_random = sum(self.rng.random() < self.eps_greedy for _ in range(room))
        chosen = 0
        for individual in self._evolved(measured):
            if chosen == room - at_random:
                break
            del self._waiting[individual.shash]
            if self.is_new(individual.shash):
                chosen += 1
                score = self._prediction(individual)
                yield self.candidate(individual.sch, individual.shash, score)
        # The rest by chance, also where evolution found too few.
        yield from self._at_random(room - chosen)

    def _evolved(self, measured: list[_Individual]) -> list[_Individual]:
        """Programs that were not measured yet, the best first: of the generations of this round,
        and of earlier rounds."""
        population = [*measured, *self._waiting.values()]
        for _ in range(self.population_size - len(measured)):
            sch = self.draw()
            individual = None if sch is None else self._waits(sch)
            if individual is not None:
                self._mark_tried(_decided(_without_postproc(individual.sch.trace)))
                population.append(individual)
        self._score(population)
        for _ in range(self.genetic_num_iters):
            population.sort(key=lambda each: -each.score)
            children = self._children(population[: self.population_size])
            self._score(children)
            population += children
        ranked = sorted(self._waiting.values(), key=lambda each: -each.score)
        del ranked[MAX_WAITING * self.population_size :]
        self._waiting = {each.shash: each for each in ranked}
        return ranked

    def _waits(self, sch: Schedule) -> _Individual | None:
        """Keep a program that was not met before until it is measured; None for others."""
        shash = structural_hash(sch.mod)
        if shash in self.seen or shash in self._waiting:
            return None
        self._waiting[shash] = _Individual(sch, shash)
        return self._waiting[shash]

    def _score(self, population: Sequence[_Individual]) -> None:
        if self.cost_model is None or not population:
            return
        candidates = [
            MeasureCandidate(each.sch, self.args_info, cached_hash=each.shash)
            for each in population
        ]
        scores = self.cost_model.predict(self.context, candidates)
        for individual, score in zip(population, scores, strict=True):
            individual.score = float(score)

    def _prediction(self, individual: _Individual) -> float | None:
        """The score, where the model has learnt something."""
        return individual.score if self._has_learnt else None

    def _children(self, parents: list[_Individual]) -> list[_Individual]:
        """The next generation: programs that were not met before. In a space in which many
        decisions make the same program there may be few."""
        children: list[_Individual] = []
        for trace in islice(self._changed(parents), MAX_REPLAYS * self.children):
            sch = self.sampler.replay(trace)
            child = None if sch is None else self._waits(sch)
            if child is not None:
                children.append(child)
                if len(children) == self.children:
                    break
        return children

    def _changed(self, parents: list[_Individual]) -> Iterator[Trace]:
        """Traces with decisions that were not tried before. Parents are sorted, and chosen by rank:
        scores of models have no scale."""
        weights = list(accumulate(1.0 / (rank + 2) for rank in range(len(parents))))
        traces = [_without_postproc(parent.sch.trace) for parent in parents]
        for _ in range(self.genetic_max_fail_count * self.children):
            if self.rng.random() >= self.genetic_mutate_prob:
                # It stays as it is, and is known already.
                continue
            (parent,) = self.rng.choices(traces, cum_weights=weights)
            changed = self._mutated(parent)
            if changed is None or not self.sampler.may_pass(changed):
                continue
            key = _decided(changed)
            if key is None or key not in self._tried:
                self._mark_tried(key)
                yield changed

    def _mark_tried(self, decided: int | None) -> None:
        """Note decisions that are, or were, replayed."""
        if decided is not None:
            if len(self._tried) == MAX_TRIED:
                self._tried.clear()
            self._tried.add(decided)

    def _mutated(self, trace: Trace) -> Trace | None:
        mutators = self.context.mutator_probs
        if mutators:
            kinds, weights = list(mutators), list(mutators.values())
            # What mutators leave to others: their probabilities need not add up to one.
            chosen = self.rng.choices([*kinds, None], [*weights, max(0.0, 1.0 - sum(weights))])[0]
            changed = None if chosen is None else chosen.apply(trace, self.rng)
            if changed is not None:
                return changed
        return with_other_decision(trace, self.rng)


def _decided(trace: Trace) -> int | None:
    """A hash of the decisions of a trace without post-processing; None where some are not made."""
    decisions = [trace.get_decision(inst) for inst in trace.insts if inst.kind.sampling]
    return None if None in decisions else hash(f"{len(trace.insts)} {plain(decisions)}")


def _without_postproc(trace: Trace) -> Trace:
    return trace.simplified(remove_postproc=True)
