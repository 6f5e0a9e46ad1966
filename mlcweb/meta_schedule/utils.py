"""What TVM's users import from `meta_schedule.utils`."""

from __future__ import annotations

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
