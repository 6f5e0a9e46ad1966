"""What programs change of the interpreter itself is put back when they end.

The page's own code runs in the same Python: without `print`, `len` or `json`, or with a trace
function that raises, it could neither say what a program did nor run the next one. Variables stay,
and so do modules that a program imports and what it changes inside of modules.
"""

import builtins
import gc
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

STREAMS = ("stdin", "stdout", "stderr")
HOOKS = ("displayhook", "excepthook", "unraisablehook", "breakpointhook")
IMPORTS = ("path", "meta_path", "path_hooks")


@contextmanager
def put_back() -> Iterator[None]:
    """Afterwards builtins, streams, hooks, the ways of import and what listens to the interpreter
    are as before."""
    names = dict(builtins.__dict__)
    values = {name: getattr(sys, name) for name in (*STREAMS, *HOOKS, *IMPORTS)}
    lists = {name: list(values[name]) for name in IMPORTS}
    modules = dict(sys.modules)
    callbacks = list(gc.callbacks)
    in_main = threading.current_thread() is threading.main_thread()
    on_interrupt = signal.getsignal(signal.SIGINT)
    trace, profile = sys.gettrace(), sys.getprofile()
    try:
        yield
    finally:
        builtins.__dict__.update(names)  # at first: what follows needs them
        sys.settrace(trace)
        sys.setprofile(profile)
        gc.callbacks[:] = callbacks
        if in_main and signal.getsignal(signal.SIGINT) is not on_interrupt:
            signal.signal(signal.SIGINT, on_interrupt)
        for name, value in values.items():
            setattr(sys, name, value)
        for name, entries in lists.items():
            values[name][:] = [*entries, *(e for e in values[name] if e not in entries)]
        for name, module in modules.items():
            if sys.modules.get(name) is None:
                sys.modules[name] = module
        for name in STREAMS:
            _reopen(name, values[name])


def _reopen(name: str, stream: IO[str] | None) -> None:
    """A stream that a program has closed works again; its file is open still."""
    if stream is not None and stream.closed:
        mode = "r" if name == "stdin" else "w"
        file = STREAMS.index(name)
        setattr(sys, name, open(file, mode, buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
