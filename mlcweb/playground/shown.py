"""The objects that a running program shows, sorted into what the page's views take."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from types import FrameType
from typing import Any, NamedTuple

from mlcweb.ir import BaseFunc, IRModule, Node
from mlcweb.playground import code_view, figures, trace_view
from mlcweb.playground.compared import Derivation
from mlcweb.playground.protocol.program import SHOWN_MODULE, ShownModule
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.session import Document
from mlcweb.schedule import Schedule, Trace
from mlcweb.tir import PrimFunc
from mlcweb.user_code import namespace


class _Trace(NamedTuple):
    """A trace as it was when it was shown; its start and its result where they are known."""

    title: str
    trace: Trace
    original: IRModule | None
    result: IRModule | None


LIMIT = 200
"""Modules kept of one run."""


class Gallery:
    """Collects what a program shows while it runs.

    Args:
        document: where the program runs.
        filename: the program's file name, to say which line showed it.
    """

    def __init__(self, document: Document, filename: str) -> None:
        self._document = document
        self._filename = filename
        self._modules: list[ShownModule] = []
        self._traces: list[_Trace] = []
        self._programs: list[tuple[str, IRModule]] = []

    def show(self, shown: Any, title: str = "") -> None:
        """A display hook: modules, code and traces go to the views, pictures into the output; all
        else is printed."""
        if isinstance(shown, Schedule):
            self._add_trace(title or self._title(shown), shown.trace, shown)
            self._add_module(shown.mod, title)
        elif isinstance(shown, Trace):
            self._add_trace(title or self._title(shown), shown)
            print(shown)
        elif isinstance(shown, IRModule | Node):
            self._add_module(shown, title)
            for name, schedule in namespace.schedules(self._visible()).items():
                if schedule.mod is shown:
                    self._add_trace(self._placed(name), schedule.trace, schedule)
        elif isinstance(shown, type):
            print(_type_name(shown))
        elif (text := _code_of(shown)) is not None:
            self._add(title or self._title(shown), text)
        elif not figures.show_picture(shown) and not figures.show_html(shown):
            print(str(shown) if hasattr(shown, "_repr_mimebundle_") else repr(shown))

    def content(self) -> tuple[list[ShownModule], list[Titled], list[Titled]]:
        """Modules, traces and programs for the page, kept in the document.

        Where the program shows no module, they are those that its schedules arrived at, or else
        those that it defines. Traces are those of its schedules. Programs, whose machine code can
        be looked at, are all modules, the latest last.
        """
        variables = self._document.offered
        schedules = namespace.schedules(variables)
        if not self._modules:
            for name, schedule in schedules.items():
                self._add(_module_of(name), schedule.mod.script())
        if not self._modules:
            for name, module in namespace.modules(variables).items():
                self._add(name, module.script())
        for name, schedule in schedules.items():
            # One that was shown in its final state is there already.
            if not any(shown.result is schedule.mod for shown in self._traces):
                self._add_trace(name, schedule.trace, schedule)
        modules = list(namespace.modules(variables).values())
        document = self._document
        document.begin_results()
        traces = [
            trace_view.register(
                document, "run", title, trace, [original] if original else modules, result
            )
            for title, trace, original, result in self._traces
        ]
        document.derivations = [
            Derivation(trace, original, result)
            for _, trace, original, result in self._traces
            if original is not None and result is not None
        ]
        programs = code_view.register(document, self._all_programs(schedules))
        return self._modules, traces, programs

    def _all_programs(self, schedules: Mapping[str, Schedule]) -> Iterator[tuple[str, IRModule]]:
        """Modules that are defined, then those shown, then those of schedules; each once."""
        yielded: list[IRModule] = []
        candidates = [
            *namespace.modules(self._document.offered).items(),
            *self._programs,
            *((_module_of(name), schedule.mod) for name, schedule in schedules.items()),
        ]
        for title, module in candidates:
            if not any(module is other for other in yielded):
                yielded.append(module)
                yield title, module

    def _add_trace(self, title: str, trace: Trace, schedule: Schedule | None = None) -> None:
        if trace.insts:
            original, result = (schedule.original, schedule.mod) if schedule else (None, None)
            self._traces.append(_Trace(title, trace.copy(), original, result))

    def _add_module(self, shown: IRModule | Node, title: str) -> None:
        title = title or self._title(shown)
        if isinstance(shown, PrimFunc):
            self._programs.append((title, IRModule({"main": shown})))
        elif isinstance(shown, IRModule) and len(self._programs) < LIMIT:
            self._programs.append((title, shown))
        self._add(title, shown.script() if isinstance(shown, IRModule | BaseFunc) else str(shown))
        print(f"{SHOWN_MODULE}{title}")

    def _add(self, title: str, source: str) -> None:
        if len(self._modules) < LIMIT:
            self._modules.append(ShownModule(f"m{len(self._modules)}", title, source))

    def _title(self, shown: Any) -> str:
        """How the program calls what it shows, and the line, such as "sch.mod, line 58"."""
        return self._placed(namespace.name_of(self._visible(), shown) or type(shown).__name__)

    def _placed(self, name: str) -> str:
        frame = self._frame()
        return name if frame is None else f"{name}, line {frame.f_lineno}"

    def _visible(self) -> Mapping[str, Any]:
        """The variables by which the code that shows something may call it."""
        frame = self._frame()
        return {**self._document.variables, **(frame.f_locals if frame is not None else {})}

    def _frame(self) -> FrameType | None:
        """The innermost call of a function of the program."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._filename:
            frame = frame.f_back
        return frame


def _module_of(schedule: str) -> str:
    """What the module of a schedule is called: "sch.mod", or "sch.mod in main"."""
    variable, within, function = schedule.partition(" in ")
    return f"{variable}.mod{within}{function}"


def _type_name(cls: type) -> str:
    """A class as a notebook shows it: without "class", those of the package as TVM's."""
    module = cls.__module__.replace("mlcweb.relax_vm.executable", "tvm.relax.vm_build")
    package, dot, rest = module.partition(".")
    if package == "mlcweb":
        module = f"tvm{dot}{rest}"
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _code_of(shown: Any) -> str | None:
    """The program text inside a notebook's display object (``IPython.display.Code``, ``HTML``)."""
    bundle = getattr(shown, "_repr_mimebundle_", None)
    if bundle is None:
        return None
    forms: dict[str, str] = bundle()
    if "text/x-code" in forms:
        return forms["text/x-code"]
    if "text/html" in forms:
        return _text_of_html(forms["text/html"])
    return None


def _text_of_html(page: str) -> str:
    reader = _TextReader()
    reader.feed(page)
    reader.close()
    return "".join(reader.parts).strip("\n")


class _TextReader(HTMLParser):
    """Keeps the text of a page, without style sheets and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._skipping = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._skipping = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._skipping = False

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.parts.append(data)
