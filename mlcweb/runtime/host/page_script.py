"""The JavaScript half of the host in a page (`page_script.js`)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def script_text() -> str:
    """The script as an expression."""
    text = files("mlcweb.runtime.host").joinpath("page_script.js").read_text(encoding="utf-8")
    return text.partition("export default ")[2].rstrip().removesuffix(";")


def page_script() -> Any:
    """The script's functions: those that the page has brought, since it may forbid that functions
    are made of text; or else made here."""
    import js  # pyright: ignore[reportMissingImports]
    from pyodide.code import run_js  # pyright: ignore[reportMissingImports]

    return getattr(js, "mlcwebHost", None) or run_js(script_text())
