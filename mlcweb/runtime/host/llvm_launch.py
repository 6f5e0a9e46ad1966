"""Runs the parallel loops of machine code: what a kernel calls with the entry of a loop."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from mlcweb.codegen.llvm.expressions import PYTHON_FAILED
from mlcweb.runtime.host.llvm_engine import Stopped
from mlcweb.runtime.thread_pool import POOL, num_threads, on_change, static_chunks

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class _Count:
    """The number of threads, where kernels read it."""

    def __init__(self) -> None:
        self.value = ctypes.c_int32()
        on_change(self.set)

    def set(self, number: int) -> None:
        self.value.value = number


THREADS = _Count()


def launcher(failures: list[BaseException]) -> Any:
    """The launch function of a kernel: it returns the status of the first part that stops.
    `failures` gets what stops Python meanwhile, as an interrupt."""

    def run(entry: Any, first: int, last: int, record: int) -> None:
        status = entry(first, last, record)
        if status:
            raise Stopped(status)

    def launch(address: int, first: int, last: int, record: int) -> int:
        entry = _ENTRY(address)
        chunks = static_chunks(first, last, num_threads())
        try:
            POOL.run([partial(run, entry, *chunk, record) for chunk in chunks])
        except Stopped as stopped:
            return stopped.status
        except BaseException as error:
            failures.append(error)
            return PYTHON_FAILED
        return 0

    return _LAUNCH(launch)
