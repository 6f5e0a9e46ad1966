"""The results as Markdown, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.engine import Engine
from benchmarks.results import Results
from benchmarks.targets import TARGETS

HEAD = """\
Times in microseconds, the median of the rounds ± half the distance of the quartiles; in
parentheses GFLOPS, and the share of P, the peak of the same engine at the same time.
"""


def markdown(results: Results, engines: Sequence[Engine], programs: Sequence[str]) -> str:
    """The table of times, that of targets, and what went wrong."""
    engines = [e for e in engines if any((p, e.name) in results.samples for p in programs)]
    parts = [HEAD, _table(_times(results, engines, programs))]
    if targets := list(_targets(results)):
        parts.append(_table([["target", "engine", "wanted", "reached", ""], *targets]))
    parts += [f"- {failure}" for failure in results.failures]
    return "\n".join(parts)


def _times(
    results: Results, engines: Sequence[Engine], programs: Sequence[str]
) -> Iterator[list[str]]:
    yield ["program", "P", *(engine.title for engine in engines)]
    for program in programs:
        peaks = [
            f"{samples.peak:.1f}"
            for engine in engines
            if (samples := results.samples.get((program, engine.name))) and samples.peak
        ]
        cells = [_cell(results, program, engine.name) for engine in engines]
        yield [program, ", ".join(peaks), *cells]


def _cell(results: Results, program: str, engine: str) -> str:
    samples = results.samples.get((program, engine))
    if samples is None:
        return ""
    text = f"{samples.median * 1e6:.4g} ±{samples.spread:.0%}"
    rate, share = results.gflops(program, engine), results.share(program, engine)
    if rate:
        text += f" ({rate:.1f}, {share:.0%})" if share else f" ({rate:.1f})"
    return text


def _targets(results: Results) -> Iterator[list[str]]:
    for target in TARGETS:
        verdict = target.verdict(results)
        if verdict is not None:
            mark = "pass" if verdict.passed else f"FAIL ({verdict.ratio:.2f})"
            yield [target.program, target.engine, target.wanted, verdict.reached, mark]


def _table(rows: Iterator[list[str]] | list[list[str]]) -> str:
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |\n"
        for line in lines
    )


def plain(results: Results) -> dict[str, Any]:
    """Everything measured, for JSON: samples in seconds, peaks in GFLOPS, and the verdicts."""
    measured = [
        {
            "program": program,
            "engine": engine,
            "seconds": list(samples.seconds),
            "peaks": list(samples.peaks),
        }
        for (program, engine), samples in results.samples.items()
    ]
    verdicts = [
        {
            "program": target.program,
            "engine": target.engine,
            "wanted": target.wanted,
            "reached": verdict.reached,
            "passed": verdict.passed,
        }
        for target in TARGETS
        if (verdict := target.verdict(results))
    ]
    return {"samples": measured, "targets": verdicts, "failures": results.failures}
