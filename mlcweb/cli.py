"""The command line: run a program or model, search over schedules, tune, serve the page."""

import argparse
import io
import os
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import mlcweb
from mlcweb import cli_compile, cli_records, cli_tune, compat


class CommandError(Exception):
    """A command that cannot be carried out; the text is all that the user gets to see."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        return options.command(options) or 0
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(options: argparse.Namespace) -> None:
    """Runs a program as ``python FILE`` would; or a model, with its stages and times."""
    if options.file.suffix == ".onnx":
        try:
            cli_compile.run(options.file, options.arguments)
        except cli_compile.CompileError as error:
            raise CommandError(str(error)) from None
        return
    sys.argv = [str(options.file), *options.arguments]
    load(options.file, "__main__")


def compile_model(options: argparse.Namespace) -> None:
    """Compiles a model and prints what each stage made of it."""
    try:
        cli_compile.compile(options)
    except cli_compile.CompileError as error:
        raise CommandError(str(error)) from None


def tune(options: argparse.Namespace) -> None:
    """Searches for fast schedules of a model's functions."""
    try:
        cli_tune.tune(options)
    except cli_compile.CompileError as error:
        raise CommandError(str(error)) from None


def records(options: argparse.Namespace) -> None:
    """Looks into folders of tuning records, or puts them together."""
    try:
        options.of_records(options)
    except cli_records.RecordsError as error:
        raise CommandError(str(error)) from None


def search(options: argparse.Namespace) -> int:
    """Measures sampled schedules of a program's module; 1 if none of them succeeded."""
    try:
        from mlcweb import cli_search
    except ModuleNotFoundError as error:
        raise CommandError(f"this command needs {error.name}: pip install 'mlcweb[cli]'") from None
    # Not as `__main__`, so that the program leaves out what it does when it is run; and what it
    # prints all the same is not what was asked for.
    with redirect_stdout(io.StringIO()):
        variables = load(options.file, "__program__")
    try:
        return 0 if cli_search.search(variables, options) else 1
    except cli_search.SearchError as error:
        raise CommandError(str(error)) from None


def serve(options: argparse.Namespace) -> None:
    """Serves the built page until Ctrl-C."""
    from mlcweb.server import PageServer

    try:
        server = PageServer(options.folder, port=options.port, isolated=not options.plain)
    except FileNotFoundError as error:
        raise CommandError(f"{error}. In a checkout, `make play` builds it.") from None
    with server:
        print(f"mlcweb is at {server.url}   (Ctrl-C ends it)", flush=True)
        if options.open and has_desktop():
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def load(file: Path, name: str) -> dict[str, Any]:
    """Executes a program as the module `name`, with ``import tvm`` meaning this package.

    Returns:
        The program's global variables.

    Raises:
        CommandError: there is no such file, or the program raised; then the text is a traceback
            of the program's own frames.
    """
    from mlcweb.playground import diagnostics

    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    compat.install(force=True)
    sys.path.insert(0, str(file.resolve().parent))
    # Decorators find the source of what they decorate through the module and its file.
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    try:
        exec(compile(source, str(file), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise CommandError(diagnostics.describe(error, str(file))["text"]) from error
    return vars(module)


def has_desktop() -> bool:
    """Whether a browser can be opened where somebody sees it."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32")


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(prog="mlcweb", description=mlcweb.__doc__)
    top.add_argument("--version", action="version", version=f"mlcweb {mlcweb.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "run", help="run a program, with `import tvm` meaning mlcweb, or a model (.onnx)"
    )
    command.set_defaults(command=run)
    command.add_argument("file", type=Path, metavar="FILE")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")

    command = commands.add_parser("compile", help="compile a model (.onnx), stage by stage")
    command.set_defaults(command=compile_model)
    command.add_argument("file", type=Path, metavar="MODEL")
    cli_compile.add_options(command)

    command = commands.add_parser("tune", help="search for fast schedules of a model (.onnx)")
    command.set_defaults(command=tune)
    command.add_argument("file", type=Path, metavar="MODEL")
    cli_tune.add_options(command)

    command = commands.add_parser("records", help="show, merge or prune tuning records")
    command.set_defaults(command=records)
    cli_records.add_commands(command)

    command = commands.add_parser("search", help="search for a fast schedule")
    command.set_defaults(command=search)
    command.add_argument("file", type=Path, metavar="FILE", help="a program")
    command.add_argument(
        "--function", help="takes a Schedule and samples in it (default: a space for the program)"
    )
    command.add_argument("--module", help="the IRModule to schedule, if FILE defines several")
    command.add_argument("--target", default="llvm", help="what to build for; default: %(default)s")
    command.add_argument(
        "--work-dir", type=Path, metavar="FOLDER",
        help="keep records there; what it knows already is not measured again",
    )  # fmt: skip
    cli_tune.add_search_options(command, None, None)
    command.add_argument("--json", type=Path, metavar="OUT", help="write all trials to a file")

    command = commands.add_parser("serve", help="serve the built page on this machine")
    command.set_defaults(command=serve)
    command.add_argument("folder", type=Path, nargs="?", default=built_page(), help="the page")
    command.add_argument("--port", type=int, default=8000, help="default: %(default)s, or the next")
    command.add_argument("--open", action="store_true", help="open it, where there is a desktop")
    command.add_argument("--plain", action="store_true", help="without cross-origin isolation")
    return top


def built_page() -> Path:
    """Where a checkout has the built page."""
    return Path(__file__).parents[1] / "web" / "dist"
