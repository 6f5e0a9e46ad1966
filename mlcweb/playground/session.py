"""What Python keeps for the page, and for how long.

A document, that is a program or a lesson, is opened when it first runs or is first asked about. A
run replaces what the run before it left to be looked at, in this document alone: views of others
go on. Closing a document lets go of all that it holds.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from mlcweb.ir import IRModule, TVMError

if TYPE_CHECKING:
    from mlcweb.playground.compared import Derivation
    from mlcweb.playground.search.calls import Search
    from mlcweb.playground.trace_timing import Timing
    from mlcweb.playground.trace_view import Record

Held = TypeVar("Held")

MAX_CACHED = 16
"""Things worked out of a run's programs that are kept."""


@dataclass(slots=True, eq=False)
class Document:
    """A program or a lesson, and what it has left.

    Attributes:
        module: holds the names of its cells.
        files: file names of the cells that ran in it.
        traces, programs, searches: what the page can ask for, by identifiers.
        derivations: how the last run made its modules.
        locals: what functions had in their local variables when they ended, as "sch in main".
    """

    name: str
    module: ModuleType = field(default_factory=lambda: ModuleType("__main__"))
    files: set[str] = field(default_factory=set)
    traces: dict[str, Record] = field(default_factory=dict)
    programs: dict[str, IRModule] = field(default_factory=dict)
    derivations: list[Derivation] = field(default_factory=list)
    searches: dict[str, Search] = field(default_factory=dict)
    locals: dict[str, Any] = field(default_factory=dict)
    _cached: dict[Any, Any] = field(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, Any]:
        """Its global variables."""
        return vars(self.module)

    @property
    def offered(self) -> Mapping[str, Any]:
        """Its global variables, and what its functions had."""
        return {**vars(self.module), **self.locals}

    def restart(self) -> None:
        """Forget what its cells have defined; what they showed can still be looked at."""
        self.module = ModuleType("__main__")
        self.files.clear()
        self.locals.clear()

    def begin_results(self) -> None:
        """A run has ended, whose results replace those of the last one."""
        self.forget_traces("run")
        self.programs.clear()
        self._cached.clear()

    def forget_traces(self, owner: str) -> None:
        """Let go of an owner's traces."""
        for identifier in [i for i, record in self.traces.items() if record.owner == owner]:
            del self.traces[identifier]

    def cached(self, make: Callable[..., Held], *arguments: Any) -> Held:
        """What a function makes of programs of the last run, worked out once."""
        key = (make, *arguments)
        if key not in self._cached:
            result = make(*arguments)
            while len(self._cached) >= MAX_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key] = result
        return self._cached[key]

    def close(self) -> None:
        """Let go of everything, also of its sources and as the main module, and end the workers of
        its searches."""
        for search in self.searches.values():
            search.close()
        for filename in self.files:
            linecache.cache.pop(filename, None)
        if sys.modules.get("__main__") is self.module:
            sys.modules["__main__"] = ModuleType("__main__")
        self.restart()
        self.begin_results()
        self.traces.clear()
        self.searches.clear()
        self.derivations.clear()


@dataclass(slots=True, eq=False)
class Session:
    """The documents by name, and the workers that time steps of traces. Identifiers are given once,
    so that what is of an earlier run is not taken for something else."""

    documents: dict[str, Document] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def open(self, name: str) -> Document:
        """A document, opened if it is not."""
        return self.documents.setdefault(name, Document(name))

    def close(self, name: str) -> None:
        """Close a document, if it is open."""
        document = self.documents.pop(name, None)
        if document is not None:
            document.close()

    def new_id(self, prefix: str) -> str:
        """An identifier that was never given before."""
        return f"{prefix}{next(self._numbers)}"

    def trace(self, identifier: str) -> Record:
        """A trace that can be asked for; a TVMError where it is of an earlier run."""
        lost = "this trace is of an earlier run; run the program again"
        return self._held(lambda document: document.traces, identifier, lost)[1]

    def program(self, identifier: str) -> tuple[Document, IRModule]:
        """A program, and its document; a TVMError where it is of an earlier run."""
        lost = "this program is of an earlier run; run it again"
        return self._held(lambda document: document.programs, identifier, lost)

    def search(self, identifier: str) -> tuple[Document, Search]:
        """A search, and its document; a TVMError where it was let go of."""
        lost = "there is no search of this name; it was begun before Python restarted"
        return self._held(lambda document: document.searches, identifier, lost)

    def _held(
        self, kind: Callable[[Document], Mapping[str, Held]], identifier: str, lost: str
    ) -> tuple[Document, Held]:
        for document in self.documents.values():
            if identifier in kind(document):
                return document, kind(document)[identifier]
        raise TVMError(lost)


session = Session()
"""That of the page."""
