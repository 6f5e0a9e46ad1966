"""Which packages Pyodide has a build of; outside of a browser that is none's business."""

from __future__ import annotations

from typing import Any

from mlcweb.runtime.host.clock import in_browser


def built_for_browsers(name: str) -> bool:
    """Whether Pyodide has the package `name`, or one that gives the module of that name."""
    if not in_browser():
        return False
    import pyodide_js  # pyright: ignore[reportMissingImports]

    packages: Any = pyodide_js.lockfile.packages.to_py()
    return name in packages or any(name in package["imports"] for package in packages.values())
