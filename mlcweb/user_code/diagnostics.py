"""Exceptions as users see them: the user's frames only, and the range of text at fault."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Literal

from mlcweb.schedule import ScheduleError
from mlcweb.user_code import exception_chain, fixes, packages
from mlcweb.user_code.fixes import Fix, TextRange


@dataclass(slots=True)
class Diagnostic(TextRange):
    """What is wrong with a range of a program's text; columns in UTF-16 units, as editors count.

    Attributes:
        fix: where there is an obvious one.
    """

    message: str
    severity: Literal["error", "warning"] = "error"
    fix: Fix | None = None


@dataclass(slots=True)
class RunError:
    """An exception that ended a program.

    Attributes:
        kind: the name of its class.
        text: the traceback, with the program's own frames only.
    """

    kind: str
    message: str
    text: str
    diagnostics: list[Diagnostic]


def describe(
    error: BaseException,
    filename: str,
    own: Collection[str] | None = None,
    known: Collection[str] = (),
) -> RunError:
    """What to show for an exception that a program named `filename` raised.

    Args:
        error: the exception.
        filename: the text in which the place at fault is looked for.
        own: names of all files of the program, whose frames are shown; `filename` alone if None.
        known: names that the program has.
    """
    try:
        return _describe(error, filename, own or (filename,), known)
    except KeyboardInterrupt:
        raise  # a Stop while it says what it is
    except BaseException as failure:
        # What an exception of the program says of itself is code of the program.
        kind = class_name(error)
        message = f"it cannot be described: its own methods raise {class_name(failure)}"
        return RunError(kind, message, f"{kind}: {message}", [])


def class_name(value: object) -> str:
    """The name of a value's class, cut to 200 characters; metaclasses may deny it."""
    return type.__dict__["__name__"].__get__(type(value))[:200]


def _describe(
    error: BaseException, filename: str, own: Collection[str], names: Collection[str]
) -> RunError:
    message = _cut(error.msg if isinstance(error, SyntaxError) else _message(error))
    place = _place(error, filename)
    kind = _kind(error)
    marks = []
    if place is not None and not isinstance(error, KeyboardInterrupt):
        fix = _fix(error, message, place, filename, names)
        marks.append(Diagnostic(*_range(filename, place), f"{kind}: {message}", fix=fix))
    own_name = f"{type(error).__module__}.{type(error).__qualname__}: "
    text = _traceback(error, own).replace(own_name, f"{kind}: ") + _hint(error)
    exception_chain.unlink(error)
    return RunError(kind, message, _cut(text), marks)


LONGEST = 20_000
"""Characters of a message that are shown."""


def _cut(text: str) -> str:
    """A text without its middle, where it is too long for a page to show."""
    left_out = len(text) - LONGEST
    if left_out <= 0:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… {left_out:,} characters are left out …\n{text[-half:]}"


def _range(filename: str, place: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """A range in characters, in UTF-16 units."""
    line, column, end_line, end_column = place
    return line, _utf16(filename, line, column), end_line, _utf16(filename, end_line, end_column)


def _fix(
    error: BaseException,
    message: str,
    place: tuple[int, int, int, int],
    filename: str,
    names: Collection[str],
) -> Fix | None:
    lines = [line.rstrip("\r\n") for line in linecache.getlines(filename)]
    fix = fixes.suggest(error, message, place, lines, names)
    if fix is None:
        return None
    where = _range(filename, (fix.line, fix.column, fix.end_line, fix.end_column))
    return Fix(*where, fix.title, fix.text)


def _kind(error: BaseException) -> str:
    """The class's name; of errors of this package, the one that is part of TVM's interface."""
    return "ScheduleError" if isinstance(error, ScheduleError) else class_name(error)


def _hint(error: BaseException) -> str:
    if sys.platform != "emscripten" or not isinstance(error, ModuleNotFoundError):
        return ""
    package = (error.name or "").partition(".")[0]
    return "" if package in packages.OWN else f"\n{packages.advice(package)}"


def _message(error: BaseException) -> str:
    """What is wrong, without excerpts of programs, which are in the traceback's text."""
    if isinstance(error, ScheduleError) and error.render_level != "none":
        advice = f"\nWhat would work: {error.advice}" if error.advice else ""
        return error.reason + advice
    return str(getattr(error, "message", "") or error)


def _place(error: BaseException, filename: str) -> tuple[int, int, int, int] | None:
    """Line, column, end line, end column of what is at fault; columns in characters from 0."""
    if isinstance(error, SyntaxError) and error.filename == filename and error.lineno:
        column = max(0, (error.offset or 1) - 1)
        end_line = error.end_lineno or error.lineno
        end_column = (error.end_offset or 0) - 1
        if (end_line, end_column) <= (error.lineno, column):
            end_line, end_column = error.lineno, column + 1
        return error.lineno, column, end_line, end_column
    span = getattr(error, "span", None)
    if span is not None and getattr(span, "filename", None) == filename:
        return span.line, span.column, span.end_line, span.end_column
    frame = _innermost(error.__traceback__, filename)
    return None if frame is None else _frame_place(frame, filename)


def _innermost(frame: TracebackType | None, filename: str) -> TracebackType | None:
    innermost = None
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == filename:
            innermost = frame
        frame = frame.tb_next
    return innermost


def _frame_place(frame: TracebackType, filename: str) -> tuple[int, int, int, int]:
    positions = frame.tb_frame.f_code.co_positions()
    line, end_line, column, end_column = next(
        islice(positions, frame.tb_lasti // 2, None), (None, None, None, None)
    )
    if line is None or end_line is None or column is None or end_column is None:
        text = linecache.getline(filename, frame.tb_lineno).rstrip()
        return frame.tb_lineno, len(text) - len(text.lstrip()), frame.tb_lineno, len(text)
    return (
        line,
        _character(filename, line, column),
        end_line,
        _character(filename, end_line, end_column),
    )


def _character(filename: str, line: int, offset: int) -> int:
    """The column in characters of a byte offset, which is what code objects store."""
    text = linecache.getline(filename, line)
    return len(text.encode()[:offset].decode(errors="replace"))


def _utf16(filename: str, line: int, column: int) -> int:
    text = linecache.getline(filename, line)[:column]
    # A column beyond the text (the end of a line) stays beyond it.
    return len(text.encode("utf-16-le")) // 2 + max(0, column - len(text))


def _traceback(error: BaseException, own_files: Collection[str]) -> str:
    """A traceback without the frames of the library, which says how many it left out."""
    if not exception_chain.is_small(error):
        return exception_chain.last_of(error, own_files)
    report = traceback.TracebackException.from_exception(error)
    hidden = 0
    pending: list[traceback.TracebackException | None] = [report]
    while pending:
        part = pending.pop()
        if part is None:
            continue
        own = [frame for frame in part.stack if frame.filename in own_files]
        hidden += len(part.stack) - len(own)
        part.stack = traceback.StackSummary.from_list(own)
        pending += [part.__cause__, part.__context__]
    text = "".join(report.format()).rstrip()
    # The frames that run the cell are of no interest to anyone, so they are not counted.
    inside = max(0, hidden - _frames_before(error, own_files))
    if not inside:
        return text
    frames = (
        "1 frame inside the library is"
        if inside == 1
        else f"{inside} frames inside the library are"
    )
    return f"{text}\n({frames} not shown)"


def _frames_before(error: BaseException, own_files: Collection[str]) -> int:
    count = 0
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename not in own_files:
        count += 1
        frame = frame.tb_next
    return count
