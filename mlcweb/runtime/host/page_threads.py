"""Parallel loops in a page: threads are workers of the page, on the memory that all kernels use.

The page keeps the workers and hands them the iterations of a loop (`mlcwebThreads`); each has an
instance of the kernel, made from code in the memory. Only one loop runs on them at a time, so all
kernels share the scratch memory of threads. Python runs in none of them: kernels that call Python
functions have serial loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlcweb.codegen.wasm.kernel import WasmModule
from mlcweb.codegen.wasm.select_parallel import LAUNCH_TYPE, THREADS_ADDRESS
from mlcweb.runtime.build import say_once
from mlcweb.runtime.host.page_script import page_threads
from mlcweb.runtime.host.python_calls import HostFunction
from mlcweb.runtime.storage import ALIGNMENT
from mlcweb.runtime.thread_pool import on_change

if TYPE_CHECKING:
    from mlcweb.runtime.host.pyodide_host import PyodideHost

SERIAL = (
    "Parallel loops run on one thread here: this page is not cross-origin isolated, so its threads "
    "cannot share memory"
)


class PageThreads:
    """The threads of the page for the kernels of a host."""

    def __init__(self, host: PyodideHost) -> None:
        self._host = host
        self._line = page_threads()
        self._number = 1
        self._scratch_bytes = 0
        self._scratch: Any = None
        if self._line is not None:
            on_change(self._set_number)

    def launcher(self, compiled: WasmModule) -> PageLauncher:
        """What runs the parallel loops of a module. Where there are no threads, that is said once
        for each program."""
        if self._line is None:
            say_once("parallel", SERIAL)
            return PageLauncher(self._host, compiled.code, None)
        needed = max(loop.scratch_bytes for loop in compiled.parallel)
        self._scratch_bytes = max(self._scratch_bytes, -(-needed // ALIGNMENT) * ALIGNMENT, 1)
        self._provide()
        return PageLauncher(self._host, compiled.code, self._line)

    def _set_number(self, number: int) -> None:
        self._number = number
        self._host.write(THREADS_ADDRESS, np.array([number], "<i4"))
        if self._scratch_bytes:
            self._provide()

    def _provide(self) -> None:
        """Have the threads that there are to be, with scratch memory."""
        nbytes = self._number * self._scratch_bytes
        if self._scratch is None or self._scratch.nbytes < nbytes:
            self._scratch = self._host.allocate(nbytes)
        address = self._scratch.address
        self._line.provide(self._host.memory, self._number, address, self._scratch_bytes)


class PageLauncher:
    """The launch function of a kernel, with its code where threads find it. `line` is None where
    there are no threads; then the function is never called."""

    def __init__(self, host: PyodideHost, code: bytes, line: Any) -> None:
        self._code: Any = None
        self._launch: Any = None
        if line is not None:
            self._code = host.allocate(len(code))
            self._code.write(np.frombuffer(code, np.uint8))
            self._launch = line.kernel(self._code.address, len(code))

    def host_function(self, failures: list[BaseException]) -> HostFunction:
        """What the kernel imports: a function of JavaScript, which takes its exports first."""
        return HostFunction(LAUNCH_TYPE, self._launch)

    def check_not_within(self) -> None:
        """No Python function is called by such a kernel."""
