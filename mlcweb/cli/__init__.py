"""The command line: run a program or model, search over schedules, tune, serve the page.

One module for each command, with a function `add_command`; common.py has what several share.
"""

import argparse
import sys
from collections.abc import Sequence

import mlcweb
from mlcweb.cli import compile, records, run, search, serve, tune
from mlcweb.cli.common import CommandError
from mlcweb.ir.errors import TVMError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        return options.command(options) or 0
    except (CommandError, TVMError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(prog="mlcweb", description=mlcweb.__doc__)
    top.add_argument("--version", action="version", version=f"mlcweb {mlcweb.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for module in (run, compile, tune, records, search, serve):
        module.add_command(commands)
    return top
