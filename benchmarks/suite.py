"""The measuring loop: every engine in turn, round after round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.engine import Engine, NotForThis
from benchmarks.results import Results, Samples

MAX_SECONDS = 2.0
"""An engine is not asked again for a program once its samples took so long."""


def measure(
    engines: Sequence[Engine],
    programs: Sequence[str],
    rounds: int,
    say: Callable[[str], None] = lambda line: None,
) -> Results:
    """Measure programs on engines. What fails is noted, and the rest goes on."""
    results = Results()
    for program in programs:
        say(program)
        prepared = [e for e in engines if _is_prepared(e, program, results)]
        try:
            _measure(prepared, program, rounds, results)
        finally:
            for engine in prepared:
                engine.forget(program)
    return results


def _is_prepared(engine: Engine, program: str, results: Results) -> bool:
    if engine.only_best and not program.endswith("/best"):
        return False
    try:
        engine.prepare(program)
    except NotForThis:
        return False
    except Exception as error:
        # Without the frames of JavaScript that a page adds.
        message = str(error).partition("\n    at ")[0]
        results.failures.append(f"{program} on {engine.name}: {type(error).__name__}: {message}")
        return False
    return True


def _measure(engines: Sequence[Engine], program: str, rounds: int, results: Results) -> None:
    seconds: dict[str, list[float]] = {engine.name: [] for engine in engines}
    peaks: dict[str, list[float]] = {engine.name: [] for engine in engines}
    for _ in range(rounds):
        for engine in engines:
            # A sample is at least one call, and one call before that.
            if 2 * sum(seconds[engine.name]) > MAX_SECONDS:
                continue
            peak = engine.peak()
            seconds[engine.name].append(engine.sample(program))
            if peak is not None:
                peaks[engine.name].append(peak)
    for name, samples in seconds.items():
        results.samples[program, name] = Samples(samples, peaks[name])
