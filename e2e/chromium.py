"""Which Chromium the browser tests run in; as a script, gets one where there is none.

    python e2e/chromium.py

The order is: the path in MLCWEB_CHROMIUM, the system's own browser, Playwright's download, and
at last Debian's package.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
"""Started with these it makes no traffic of its own."""

WITH_SOFTWARE_GPU = [
    *(flag for flag in FLAGS if flag != "--disable-gpu"),
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
]
"""With these Chromium has a GPU, which computes on the processor."""

SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def candidates() -> Iterator[str]:
    """Paths of the browsers that may be there, best first."""
    if path := os.environ.get("MLCWEB_CHROMIUM"):
        yield path
    yield from filter(None, map(shutil.which, SYSTEM_NAMES))
    with sync_playwright() as playwright:
        yield playwright.chromium.executable_path


def works(path: str) -> bool:
    """Whether a browser starts: a download may lack the libraries that it needs."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find() -> str | None:
    """The path of the first browser that works."""
    return next(filter(works, candidates()), None)


def install() -> None:
    """Tries one way after the other to get a browser, until there is one that works."""
    as_root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    playwright = [sys.executable, "-m", "playwright", "install", "chromium"]
    # A fresh container has no package lists; a mirror that fails to update may still do.
    update = [*as_root, "apt-get", "update", "-q"]
    debian = [*as_root, "apt-get", "install", "-qy", "--no-install-recommends", "chromium"]
    for command in (playwright, update, debian):
        print("getting a Chromium:", " ".join(command), flush=True)
        try:
            subprocess.run(command)
        except OSError as error:
            print(error)
        if find():
            return


def main() -> int:
    """Makes sure of a browser; 1 and one clear line if there is no way to get one."""
    if find() is None:
        install()
    if find() is None:
        print(
            "No Chromium: install one (Debian: apt-get install chromium), "
            "or set MLCWEB_CHROMIUM to the path of one.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
