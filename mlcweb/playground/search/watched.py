"""Searches that a program of the page runs by itself (`tune_tir`, `tune_relax`): told to the
Search view while they go on, and printed, a line now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

from mlcweb.ir import IRModule, structural_equal
from mlcweb.meta_schedule.database import Workload
from mlcweb.meta_schedule.events import Confirmed, Event, Trial
from mlcweb.meta_schedule.progress import line
from mlcweb.meta_schedule.search import TaskRecord
from mlcweb.meta_schedule.task_scheduler import TaskScheduler, listening
from mlcweb.meta_schedule.tune_context import normalized
from mlcweb.playground.protocol.search import SearchNews, SearchStart, TrialUpdate
from mlcweb.playground.protocol.wire import tell
from mlcweb.playground.search import calls
from mlcweb.playground.search.program import Program
from mlcweb.playground.search.storage import stored_workload
from mlcweb.playground.session import Document
from mlcweb.runtime.host import clock
from mlcweb.tir.function import prim_funcs
from mlcweb.user_code import namespace

TELLING_S = 0.2
PRINTING_S = 2.0
"""Seconds between two messages to the page, and two printed lines."""


@contextmanager
def telling_of_searches(document: Document) -> Iterator[None]:
    """While active, the page hears of searches that a document's programs run."""
    with listening(_Watcher(document)):
        yield


@dataclass(slots=True)
class _Watched:
    """The search of one task, and what was not told of it yet."""

    identifier: str
    search: calls.Search
    waiting: list[TrialUpdate] = field(default_factory=list)
    begun: bool = False


class _Watcher:
    """Follows task schedulers, one after the other."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._watched: dict[int, _Watched] = {}
        self._scheduler: TaskScheduler | None = None
        self._start = self._sent = self._printed = clock()

    def __call__(self, scheduler: TaskScheduler, number: int | None, event: Event | None) -> None:
        if scheduler is not self._scheduler:
            self._begin(scheduler)
        elif number is None:
            self._end(scheduler)
        elif isinstance(event, Trial | Confirmed):
            self._add(scheduler, number, event)

    def _begin(self, scheduler: TaskScheduler) -> None:
        self._scheduler = scheduler
        self._watched = {}
        self._start = self._sent = self._printed = clock()

    def _add(self, scheduler: TaskScheduler, number: int, event: Trial | Confirmed) -> None:
        task = scheduler.tasks[number]
        watched = self._watched.get(number)
        if watched is None:
            watched = self._watched[number] = _watched(self._document, task)
        watched.waiting.append(calls.packed_trial(watched.search, event))
        now = clock()
        if now - self._sent >= TELLING_S:
            self._sent = now
            self._tell(scheduler)
        if now - self._printed >= PRINTING_S:
            self._printed = now
            print(line(scheduler, number, now - self._start))

    def _tell(self, scheduler: TaskScheduler, over: bool = False) -> None:
        for number, watched in self._watched.items():
            if not watched.waiting and not over:
                continue
            task = scheduler.tasks[number]
            start = None
            if not watched.begun:
                watched.begun = True
                start = SearchStart(
                    self._document.name,
                    f"{task.name}, by the program",
                    None if task.baseline == inf else task.baseline,
                    task.workers,
                    task.flops,
                    scheduler.max_trials_global if len(scheduler.tasks) == 1 else None,
                    watched.search.workload,
                )
            tell("search", SearchNews(watched.identifier, start, watched.waiting, over))
            watched.waiting = []

    def _end(self, scheduler: TaskScheduler) -> None:
        self._tell(scheduler, over=True)
        self._scheduler = None
        for number in self._watched:
            print(line(scheduler, number, clock() - self._start))


def _watched(document: Document, task: TaskRecord) -> _Watched:
    assert task.context.mod is not None
    program = _program(document, task.context.mod)
    search = calls.Search(program, stored_workload(Workload(task.context.mod)))
    return _Watched(calls.keep(document, search), search)


def _program(document: Document, mod: IRModule) -> Program:
    """Where the program keeps what is tuned; a name that is to be replaced if it does not."""
    for name, module in namespace.modules(document.offered).items():
        for function in prim_funcs(module):
            alone = len(module.functions) == 1 and function == "main"
            if structural_equal(module if alone else normalized(module[function]), mod):
                return Program(name, module, function, module if alone else mod)
    return Program("MyModule", mod, "main", mod)
