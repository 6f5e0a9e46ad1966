"""The JavaScript half of the host in a page: `page_script.js`, and `page_gpu.js` for its GPU."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from mlcweb.runtime.host.clock import shares_memory

_BROUGHT = {"page_script": "mlcwebHost", "page_gpu": "mlcwebGpu"}
"""What the page calls a script that it has brought."""


def page_threads() -> Any:
    """What runs parallel loops on workers of the page; None where there is none, or where it is not
    isolated, so that workers cannot share memory."""
    import js  # pyright: ignore[reportMissingImports]

    return getattr(js, "mlcwebThreads", None) if shares_memory() else None


def page_gpu_line() -> Any:
    """The GPU that another worker has, for a Python that is blocked while it waits; None where it
    can be suspended instead, and where the page is not isolated."""
    import js  # pyright: ignore[reportMissingImports]

    # Null of JavaScript is no None, but false as well.
    return getattr(js, "mlcwebGpuLine", None) or None


def script_text(name: str = "page_script") -> str:
    """A script as an expression."""
    text = files("mlcweb.runtime.host").joinpath(f"{name}.js").read_text(encoding="utf-8")
    return text.partition("export default ")[2].rstrip().removesuffix(";")


def page_script(name: str = "page_script") -> Any:
    """A script's functions: those that the page has brought, since it may forbid that functions
    are made of text; or else made here."""
    import js  # pyright: ignore[reportMissingImports]
    from pyodide.code import run_js  # pyright: ignore[reportMissingImports]

    return getattr(js, _BROUGHT[name], None) or run_js(script_text(name))
