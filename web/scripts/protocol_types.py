"""Writes ``src/python/wire.ts``: the messages between page and Python, as TypeScript.

They are what the functions take and return that the page may call (`bridge.FUNCTIONS`), what Python
tells by itself (`bridge.EVENTS`) and the workers of trials, and the names in
`mlcweb.playground.protocol` of types that are no classes; constants there in capitals are written
as values. A `NewType` is a type of JavaScript's.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from mlcweb.playground import bridge
from mlcweb.playground.protocol import access, code, gpu, program, search, trace
from mlcweb.playground.protocol.wire import to_json
from mlcweb.runtime.host import trial_messages
from mlcweb.runtime.host.trial_messages import camel_case

OUTPUT = Path(__file__).parents[1] / "src" / "python" / "wire.ts"

HEADER = """\
/**
 * What page and Python say to each other. Written by `scripts/protocol_types.py` in the build from
 * the dataclasses of `mlcweb.playground.protocol`: change those.
 */
"""
FAMILIES = (program, trace, access, gpu, code, search, trial_messages)
NOT_JSON = trial_messages.__name__
"""Its messages are objects of JavaScript, whose fields may be missing."""
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}


def main() -> None:
    """Write the file, if it is another than the one there."""
    text = typescript()
    if not OUTPUT.is_file() or OUTPUT.read_text(encoding="utf-8") != text:
        OUTPUT.write_text(text, encoding="utf-8")


def typescript() -> str:
    """The whole file."""
    writer = _Writer(_aliases())
    calls = writer.table("Calls", "Functions of Python that the page may call.", {
        name: writer.signature(function) for name, function in bridge.FUNCTIONS.items()
    })  # fmt: skip
    events = writer.table("Events", "What Python tells while it is busy.", {
        name: writer.type(kind) for name, kind in bridge.EVENTS.items()
    })  # fmt: skip
    aliases = [writer.alias(name, value) for name, value in writer.aliases]
    constants = [_constant(name, value, writer) for name, value in _public(_is_constant)]
    for _, kind in _public(lambda _, value: getattr(value, "__module__", "") == NOT_JSON):
        if is_dataclass(kind):
            writer.type(kind)
    parts = [HEADER, calls, events, *aliases, *writer.interfaces(), *constants]
    return "\n".join(parts)


class _Writer:
    """Spells types, and remembers the dataclasses that it met."""

    def __init__(self, aliases: list[tuple[str, Any]]) -> None:
        self.aliases = aliases
        self._met: dict[type, None] = {}

    def type(self, kind: Any) -> str:
        """A type in TypeScript."""
        name = next((name for name, value in self.aliases if value == kind), None)
        return name or self._spelt(kind)

    def signature(self, function: Callable[..., Any]) -> str:
        """A function's type."""
        types = get_type_hints(function)
        parameters = [
            f"{camel_case(name)}{'' if each.default is each.empty else '?'}: "
            f"{self.type(types[name])}"
            for name, each in inspect.signature(function).parameters.items()
        ]
        return f"({', '.join(parameters)}) => {self.type(types['return'])}"

    def table(self, name: str, text: str, entries: Mapping[str, str]) -> str:
        """An interface with names that are no identifiers."""
        lines = [f'  "{key}": {value};\n' for key, value in entries.items()]
        return f"{_comment(text)}export interface {name} {{\n{''.join(lines)}}}\n"

    def alias(self, name: str, value: Any) -> str:
        """A type's name."""
        return f"export type {name} = {self._spelt(value)};\n"

    def interfaces(self) -> Iterable[str]:
        """The dataclasses that were met, and those met on the way."""
        done: dict[type, str] = {}
        while waiting := [kind for kind in self._met if kind not in done]:
            done.update((kind, self._interface(kind)) for kind in waiting)
        return [done[kind] for kind in sorted(done, key=lambda kind: kind.__name__)]

    def _interface(self, kind: Any) -> str:
        text, notes = _documented(kind)
        types = get_type_hints(kind)
        base = next((each for each in kind.__bases__ if is_dataclass(each)), None)
        inherited = {field.name for field in fields(base)} if base else set()
        lines = [f"{_comment(text)}export interface {kind.__name__} "]
        lines.append(f"extends {self.type(base)} {{\n" if base else "{\n")
        for field in fields(kind):
            if field.name not in inherited:
                lines.append(_comment(notes.get(field.name, ""), "  "))
                lines.append(f"  {self._field(kind, field, types[field.name])};\n")
        return "".join([*lines, "}\n"])

    def _field(self, owner: type, field: Field[Any], kind: Any) -> str:
        name = camel_case(field.name)
        if owner.__module__ != NOT_JSON or field.default is not None:
            return f"{name}: {self.type(kind)}"
        # What may be missing is not there at all, rather than null.
        present = [each for each in get_args(kind) if each is not NoneType] or [kind]
        return f"{name}?: {self.type(Union[tuple(present)])}"  # noqa: UP007

    def _spelt(self, kind: Any) -> str:
        if kind is Any:
            return "unknown"
        if kind in PLAIN:
            return PLAIN[kind]
        if isinstance(kind, NewType):
            return kind.__name__
        if is_dataclass(kind):
            assert isinstance(kind, type)
            self._met[kind] = None
            return kind.__name__
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return " | ".join(json.dumps(value) for value in arguments)
        if origin in (Union, UnionType):
            return " | ".join(dict.fromkeys(self.type(each) for each in arguments))
        if origin in (list, Sequence) or (origin is tuple and arguments[-1:] == (...,)):
            item = self.type(arguments[0])
            return f"({item})[]" if re.search(r" \| (?![^\[]*\])", item) else f"{item}[]"
        if origin is tuple:
            return f"[{', '.join(self.type(each) for each in arguments)}]"
        if origin in (dict, Mapping):
            return f"Record<{self.type(arguments[0])}, {self.type(arguments[1])}>"
        raise TypeError(f"{kind} has no form in TypeScript")


def _public(wanted: Callable[[str, Any], bool]) -> list[tuple[str, Any]]:
    """Names and values in the modules of the protocol."""
    found = {n: v for each in FAMILIES for n, v in vars(each).items() if wanted(n, v)}
    return sorted(found.items())


def _aliases() -> list[tuple[str, Any]]:
    forms = (Literal, Union, UnionType, Mapping)
    return _public(lambda n, value: not n.startswith("_") and get_origin(value) in forms)


def _is_constant(name: str, value: Any) -> bool:
    return name.isupper() and not name.startswith("_")


def _constant(name: str, value: Any, writer: _Writer) -> str:
    kind = f": {writer.type(type(value))}" if is_dataclass(value) else ""
    how = "" if kind else " as const"
    text = json.dumps(json.loads(to_json(value)), ensure_ascii=False)
    return f"export const {name}{kind} = {text}{how};\n"


def _documented(kind: type) -> tuple[str, dict[str, str]]:
    """The docstring of a class, and of its attributes."""
    text, _, attributes = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    found = re.findall(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return text.strip(), {
        name.strip(): _one_line(note) for names, note in found for name in names.split(",")
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _comment(text: str, indent: str = "") -> str:
    """A comment in the page's words."""
    text = re.sub(r"\bNone\b", "null", _one_line(text))
    text = re.sub(r"`(\w+)`", lambda name: f"`{camel_case(name[1])}`", text)
    text = (text[:1].upper() + text[1:]).replace("``", "`")
    return f"{indent}/** {text} */\n" if text else ""


if __name__ == "__main__":
    main()
