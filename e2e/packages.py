"""Pyodide's packages for browser tests: the files that its CDN would send."""

import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route

WEB = Path(__file__).parents[1] / "web"


@cache
def vendor() -> ModuleType:
    """The script that fetches them, by the hashes of the lock file."""
    path = WEB / "scripts" / "vendor_pyodide.py"
    spec = importlib.util.spec_from_file_location("vendor_pyodide", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(*names: str) -> dict[str, bytes]:
    """The wheels of packages and of what they need; the test is skipped where there is no way to
    get them."""
    script = vendor()
    packages: dict[str, Any] = json.loads(script.LOCK.read_text())["packages"]
    expected = {entry["file_name"]: entry["sha256"] for entry in packages.values()}
    needed = [packages[name]["file_name"] for name in script.with_dependencies(packages, names)]
    try:
        return script.fetch(needed, expected)
    except script.VendorError as error:
        pytest.skip(str(error))


def serve_as_cdn(context: BrowserContext, *names: str) -> list[str]:
    """Answer in the place of the CDN; returns the list of what it will be asked for."""
    wheels, asked = files(*names), []

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        asked.append(name)
        if name in wheels:
            headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "application/zip"}
            route.fulfill(body=wheels[name], headers=headers)
        else:
            route.abort()

    context.route("https://cdn.jsdelivr.net/**", answer)
    return asked
