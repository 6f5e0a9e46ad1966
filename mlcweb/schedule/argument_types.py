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


def check_type(method: str, name: str, value: Any, annotation: str) -> None:
    """Raise TypeError where the argument `name` of a method is not of the type that its annotation
    says."""
    kind = _type_of(annotation)
    if not _fits(value, kind):
        raise TypeError(f"Schedule.{method}, {name}: {_fault(value, kind)}")


def checked(method: Method) -> Method:
    """A method of a schedule that checks the types of its arguments first."""
    parameters, annotations = signature(method), method.__annotations__

    @wraps(method)
    def check_and_call(*args: Any, **kwargs: Any) -> Any:
        for name, value in parameters.bind(*args, **kwargs).arguments.items():
            if name in annotations:
                check_type(method.__name__, name, value, annotations[name])
        return method(*args, **kwargs)

    return check_and_call  # type: ignore[return-value]


@cache
def _type_of(annotation: str) -> Any:
    return eval(annotation, _NAMES)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type."""
    if get_origin(kind) is UnionType:
        return any(_fits(value, part) for part in get_args(kind))
    return _is_of(value, kind) and all(_fits(*item) for item in _items(value, kind))


def _fault(value: Any, kind: Any) -> str:
    """Why a value is not of a type."""
    parts = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    for part in parts:
        if _is_of(value, part):  # Then its items say more than that it is a list.
            return next(_fault(*item) for item in _items(value, part) if not _fits(*item))
    known = [_DESCRIPTIONS[get_origin(part) or part] for part in parts if part != AccessedBuffer]
    *first, last = known
    return f"{shortened(value)} is not {', '.join(first)}{' or ' if first else ''}{last}"


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, but for its items; not for unions."""
    origin = get_origin(kind) or kind
    if origin is Any:
        return True
    if origin is Sequence:
        return isinstance(value, (list, tuple))
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(get_args(kind))
    if origin is int:
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if origin is float:
        return isinstance(value, float) or _is_of(value, int)
    return isinstance(value, origin)


def _items(value: Any, kind: Any) -> Iterable[tuple[Any, Any]]:
    """What a list or dict holds, with the types of that."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Sequence:
        return [(item, parts[0]) for item in value]
    if origin is Mapping:
        return [pair for item in value.items() for pair in zip(item, parts, strict=True)]
    return zip(value, parts, strict=True) if origin is tuple else ()
