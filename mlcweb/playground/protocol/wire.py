"""Messages as JSON, and back: fields in the page's spelling, everything else as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from mlcweb.runtime.host.page_events import tell_page
from mlcweb.runtime.host.trial_messages import camel_case


def to_json(message: Any) -> str:
    """A message, or anything that holds some, as JSON."""
    return json.dumps(message, default=_plain)


def tell(event: str, message: Any) -> None:
    """Tell the page of something while Python is busy; `bridge.EVENTS` has the events."""
    tell_page(event, to_json(message))


def from_plain(kind: Any, value: Any) -> Any:
    """What JSON says, as a type says it: dataclasses of objects, everything else as it is."""
    if isinstance(kind, type) and is_dataclass(kind):
        types = _field_types(kind)
        return kind(**{n: from_plain(types[n], value[k]) for n, k in _keys(kind) if k in value})
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        options = [each for each in arguments if each is not NoneType]
        return value if value is None or len(options) > 1 else from_plain(options[0], value)
    if isinstance(value, list) and get_origin(kind) in (list, Sequence):
        return [from_plain(arguments[0], item) for item in value]
    if isinstance(value, list) and get_origin(kind) is tuple:
        return tuple(from_plain(each, item) for each, item in zip(arguments, value, strict=True))
    if isinstance(value, dict) and get_origin(kind) in (dict, Mapping):
        # The keys of JSON are texts.
        key_of, kind = (int if arguments[0] is int else str), arguments[1]
        return {key_of(key): from_plain(kind, item) for key, item in value.items()}
    return value


def _plain(message: Any) -> dict[str, Any]:
    return {key: getattr(message, name) for name, key in _keys(type(message))}


@cache
def _keys(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a dataclass, and how the page spells them."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no message: it is neither JSON nor a dataclass")
    return tuple((field.name, camel_case(field.name)) for field in fields(kind))


_field_types = cache(get_type_hints)
