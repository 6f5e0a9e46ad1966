"""Files of JSON lines that survive crashes, and to which several processes append.

Whoever appends holds the file's lock, which the system takes back from a process that dies. What a
process that was killed in the middle of a write leaves is at most a last line without its end; it
is skipped with a warning, and cut off by the next line that is written.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

Item = TypeVar("Item")

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"
"""TVM's names of the two files of a database."""

_BEYOND = 1 << 62
"""Windows locks bytes of a file, and nobody else may read those: one that no file has."""


def read_record(item: Any, workloads: Sequence[Workload | None]) -> TuningRecord:
    """A record from what its line holds: the number of a workload, and the record.

    Raises:
        ValueError: it is something else, or its workload is missing.
    """
    if not (isinstance(item, list) and len(item) == 2 and type(item[0]) is int):
        raise ValueError("no list of a workload's number and a record")
    number = item[0]
    workload = workloads[number] if 0 <= number < len(workloads) else None
    if workload is None:
        raise ValueError(f"there is no readable workload {number}")
    return TuningRecord.from_json(item[1], workload)


def line(item: object) -> str:
    """An item as a line."""
    return json.dumps(item, separators=(",", ":")) + "\n"


class LineFile(Generic[Item]):
    """A file of lines that other processes may be writing, too.

    All its methods are called while its lock, or the one that replaces it, is held.

    Args:
        convert: makes an item of what a line holds; any error of it leaves the line out.
    """

    def __init__(self, path: Path, convert: Callable[[Any], Item]) -> None:
        self.path = path
        self.convert = convert
        self.start_over()

    @property
    def shrank(self) -> bool:
        """Whether the file is shorter than what was read of it: somebody began it anew."""
        return self._size() < self._read_bytes

    def start_over(self) -> None:
        """Read the file again from its beginning."""
        self._read_bytes = self._lines = 0
        self._partial_line = b""

    def news(self) -> list[Item | None]:
        """What was written since it was last asked for: one item for each line. A last line without
        its end counts where it can be read; else the process that wrote it is dead."""
        if self._size() <= self._read_bytes:
            return []
        with self.path.open("rb") as file:
            file.seek(self._read_bytes)
            content = file.read()
        whole, newline, half = content.rpartition(b"\n")
        items = self._items(whole + newline)
        self._read_bytes += len(whole + newline)
        if half and half != self._partial_line:
            (item,) = self._items(half + b"\n")
            if item is not None:
                items.append(item)
                self._read_bytes += len(half)
                half = b""
            else:
                self._lines -= 1
        self._partial_line = half
        return items

    def _items(self, content: bytes) -> list[Item | None]:
        """The items of whole lines: one for each, None for a line that is broken; one warning for
        all that are."""
        items: list[Item | None] = []
        broken: list[str] = []
        for text in content.split(b"\n")[:-1]:
            self._lines += 1
            item: Item | None = None
            try:
                item = self.convert(json.loads(text))
            # Anything may stand in a file, and a program of nonsense fails wherever it is seen.
            except Exception as error:
                reason = str(error).partition("\n")[0]
                broken.append(f"{self.path.name}, line {self._lines}, is skipped: {reason}")
            items.append(item)
        if broken:
            more = f" ({len(broken) - 1} more lines are skipped, too)" if len(broken) > 1 else ""
            warnings.warn(broken[0] + more, stacklevel=6)
        return items

    def append(self, text: str) -> None:
        """Write a line behind all that can be read. `news` has to be asked for before.

        Raises:
            OSError: there is no room, or no right to write.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Binary: Windows would write other ends of lines.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o644)
        try:
            os.ftruncate(descriptor, self._read_bytes)
            if self._read_bytes:
                os.lseek(descriptor, self._read_bytes - 1, os.SEEK_SET)
                if os.read(descriptor, 1) != b"\n":
                    text = "\n" + text
            data = text.encode()
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        self._read_bytes += len(data)
        self._partial_line = b""
        self._lines += 1

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0


@contextmanager
def locked(path: Path, create: bool) -> Iterator[None]:
    """Hold the lock of a file. Where there is no such file, or no locks, nothing is held.

    Args:
        create: make the file, and its folder, where it is missing.
    """
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT if create else os.O_RDONLY, 0o644)
    except FileNotFoundError:
        yield
        return
    try:
        _lock(descriptor)
        yield
    finally:
        # Closing gives the lock back, and so does the end of the process.
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        if sys.platform == "win32":
            _lock_on_windows(descriptor)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except (ImportError, OSError):
        # A browser, or a file system of another machine that has no locks: one writer at a time.
        return


def _lock_on_windows(descriptor: int) -> None:
    assert sys.platform == "win32"
    import msvcrt

    os.lseek(descriptor, _BEYOND, os.SEEK_SET)
    while True:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            return
        except OSError as error:
            # It gives up after ten seconds.
            if error.errno != errno.EDEADLK:
                raise
