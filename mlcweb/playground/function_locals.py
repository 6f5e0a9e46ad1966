"""What functions of a program had in their local variables when they ended.

Many programs do all of their work in `main()`, and leave no global variable to look at. From Python
3.12 on the interpreter tells when functions return, of those that it was asked about and at no cost
for others (PEP 669); before, only functions that an error has left are looked into.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import Any

from mlcweb.user_code import namespace

LIMIT = 32
"""Values kept of a run; the latest."""

_monitoring: Any = getattr(sys, "monitoring", None)
_TOOL, _NAME = 4, "mlcweb"


def watch(code: CodeType) -> None:
    """Be told when the functions of compiled code return, now and in later runs."""
    if not _has_tool():
        return
    for part in code.co_consts:
        if isinstance(part, CodeType):
            # Neither bodies of classes nor comprehensions.
            if part.co_flags & inspect.CO_OPTIMIZED and not part.co_name.startswith("<"):
                _monitoring.set_local_events(_TOOL, part, _monitoring.events.PY_RETURN)
            watch(part)


@contextmanager
def kept(values: dict[str, Any]) -> Iterator[None]:
    """Meanwhile, schedules and programs of functions that return go into `values`, under names as
    "sch in main"."""
    if not _has_tool():
        yield
        return

    def returned(code: CodeType, offset: int, value: object) -> Any:
        # A function that has nothing to look at is not asked again in this run.
        return None if _keep(sys._getframe(1), values) else _monitoring.DISABLE

    event = _monitoring.events.PY_RETURN
    _monitoring.restart_events()
    _monitoring.register_callback(_TOOL, event, returned)
    try:
        yield
    finally:
        _monitoring.register_callback(_TOOL, event, None)


def keep_of_error(
    traceback: TracebackType | None, files: Collection[str], values: dict[str, Any]
) -> None:
    """Put what the functions of some files had that an error has left into `values`."""
    frames: list[FrameType] = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        if frame.f_code.co_filename in files and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            _keep(frame, values)


def _keep(frame: FrameType, values: dict[str, Any]) -> bool:
    """Whether a function has something to look at, beside its arguments, which others made."""
    code = frame.f_code
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = {
        name: value
        for name, value in frame.f_locals.items()
        if name not in arguments and namespace.can_be_shown(value)
    }
    for name, value in shown.items():
        # A function that calls another and has its value comes later, and names it.
        for earlier in [earlier for earlier, other in values.items() if other is value]:
            del values[earlier]
        key = f"{name} in {code.co_name}"
        values.pop(key, None)
        values[key] = value
        while len(values) > LIMIT:
            del values[next(iter(values))]
    return bool(shown)


def _has_tool() -> bool:
    """Take a place among the tools that Python tells of returns; whether it is there to be had."""
    if _monitoring is None:
        return False
    if _monitoring.get_tool(_TOOL) is None:
        _monitoring.use_tool_id(_TOOL, _NAME)
    return _monitoring.get_tool(_TOOL) == _NAME
