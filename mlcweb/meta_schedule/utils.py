"""What TVM's users import from `meta_schedule.utils`; counting where time goes; a search without
garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from mlcweb.runtime.host import clock

Class = TypeVar("Class", bound=type)


def derived_object(cls: Class) -> Class:
    """Marks a subclass of `PyScheduleRule` and the like, as TVM asks for. Here such classes are
    used as they are."""
    base = cls.__mro__[1]
    if not base.__module__.startswith("mlcweb.") and not hasattr(base, "_cls"):
        raise TypeError(f"{cls.__name__} is a subclass of {base.__name__}, not of PyRunner or such")
    cls._cls = cls
    return cls


YOUNG_OBJECTS = 10_000
"""Objects after which a search looks for garbage: most of what a trial makes is gone by then."""


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Within, what existed at the beginning is left out of garbage collection, which also comes
    less often. It takes a quarter of the time of compiling otherwise."""
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


_active: list[Profiler] = []


class Profiler:
    """Sums up the time of each part that `Profiler.timeit(name)` marks while it is entered."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = 0.0

    def __enter__(self) -> Profiler:
        self._start = clock()
        _active.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.remove(self)
        self._seconds["Total"] = clock() - self._start

    @staticmethod
    def current() -> Profiler | None:
        """The innermost profiler that is entered."""
        return _active[-1] if _active else None

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Count the time of what is inside under a name."""
        start = clock()
        try:
            yield
        finally:
            for profiler in _active[-1:]:
                seconds = profiler._seconds
                seconds[name] = seconds.get(name, 0.0) + clock() - start

    def get(self) -> dict[str, float]:
        """The seconds of each part, and "Total"."""
        return dict(self._seconds)

    def table(self) -> str:
        """The parts in a table, the longest first."""
        total = self._seconds.get("Total", 0.0)
        rows = sorted(self._seconds.items(), key=lambda item: -item[1])
        width = max((len(name) for name in self._seconds), default=0)
        share = 100 / total if total else 0.0
        return "\n".join(f"{n:<{width}}  {s:9.4f} s  {s * share:6.2f} %" for n, s in rows)
