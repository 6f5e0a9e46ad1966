"""The threads that run parallel loops, and how many they are.

A launch gives each thread one task, the first of them to the thread that calls. A task that no
other thread has begun when the caller is done with its own is run by the caller: nobody waits for
a thread that sleeps, or for one that waits for the caller. A launch from within a task runs its
tasks one after another.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread, local
from weakref import WeakMethod

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.clock import in_browser, processors
from mlcweb.runtime.host.page_script import page_threads
from mlcweb.runtime.registry import register_func

Task = Callable[[], None]

VARIABLES = ("TVM_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables that set the number of threads, the first before the second."""


class _Pending:
    """A task that one of several threads runs."""

    def __init__(self, run: Task) -> None:
        self.error: BaseException | None = None
        self._run = run
        self._begun = Lock()
        self._running = Lock()
        self._running.acquire()

    def perform(self) -> None:
        """Run the task, unless another thread has begun it."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._run()
        except BaseException as error:
            self.error = error
        finally:
            self._running.release()

    def wait(self) -> None:
        """Return when the task has ended."""
        with self._running:
            pass


class ThreadPool:
    """Threads that sleep until there are tasks."""

    def __init__(self) -> None:
        self._queues: list[SimpleQueue[_Pending]] = []
        self._lock = Lock()
        self._thread = local()

    @property
    def in_task(self) -> bool:
        """Whether the current thread runs a task."""
        return getattr(self._thread, "in_task", False)

    def run(self, tasks: Sequence[Task]) -> None:
        """Run tasks side by side, and return when all have ended. Where some raise, the error of
        the first one in order is raised then."""
        if self.in_task or len(tasks) == 1:
            for task in tasks:
                task()
            return
        pending = [_Pending(task) for task in tasks]
        queues = self._queues_of(len(pending) - 1)
        for queue, task in zip(queues, pending[1:], strict=True):
            queue.put(task)
        interrupt = None
        self._thread.in_task = True
        # Tasks that have begun write to memory of the caller, who stays, whatever happens.
        for task in pending:
            task.perform()
        for task in pending:
            try:
                task.wait()
            except KeyboardInterrupt as error:
                interrupt = error
                task.wait()
        self._thread.in_task = False
        raised = next((task.error for task in pending if task.error), interrupt)
        if raised is not None:
            raise raised

    def _queues_of(self, count: int) -> list[SimpleQueue[_Pending]]:
        """The queues of so many threads, which are started when first needed."""
        with self._lock:
            while len(self._queues) < count:
                queue: SimpleQueue[_Pending] = SimpleQueue()
                name = f"mlcweb-{len(self._queues) + 1}"
                Thread(target=self._serve, args=(queue,), name=name, daemon=True).start()
                self._queues.append(queue)
            return self._queues[:count]

    def _serve(self, queue: SimpleQueue[_Pending]) -> None:
        self._thread.in_task = True
        while True:
            queue.get().perform()

    def forget(self) -> None:
        """Start anew in a process that was forked, to which threads do not come along."""
        self.__init__()


POOL = ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)

_threads: int | None = None
_listeners: list[WeakMethod[Callable[[int], None]]] = []


def num_threads() -> int:
    """The number of threads that run a parallel loop: what `config_threadpool` has set, else what
    TVM_NUM_THREADS or OMP_NUM_THREADS says, else one for each core of the processor that this
    process may use. In a page that is not isolated parallel loops run on one thread, whatever is
    set."""
    return _threads or _default_threads()


def config_threadpool(
    affinity_mode: int = 1, num_threads: int = 0, cpus: Sequence[str] = ()
) -> None:
    """Set the number of threads that run parallel loops from now on, in modules that are built
    already, too.

    Args:
        affinity_mode: what cores threads are to stay on; as the operating system says, whatever
            is asked for.
        num_threads: 0 for the number by default.
        cpus: as for `affinity_mode`; where numbers of cores are listed and `num_threads` is 0,
            one thread for each.

    Raises:
        TVMError: the number is negative.
    """
    global _threads
    if num_threads < 0:
        raise TVMError(f"The number of threads is {num_threads}; it has to be positive, or 0")
    _threads = num_threads or len(cpus) or None
    _listeners[:] = [listener for listener in _listeners if listener()]
    for listener in _listeners:
        tell = listener()
        if tell is not None:
            tell(_threads or _default_threads())


def on_change(listener: Callable[[int], None]) -> None:
    """Call a method with the number of threads, now, and whenever it changes while somebody holds
    the method's object."""
    _listeners.append(WeakMethod(listener))
    listener(num_threads())


def has_threads() -> bool:
    """Whether parallel loops may run on several threads here."""
    return not in_browser() or page_threads() is not None


def _default_threads() -> int:
    for name in VARIABLES:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value):
            return int(value)
    return _cores() if has_threads() else 1


def _cores() -> int:
    """The cores that this process may use. On x86 two processors of the operating system mostly
    are the two threads of one core, which a kernel keeps busy alone."""
    if in_browser():
        return processors()
    usable = getattr(os, "sched_getaffinity", None)
    logical = len(usable(0)) if usable else processors()
    return max(1, logical // 2 if platform.machine() in ("x86_64", "AMD64") else logical)


@register_func("runtime.config_threadpool", override=True)
def _config_threadpool(affinity_mode: int, num_threads: int, *cpus: str) -> None:
    config_threadpool(affinity_mode, num_threads, cpus)


def static_chunks(first: int, last: int, count: int) -> list[tuple[int, int]]:
    """A range in at most so many parts of the same size, but for the last."""
    size = -(-(last - first) // count)
    return [(start, min(start + size, last)) for start in range(first, last, max(size, 1))]
