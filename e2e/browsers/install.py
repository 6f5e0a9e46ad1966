"""Which other browsers the tests find here; as a script, gets Debian's where there are none.

    python e2e/browsers/install.py

What cannot be had is named, and is no error: its tests skip and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FIREFOX = ("firefox-esr", "firefox")
"""Names of the program, best first."""
DISPLAY_SERVER = "Xvfb"
MINI_BROWSERS = "/usr/lib/*/webkit2gtk-4.*/MiniBrowser"

PACKAGES = ("firefox-esr", "webkit2gtk-driver", "xvfb")


def firefox() -> str | None:
    """The path of Firefox."""
    return next(filter(None, map(shutil.which, FIREFOX)), None)


def mini_browser() -> str | None:
    """The path of WebKit's small browser, the newest of several."""
    found = sorted(Path("/").glob(MINI_BROWSERS.lstrip("/")))
    return str(found[-1]) if found else None


def webkit_driver() -> str | None:
    """The path of the program that drives WebKit."""
    return shutil.which("WebKitWebDriver")


def missing(engine: str) -> str | None:
    """Why a browser ("firefox" or "webkit") cannot be driven here; None if it can."""
    return next(_reasons(engine), None)


def _reasons(engine: str) -> Iterator[str]:
    if engine == "firefox":
        if firefox() is None:
            yield "no Firefox here (Debian: firefox-esr)"
        return
    if mini_browser() is None or webkit_driver() is None:
        yield "no WebKit here (Debian: webkit2gtk-driver)"
    if shutil.which(DISPLAY_SERVER) is None:
        yield "no Xvfb here (Debian: xvfb)"


def main() -> int:
    """Asks Debian for what is missing, and says what there is in the end."""
    if any(map(missing, ("firefox", "webkit"))):
        as_root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
        apt = [*as_root, "apt-get"]
        for command in (
            [*apt, "update", "-q"],
            [*apt, "install", "-qy", "--no-install-recommends", *PACKAGES],
        ):
            print("getting other browsers:", " ".join(command), flush=True)
            try:
                subprocess.run(command)
            except OSError as error:
                print(error)
    for engine in ("firefox", "webkit"):
        print(f"{engine}: {missing(engine) or 'is here'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
