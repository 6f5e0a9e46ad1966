"""Running programs: what comes of a run, and what the page hears while it goes on."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.playground.protocol.titled import Titled
from mlcweb.user_code.diagnostics import RunError
from mlcweb.user_code.namespace import SearchModule

MAX_PICTURE_BYTES = 4_500_000
"""Of the file of a picture that the page shows."""

MAX_PICTURE_PIXELS = 32_000_000
"""The browser holds four bytes for each."""

MAX_HTML = 250_000
"""Characters of a page of HTML that the page shows."""

SHOWN_MODULE = "→ TensorIR: "
"""Before the title of a module, on the line of the output where the program shows it."""


@dataclass(slots=True)
class ProgramFile:
    """A file that a program may import; its name has no folders."""

    name: str
    text: str


@dataclass(slots=True)
class ShownModule:
    """A module that a program shows, as text."""

    id: str
    title: str
    source: str


@dataclass(slots=True)
class RunResult:
    """What a program left behind, also where it did not get to its end.

    Attributes:
        document: where it ran.
        programs: modules whose machine code and accesses can be looked at, the latest last.
        search_functions: names of functions that take a schedule.
    """

    document: str
    ok: bool
    error: RunError | None
    elapsed_ms: float
    modules: list[ShownModule]
    traces: list[Titled]
    programs: list[Titled]
    search_functions: list[str]
    search_modules: list[SearchModule]


@dataclass(slots=True)
class Verdict:
    """Whether an exercise is solved, and what to tell its reader; `excerpt` are the lines of the
    program that the message is about, with carets."""

    passed: bool
    message: str
    excerpt: str = ""


@dataclass(slots=True)
class LiveNames:
    """Names of the program that ran last, for the editor to offer: each once, in the order of the
    text.

    Attributes:
        variables: with the names of their classes; None where the editor knows nothing of it.
    """

    variables: dict[str, str | None]
    functions: list[str]
    blocks: list[str]


@dataclass(slots=True)
class Picture:
    """A picture that a program shows, such as a figure; its size in the page's pixels.

    Attributes:
        url: a ``data:`` URL.
    """

    url: str
    width: int
    height: int
    description: str
