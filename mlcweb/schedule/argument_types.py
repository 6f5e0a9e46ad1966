"""The types of arguments, checked as signatures say them.

As in TVM, a sequence is a list or a tuple, an integer has 64 bits, and True and False alone are
booleans. An integer is a floating-point number, too, since printed traces have 1 for 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin

from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule.accessed_buffer import AccessedBuffer
from mlcweb.schedule.instruction import BlockRV, ExprRV, LoopRV  # noqa: F401
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.tensor_intrin import TensorIntrin

MapArgument = IndexMap | Callable[..., Any]
"""A map of indices, or a function that describes one."""

BufferArgument = tuple[str, int] | str | Buffer | AccessedBuffer
"""A buffer of a block: ("read" or "write", index), its name, or itself."""

_Value = str | int | float | PrimExpr
AnnotationArgument = _Value | Sequence[_Value] | Mapping[str, _Value | Sequence[_Value]]
"""The value of an annotation, which is what a record can hold."""

_NAMES = dict(globals())
"""What annotations may name."""

_DESCRIPTIONS: dict[Any, str] = {
    BlockRV: "a block (what sch.get_block returns)",
    LoopRV: "a loop (what sch.get_loops, sch.split or sch.fuse returns)",
    PrimExpr: "an expression",
    Buffer: "a buffer",
    TensorIntrin: "a TensorIntrin",
    IndexMap: "an index map",
    Callable: "a function",
    Sequence: "a list",
    Mapping: "a dict",
    tuple: 'a pair such as ("read", 0)',
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    NoneType: "None",
}

Method = TypeVar("Method", bound=Callable[..., Any])
T = TypeVar("T")


@cache
def type_test(annotation: str) -> Callable[[Any], bool]:
    """A function that says whether an argument is of the type that an annotation says."""
    return _test(_type_of(annotation))


def wrong_type(method: str, name: str, value: Any, annotation: str) -> TypeError:
    """The error for an argument of a method that is not of the type that its annotation says."""
    return TypeError(f"Schedule.{method}, {name}: {_fault(value, _type_of(annotation))}")


def checked(method: Method) -> Method:
    """A method of a schedule that checks the types of its arguments first."""
    parameters, annotations = signature(method), method.__annotations__

    @wraps(method)
    def check_and_call(*args: Any, **kwargs: Any) -> Any:
        for name, value in parameters.bind(*args, **kwargs).arguments.items():
            annotation = annotations.get(name, "Any")
            if not type_test(annotation)(value):
                raise wrong_type(method.__name__, name, value, annotation)
        return method(*args, **kwargs)

    return check_and_call  # type: ignore[return-value]


def _type_of(annotation: str) -> Any:
    return eval(annotation, _NAMES)


@cache
def _test(kind: Any) -> Callable[[Any], bool]:
    """A function that says whether a value is of a type: types are slow to take apart, and each
    argument of each step is tested."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        numbers = (int, float)
        classes = tuple(p for p in parts if isinstance(p, type) and p not in numbers)
        others = [_test(part) for part in parts if part not in classes]
        return lambda value: isinstance(value, classes) or any(test(value) for test in others)
    if origin is int:
        return _is_int64
    if not parts or origin not in (Sequence, Mapping, tuple):
        return lambda value: _is_of(value, origin, parts)
    tests = [_test(part) for part in parts]
    if origin is Sequence:
        return lambda value: isinstance(value, (list, tuple)) and all(map(tests[0], value))
    return lambda value: (
        _is_of(value, origin, parts)
        and all(test(item) for item, test in _items(value, origin, tests))
    )


def _fault(value: Any, kind: Any) -> str:
    """Why a value is not of a type."""
    parts = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    for part in parts:
        origin, inner = get_origin(part) or part, get_args(part)
        if _is_of(value, origin, inner):  # Then its items say more than that it is a list.
            items = _items(value, origin, inner)
            return next(_fault(item, kind) for item, kind in items if not _test(kind)(item))
    descriptions = [
        _DESCRIPTIONS[get_origin(part) or part] for part in parts if part != AccessedBuffer
    ]
    *first, last = descriptions
    return f"{shortened(value)} is not {', '.join(first)}{' or ' if first else ''}{last}"


def _is_of(value: Any, origin: Any, parts: Sequence[Any]) -> bool:
    """Whether a value is of a type, but for its items; not for unions."""
    if origin is Any:
        return True
    if origin is Sequence:
        return isinstance(value, (list, tuple))
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(parts)
    if origin is int:
        return _is_int64(value)
    if origin is float:
        return isinstance(value, float) or _is_int64(value)
    return isinstance(value, origin)


def _is_int64(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _items(value: Any, origin: Any, parts: Sequence[T]) -> Iterable[tuple[Any, T]]:
    """What a list or dict holds, each item with the part of the type that is for it."""
    if origin is Sequence:
        return [(item, parts[0]) for item in value]
    if origin is Mapping:
        return [pair for item in value.items() for pair in zip(item, parts, strict=True)]
    return zip(value, parts, strict=True) if origin is tuple else ()
