"""What TVM's users import from `meta_schedule.utils`; and a search without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Class = TypeVar("Class", bound=type)


def derived_object(cls: Class) -> Class:
    """Marks a subclass of `PyScheduleRule` and the like, as TVM asks for. Here such classes are
    used as they are."""
    base = cls.__mro__[1]
    if not base.__module__.startswith("mlcweb.") and not hasattr(base, "_cls"):
        raise TypeError(f"{cls.__name__} is a subclass of {base.__name__}, not of PyRunner or such")
    cls._cls = cls
    return cls


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Within, what existed at the beginning is left out of garbage collection. It takes a quarter
    of the time of compiling otherwise."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
