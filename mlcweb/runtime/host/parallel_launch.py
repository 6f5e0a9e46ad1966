"""Runs the parallel loops of a kernel: each thread has an instance of the module and scratch memory
of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import get_ident

from mlcweb.codegen.wasm.kernel import WasmModule
from mlcweb.codegen.wasm.select_parallel import LAUNCH_TYPE
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.engine import Instance
from mlcweb.runtime.host.python_calls import HostFunction
from mlcweb.runtime.storage import Storage
from mlcweb.runtime.thread_pool import POOL, num_threads, static_chunks

Explain = Callable[[BaseException], BaseException]

_ENTRY = ["i32"] * 4


@dataclass(frozen=True, slots=True)
class _Worker:
    """The entries of all loops in an instance, its scratch memory, and what explains its errors."""

    entries: list[Callable[..., None]]
    scratch: Storage
    explain: Explain

    def run(self, number: int, first: int, last: int, record: int) -> None:
        try:
            self.entries[number](first, last, record, self.scratch.address)
        except TVMError as failure:
            raise self.explain(failure) from None


class Launcher:
    """The launch function of a kernel.

    `instantiate` makes another instance, with what explains its errors, and `allocate` memory.
    """

    def __init__(
        self,
        compiled: WasmModule,
        instantiate: Callable[[], tuple[Instance, Explain]],
        allocate: Callable[[int], Storage],
    ) -> None:
        self.compiled = compiled
        self._instantiate = instantiate
        self._allocate = allocate
        self._workers: list[_Worker] = []
        self._caller: int | None = None

    def host_function(self, failures: list[BaseException]) -> HostFunction:
        """What the kernel imports. An error is left in `failures`, since the engine carries none
        through the kernel."""

        def run(number: int, first: int, last: int, record: int) -> None:
            try:
                self.launch(number, first, last, record)
            except BaseException as error:
                failures.append(error)
                raise

        return HostFunction(LAUNCH_TYPE, run)

    def launch(self, number: int, first: int, last: int, record: int) -> None:
        """Run the iterations of a loop, given by its number, from `first` to before `last`."""
        chunks = static_chunks(first, last, num_threads())
        while len(self._workers) < len(chunks):
            self._workers.append(self._worker())
        outer = self._caller
        if not POOL.in_task:
            # Within a task of another loop this one is serial, and waits for no thread.
            self._caller = get_ident()
        try:
            POOL.run(
                [
                    partial(worker.run, number, *chunk, record)
                    for worker, chunk in zip(self._workers, chunks, strict=False)
                ]
            )
        finally:
            if not POOL.in_task:
                self._caller = outer

    def check_not_within(self) -> None:
        """Refuse a call of the kernel from one of its own loops in another thread: it would wait
        for the call that waits for it."""
        if POOL.in_task and self._caller not in (None, get_ident()):
            raise TVMError(
                "A kernel is called by a Python function that it calls from a parallel loop; make "
                "that loop serial"
            )

    def _worker(self) -> _Worker:
        instance, explain = self._instantiate()
        loops = self.compiled.parallel
        entries = [instance.function(loop.entry, _ENTRY) for loop in loops]
        scratch = self._allocate(max(loop.scratch_bytes for loop in loops))
        return _Worker(entries, scratch, explain)
