"""Telling the page of something while Python is busy; outside of a page nobody listens."""

from __future__ import annotations

from mlcweb.runtime.host.clock import in_browser


def tell_page(name: str, text: str) -> None:
    """Send an event to the page around the worker that Python runs in.

    Args:
        name: what the page's listeners know it by.
        text: JSON.
    """
    if not in_browser():
        return
    import js  # pyright: ignore[reportMissingImports]

    tell = getattr(js, "mlcwebTell", None)
    if tell is not None:
        tell(name, text)
