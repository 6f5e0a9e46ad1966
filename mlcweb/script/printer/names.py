"""Names in printed programs: unique within a function, and free again where their scope ends."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from mlcweb.ir.dialect import TIR, Dialect
from mlcweb.ir.names import unique_name
from mlcweb.ir.node import Node
from mlcweb.tir.expr import Var

_RESERVED = frozenset(keyword.kwlist) | {
    "T", "I", "R", "Module", "cls", "range", "min", "max", "abs",
}  # fmt: skip
OPENING, CLOSING = "\x01", "\x02"
_MARKS = re.compile(f"({OPENING}\\d+;|{CLOSING})")
_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


def identifier(hint: str) -> str:
    """`hint` as a Python identifier."""
    name = _NOT_IN_NAMES.sub("_", hint) or "v"
    return "v" + name if name[0].isdigit() else name


class Names:
    """Gives every variable and buffer a name: its own, with `_1`, `_2`, … where it is taken.

    Also knows the dialect, by which the names of the language itself go.
    """

    def __init__(self, dialect: Dialect = TIR) -> None:
        self.dialect = dialect
        self.declarations: list[str] = []
        """Lines that must stand before the text that is being made."""
        self.int_dtype = "int32"
        self.float_dtype: str | None = None
        """The types whose constants are written without them."""
        self.shows_addresses = False
        """Whether names end with the addresses of what they name."""
        self.has_undefined = False
        """Whether a name was asked for that nobody had defined."""
        self.marked: Collection[int] = ()
        """The `id` of what stands between marks where it is written as a part of a line."""
        self._text: dict[Node, str] = {}
        self._taken: set[str] = set(_RESERVED)
        self._scopes: list[list[tuple[Node, str | None]]] = [[]]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names defined inside are forgotten, and free again, at the end."""
        self._scopes.append([])
        yield
        for key, name in self._scopes.pop():
            del self._text[key]
            if name is not None:
                self._taken.discard(name)

    def forget(self) -> None:
        """Start over, without names."""
        self._text.clear()
        self._taken = set(_RESERVED)
        self._scopes = [[]]
        self.has_undefined = False

    def define(self, thing: Node, hint: str) -> str:
        """The name of `thing` from here on; a second definition keeps the first name."""
        first_name = self._text.get(thing)
        if first_name is not None:
            return first_name
        if self.shows_addresses:
            hint = f"{hint}_{id(thing):#x}"
        name = self._text[thing] = unique_name(identifier(hint), self._taken)
        self._scopes[-1].append((thing, name))
        return name

    def declare(self, var: Var) -> str:
        """The name of a variable that an expression binds: a line before it must say what it is."""
        if var not in self._text:
            self.declarations.append(self.declaration(var))
        return self._text[var]

    def declaration(self, var: Var) -> str:
        """The line that declares a variable, which has its name from there on."""
        # TVM's versions of the second spelling know no sizes.
        size = "is_size_var=True" if var.is_size and self.dialect is TIR else ""
        return f"{self.define(var, var.name)} = T.{var.dtype}({size})"

    def alias(self, thing: Node, text: str) -> None:
        """Print `thing` as `text`, an expression such as `A.data`, unless it has a name."""
        if thing not in self._text:
            self._text[thing] = text
            self._scopes[-1].append((thing, None))

    def knows(self, thing: Node) -> bool:
        return thing in self._text

    def of(self, thing: Node, hint: str) -> str:
        """The text for a use of `thing`. What nobody defined gets a name of its own."""
        text = self._text.get(thing)
        if text is None:
            self.has_undefined = True
            text = self.define(thing, hint)
        return self.with_marks(thing, text)

    def with_marks(self, thing: Node, text: str) -> str:
        """The text of what is written, between marks where it is one of `marked`."""
        return f"{OPENING}{id(thing)};{text}{CLOSING}" if id(thing) in self.marked else text


def marked_parts(line: str) -> list[tuple[int, int, int]]:
    """The `id` of each marked part of a line, and from where to where it is without the marks."""
    parts: list[tuple[int, int, int]] = []
    column, opened = 0, list[tuple[int, int]]()
    for piece in _MARKS.split(line):
        if piece.startswith(OPENING):
            opened.append((int(piece[1:-1]), column))
        elif piece == CLOSING:
            parts.append((*opened.pop(), column))
        else:
            column += len(piece)
    return parts
