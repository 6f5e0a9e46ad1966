"""Traces step by step: the module after each instruction, and what the instruction changed.

The modules come from replaying the instructions one by one on the program that the trace starts
from. A trace does not hold that program, so the program's own modules are tried.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.tir.schedule import Schedule, Trace
from mlcweb.tir.schedule.instruction import map_inputs, python_text


@dataclass(frozen=True, slots=True)
class _Record:
    owner: str
    trace: Trace
    originals: tuple[IRModule, ...]
    result: IRModule | None


_records: dict[str, _Record] = {}
_numbers = count(1)


def register(
    owner: str,
    title: str,
    trace: Trace,
    originals: Iterable[IRModule],
    result: IRModule | None = None,
) -> dict[str, Any]:
    """Keep a trace for the page; returns its ``id``, ``title`` and ``steps`` as plain JSON.

    Args:
        owner: who `forget`s it again.
        trace: copied, so that later steps do not change what is shown.
        originals: programs that the trace may start from.
        result: the program that the trace arrives at, where that is known.
    """
    identifier = f"t{next(_numbers)}"
    _records[identifier] = _Record(owner, trace.copy(), tuple(originals), result)
    return {"id": identifier, "title": title, "steps": instructions(trace)}


def forget(owner: str) -> None:
    """Let go of an owner's traces."""
    for identifier in [i for i, record in _records.items() if record.owner == owner]:
        del _records[identifier]


def instructions(trace: Trace) -> list[dict[str, Any]]:
    """The steps of a trace: ``index`` from 1, ``text`` as Python, ``name`` of the method,
    ``decision`` as Python (None where nothing is decided) and ``isSampling``."""
    names = trace.names()
    steps = []
    for index, (inst, text) in enumerate(zip(trace.insts, trace.as_python(), strict=True), 1):
        sampling = inst.kind.sampling
        steps.append(
            {
                "index": index,
                "text": text,
                "name": inst.kind.method,
                "decision": python_text(trace.get_decision(inst), names) if sampling else None,
                "isSampling": sampling,
            }
        )
    return steps


def trace_steps(identifier: str) -> list[dict[str, Any]]:
    """`trace_step` for every step of a trace, step 0 (the program before any) included."""
    scripts = _scripts(identifier)
    return [_step(scripts, index) for index in range(len(scripts))]


def trace_step(identifier: str, index: int) -> dict[str, Any]:
    """The program after step `index`: ``index``, ``module`` (its text), and ``diff``: lines with a
    ``kind`` of "same", "added" or "removed" against the program before the step."""
    return _step(_scripts(identifier), index)


def _step(scripts: Sequence[str], index: int) -> dict[str, Any]:
    previous = scripts[max(0, index - 1)]
    return {
        "index": index,
        "module": scripts[index],
        "diff": line_diff(previous.splitlines(), scripts[index].splitlines()),
    }


def line_diff(before: Sequence[str], after: Sequence[str]) -> list[dict[str, str]]:
    """Both texts line by line, with what was removed before what was added in its place."""
    lines: list[dict[str, str]] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            lines += [{"kind": "same", "text": text} for text in after[j:j_end]]
        else:
            lines += [{"kind": "removed", "text": text} for text in before[i:i_end]]
            lines += [{"kind": "added", "text": text} for text in after[j:j_end]]
    return lines


def _scripts(identifier: str) -> list[str]:
    """The program's text before the first step and after each."""
    if identifier not in _records:
        raise TVMError("this trace is of an earlier run; run the program again")
    texts: list[str] = []
    previous: IRModule | None = None
    for module in _replay(_records[identifier]):
        # Most steps only look something up and leave the very same module.
        texts.append(texts[-1] if module is previous else module.script().rstrip("\n"))
        previous = module
    return texts


def _replay(record: _Record) -> list[IRModule]:
    failure: Exception | None = None
    for original in record.originals:
        try:
            modules = modules_between(record.trace, original)
        except (TVMError, ValueError, IndexError, TypeError) as error:
            failure = failure or error
            continue
        if record.result is None or structural_equal(modules[-1], record.result):
            return modules
    reason = f": {failure}" if failure else ""
    raise TVMError(
        "the trace does not start from a module that the program keeps in a variable" + reason
    )


def modules_between(trace: Trace, original: IRModule) -> list[IRModule]:
    """The program before the first step of a trace and after each, by replaying it."""
    schedule = Schedule(original)
    modules = [schedule.mod]
    replayed: dict[Any, Any] = {}
    for inst in trace.insts:
        inputs = map_inputs(inst.inputs, replayed)
        outputs = schedule.replay(inst.kind, inputs, inst.attrs, trace.get_decision(inst))
        replayed.update(zip(inst.outputs, outputs, strict=True))
        modules.append(schedule.mod)
    return modules
