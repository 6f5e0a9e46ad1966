"""What TVM's users import from `meta_schedule.utils`; counting where time goes; a search without
garbage collection."""

from __future__ import annotations

import abc
import gc
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.structural import structural_hash
from mlcweb.runtime.host import clock
from mlcweb.runtime.registry import get_global_func

Class = TypeVar("Class", bound=type)


def derived_object(cls: Class) -> Class:
    """Marks a subclass of `PyScheduleRule` and the like, as TVM asks for. Here such classes are
    used as they are, but for methods that they lack: a call of one is a TVMError, as in TVM, and
    making an object is none."""
    base = cls.__mro__[1]
    if not base.__module__.startswith("mlcweb.") and not hasattr(base, "_cls"):
        raise TypeError(f"{cls.__name__} is a subclass of {base.__name__}, not of PyRunner or such")
    cls._cls = cls
    for name in getattr(cls, "__abstractmethods__", ()):
        setattr(cls, name, not_implemented(base, name))
    abc.update_abstractmethods(cls)
    return cls


def not_implemented(base: type, name: str) -> Callable[..., Any]:
    """What stands in for a method that a program's own subclass of `base` lacks."""
    of, method = base.__name__.removeprefix("Py"), "".join(map(str.capitalize, name.split("_")))

    def missing(self: Any, *args: Any, **options: Any) -> Any:
        raise TVMError(
            f"Py{of}'s {method} method not implemented!\n{type(self).__name__} should define {name}"
        )

    return missing


def shash2hex(mod: IRModule) -> str:
    """A structural hash, the same in every process, in hexadecimal."""
    return f"{structural_hash(mod):#018x}"


def get_logger(name: str) -> logging.Logger:
    """Python's logger of a name."""
    return logging.getLogger(name)


def get_loggers_from_work_dir(work_dir: str, task_names: Sequence[str]) -> list[logging.Logger]:
    """A logger for each of the tasks, as `TuneContext` takes one. Searches report to listeners,
    so that none writes a file in `work_dir`."""
    return [get_logger(f"{__name__}.task_{i}_{name}") for i, name in enumerate(task_names)]


def cpu_count(logical: bool = True) -> int:
    """The threads that the processor runs at a time, or, without `logical`, its cores where each
    runs two."""
    threads = os.cpu_count() or 1
    return threads if logical else max(1, threads // 2)


def fork_seed(seed: int | None, n: int) -> list[int]:
    """Several seeds made of one, the same for the same seed."""
    import numpy as np

    return [int(each) for each in np.random.RandomState(seed).randint(1, 2**30, size=n)]


def remove_build_dir(artifact_path: str) -> None:
    """Remove a built file with its folder."""
    shutil.rmtree(Path(artifact_path).parent)


Hook = Callable[..., Any] | str | None
"""A function in the place of a default one, or the name of a registered function."""


def get_global_func_with_default_on_worker(name: Hook, default: Any) -> Any:
    """A function, the registered one of a name, or a default for None.

    Raises:
        ValueError: no function of that name is registered.
    """
    if name is None:
        return default
    return get_global_func(name) if isinstance(name, str) else name


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
