"""Files of JSON lines that survive a crash in the middle of a write.

A line is written with one call that appends. What a killed process leaves is at most a last line
without its end; it is skipped with a warning, and cut off by the next line that is written.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Lines(Generic[Item]):
    """What was read: one item for each line, None for a line that is broken.

    `good_bytes` is where the next line goes: behind the last line, unless that is half a line.
    """

    items: list[Item | None]
    good_bytes: int
    ends_with_newline: bool


def read_workloads(content: bytes, name: str) -> Lines[Workload]:
    """Read a file of workloads."""
    return _read(content, name, Workload.from_json)


def read_records(
    content: bytes, name: str, workloads: Sequence[Workload | None]
) -> Lines[TuningRecord]:
    """Read a file of records: each line has the number of a workload, and a record."""

    def record(item: Any) -> TuningRecord:
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], int)):
            raise ValueError("no list of a workload's number and a record")
        number = item[0]
        workload = workloads[number] if 0 <= number < len(workloads) else None
        if workload is None:
            raise ValueError(f"there is no readable workload {number}")
        return TuningRecord.from_json(item[1], workload)

    return _read(content, name, record)


def append_line(path: Path, text: str, good_bytes: int, ends_with_newline: bool) -> int:
    """Write a line behind the first `good_bytes` bytes; the file's new length.

    Raises:
        OSError: there is no room, or no right to write.
    """
    data = ("" if ends_with_newline else "\n").encode() + text.encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.ftruncate(descriptor, good_bytes)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
    return good_bytes + len(data)


def _read(content: bytes, name: str, convert: Callable[[Any], Item]) -> Lines[Item]:
    items: list[Item | None] = []
    lines = content.split(b"\n")
    last = lines.pop()
    for number, text in enumerate(lines, 1):
        items.append(_converted(text, convert, name, number))
    good_bytes, complete = len(content) - len(last), True
    if last:
        item = _converted(last, convert, name, len(lines) + 1)
        if item is not None:
            items.append(item)
            good_bytes, complete = len(content), False
    return Lines(items, good_bytes, complete)


def _converted(text: bytes, convert: Callable[[Any], Item], name: str, number: int) -> Item | None:
    try:
        return convert(json.loads(text))
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        warnings.warn(f"{name}, line {number}, is skipped: {reason}", stacklevel=5)
        return None
