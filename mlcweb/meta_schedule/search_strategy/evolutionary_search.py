"""Evolutionary search: what was fast is changed a little, and a cost model says what to try.

The scheme is Ansor's (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep
Learning", OSDI 2020): a population of the fastest known and of random programs; generations of
mutations in which the better are chosen more often; then the best that were not measured yet, and
a few at random, so that the model meets what it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mlcweb.ir import TVMError, structural_hash
from mlcweb.meta_schedule.database import MemoryDatabase
from mlcweb.meta_schedule.search_strategy.decisions import crossed, with_other_decision
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    RunnerResult,
    SearchStrategy,
    peeked,
)  # fmt: skip
from mlcweb.tir.schedule import Schedule, ScheduleError, Trace

CROSSING = 0.2
"""The share of children with two parents."""


@dataclass(slots=True)
class _Individual:
    sch: Schedule
    shash: int
    score: float = 0.0


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
        genetic_mutate_prob: the probability that a child is changed.
        genetic_max_fail_count: attempts at one child.
        eps_greedy: the share of a round that is drawn at random.
        round_size: candidates in a round, where `num_trials_per_iter` does not say fewer: after
            each the search learns.
    """

    def __init__(
        self,
        *,
        population_size: int = 32,
        init_measured_ratio: float = 0.5,
        init_min_unmeasured: int = 16,
        max_fail_count: int = 50,
        genetic_num_iters: int = 2,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 5,
        eps_greedy: float = 0.1,
        round_size: int = 16,
    ) -> None:
        for name, value in (
            ("init_measured_ratio", init_measured_ratio),
            ("genetic_mutate_prob", genetic_mutate_prob),
            ("eps_greedy", eps_greedy),
        ):
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is a share, from 0 to 1; {value} is none")
        self.population_size = population_size
        self.init_measured_ratio = init_measured_ratio
        self.init_min_unmeasured = init_min_unmeasured
        self.max_fail_count = max_fail_count
        self.genetic_num_iters = genetic_num_iters
        self.genetic_mutate_prob = genetic_mutate_prob
        self.genetic_max_fail_count = genetic_max_fail_count
        self.eps_greedy = eps_greedy
        self.round_size = round_size

    def pre_tuning(self, *args: object, **kwargs: object) -> None:
        super().pre_tuning(*args, **kwargs)  # type: ignore[arg-type]
        if self.database is None:
            self.database = MemoryDatabase()
        assert self.context.mod is not None
        self.workload = self.database.commit_workload(self.context.mod)
        self._replayed: dict[str, _Individual] = {}

    def propose(self) -> Iterator[MeasureCandidate] | None:
        room = min(self.room(), self.round_size)
        if room <= 0:
            return None
        known = self._fastest_known()
        if not known or self.proposed < min(self.init_min_unmeasured, self.max_trials // 2):
            found = peeked(self.fresh_candidates(room, self.max_fail_count))
            if found is not None or not known:
                return found
        return peeked(self._round(known, room))

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        if self.cost_model is not None:
            self.cost_model.update(self.context, measure_candidates, results)

    def _fastest_known(self) -> list[_Individual]:
        """The fastest schedules of the database; each is replayed once."""
        assert self.database is not None
        count = max(1, int(self.population_size * self.init_measured_ratio))
        texts = [r.trace_text for r in self.database.get_top_k(self.workload, count)]
        found: dict[str, _Individual] = {}
        for text in texts:
            individual = self._replayed.get(text) or self._of_record(text)
            if individual is not None:
                found[text] = individual
        # What is no longer among the fastest is forgotten.
        self._replayed = found
        return list(found.values())

    def _of_record(self, text: str) -> _Individual | None:
        sch = self.sampler.blank()
        try:
            Trace.apply_json_to_schedule(json.loads(text), sch)
        except (ScheduleError, TVMError, ValueError):
            return None
        self.seen.add(sch.mod)
        return _Individual(sch, structural_hash(sch.mod))

    def _round(self, known: list[_Individual], room: int) -> Iterator[MeasureCandidate]:
        at_random = sum(self.rng.random() < self.eps_greedy for _ in range(room))
        yield from self._chosen(self._evolved(known), room - at_random)
        # The rest by chance, also where evolution found too few.
        missing = room - self._made
        yield from self.fresh_candidates(missing, self.max_fail_count)

    def _chosen(self, found: list[_Individual], count: int) -> Iterator[MeasureCandidate]:
        self._made = 0
        for individual in sorted(found, key=lambda each: -each.score):
            if self._made == count:
                return
            if self.seen.add(individual.sch.mod):
                self._made += 1
                yield self.candidate(individual.sch, individual.score)

    def _evolved(self, known: list[_Individual]) -> list[_Individual]:
        """All programs of all generations that were not measured yet, with scores."""
        population = list(known)
        found: dict[int, _Individual] = {}
        failures = 0
        while len(population) < self.population_size and failures < self.max_fail_count:
            sch = self.sampler.fresh(self.design_spaces)
            if sch is None:
                failures += 1
                continue
            individual = _Individual(sch, structural_hash(sch.mod))
            failures += individual.shash in found
            found[individual.shash] = individual
            population.append(individual)
        for generation in range(self.genetic_num_iters + 1):
            self._score(population)
            for individual in population:
                found.setdefault(individual.shash, individual)
            if generation < self.genetic_num_iters:
                population = self._children(population)
        return list(found.values())

    def _score(self, population: Sequence[_Individual]) -> None:
        if self.cost_model is None or not population:
            return
        candidates = [MeasureCandidate(each.sch, self.args_info) for each in population]
        scores = self.cost_model.predict(self.context, candidates)
        for individual, score in zip(population, scores, strict=True):
            individual.score = float(score)

    def _children(self, population: list[_Individual]) -> list[_Individual]:
        """The next generation. Parents are chosen by rank: scores of models have no scale."""
        parents = sorted(population, key=lambda each: -each.score)
        weights = list(accumulate(1.0 / (rank + 2) for rank in range(len(parents))))
        children: list[_Individual] = []
        met: set[int] = set()
        for _ in range(self.population_size):
            for _ in range(self.genetic_max_fail_count):
                (parent, other) = self.rng.choices(parents, cum_weights=weights, k=2)
                if self.rng.random() >= self.genetic_mutate_prob:
                    if parent.shash not in met:
                        met.add(parent.shash)
                        children.append(parent)
                    break
                trace = self._mutated(parent.sch.trace, other.sch.trace)
                sch = None if trace is None else self.sampler.replay(trace)
                if sch is None:
                    continue
                child = _Individual(sch, structural_hash(sch.mod))
                if child.shash not in met:
                    met.add(child.shash)
                    children.append(child)
                    break
        return children or parents

    def _mutated(self, trace: Trace, other: Trace) -> Trace | None:
        own = _without_postproc(trace)
        if self.rng.random() < CROSSING:
            return crossed(own, _without_postproc(other), self.rng)
        mutators = self.context.mutator_probs
        if mutators:
            kinds, weights = list(mutators), list(mutators.values())
            # What mutators leave to others: their probabilities need not add up to one.
            chosen = self.rng.choices([*kinds, None], [*weights, max(0.0, 1.0 - sum(weights))])[0]
            changed = None if chosen is None else chosen.apply(own, self.rng)
            if changed is not None:
                return changed
        return with_other_decision(own, self.rng)


def _without_postproc(trace: Trace) -> Trace:
    return trace.simplified(remove_postproc=True)
