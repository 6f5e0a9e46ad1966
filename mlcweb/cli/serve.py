"""`mlcweb serve`: the built page, on this machine."""

import argparse
import os
import sys
import webbrowser
from pathlib import Path

from mlcweb.cli.common import CommandError, Commands


def add_command(commands: Commands) -> None:
    command = commands.add_parser("serve", help="serve the built page on this machine")
    command.set_defaults(command=serve)
    command.add_argument("folder", type=Path, nargs="?", help="another page")
    command.add_argument(
        "--port", type=_port, default=8000, help="default: %(default)s, or the next"
    )
    command.add_argument("--open", action="store_true", help="open it, where there is a desktop")
    command.add_argument(
        "--name", action="append", default=[], help="a proxy's name that requests may be for"
    )
    command.add_argument("--plain", action="store_true", help="without cross-origin isolation")


def serve(options: argparse.Namespace) -> None:
    """Serves the built page until Ctrl-C."""
    from mlcweb.server import PageServer, built_page

    try:
        folder = options.folder or built_page()
        server = PageServer(
            folder, port=options.port, isolated=not options.plain, names=options.name
        )
    except FileNotFoundError as error:
        raise CommandError(
            f"{error}; pip install 'mlcweb[page]', or in a checkout, `make play`"
        ) from None
    with server:
        print(f"mlcweb is at {server.url}   (Ctrl-C ends it)", flush=True)
        if options.open and has_desktop():
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise ValueError(text)
    return number


def has_desktop() -> bool:
    """Whether a browser can be opened where somebody sees it."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32")
