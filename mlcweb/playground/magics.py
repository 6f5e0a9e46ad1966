"""Lines for notebooks alone, ``%…``, ``!…`` and ``?``: they are skipped, and a note says which.

So are cells in other languages, which begin with ``%%bash`` or the like. A file that such a line
downloads is made instead where somebody knows how (`FILES`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from mlcweb.user_code import packages

_MAGIC = re.compile(r"^(\s*)([%!]\S.*|[\w, ]+= ?[%!]\S.*|\?{1,2}[\w.]+|[\w.]+\?{1,2})\s*$")
_OTHER_LANGUAGE = re.compile(r"\s*(%%(?!(?:time|timeit|capture|prun)\b)\w.*)")
_INSTALL = re.compile(r"[%!]\s*(?:python3? -m )?pip3? install (.*)")
_DOWNLOAD = re.compile(r"!\s*(?:wget|curl)\b.*?([^\s/\"']+)[\"']?\s*$")

FILES: dict[str, Callable[[], bytes]] = {}
"""Files by name that are made where a program would download them, and their content."""


def without_magics(source: str, filename: str) -> tuple[str, list[tuple[int, str]]]:
    """The source, with magics as empty statements if it is no Python as it stands; and where such
    lines were, and what they said."""
    try:
        ast.parse(source, filename)
        return source, []
    except SyntaxError:
        pass
    lines = source.split("\n")
    if whole := _OTHER_LANGUAGE.match(source):
        return "\n" * (len(lines) - 1), [(source[: whole.start(1)].count("\n") + 1, whole[1])]
    commands: list[tuple[int, str]] = []
    for index, line in enumerate(lines):
        if match := _MAGIC.match(line):
            indent, command = match.groups()
            lines[index] = f"{indent}pass"
            commands.append((index + 1, command))
    return "\n".join(lines), commands


def imports(source: str) -> list[str]:
    """The packages that a program imports anywhere and that are not there; none if it is no Python.

    Those that have a stand-in are there.
    """
    try:
        tree = ast.parse(without_magics(source, "<imports>")[0])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    packages: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.partition(".")[0])
    return sorted(name for name in packages - sys.modules.keys() if find_spec(name) is None)


def follow(magics: list[tuple[int, str]]) -> None:
    """Say of each magic that it is skipped; make the files that it would download."""
    for line, command in magics:
        download = _DOWNLOAD.match(command)
        if download and download[1] in FILES:
            Path(download[1]).write_bytes(FILES[download[1]]())
            print(f"line {line}: {download[1]} is not downloaded, but computed for drawn pictures")
            continue
        hint = ""
        if install := _INSTALL.match(command):
            hint = f"; {_packages(install[1])}"
        print(f"line {line}: {command} is for notebooks and is skipped here{hint}")


def _packages(arguments: str) -> str:
    """What to do in place of installing packages."""
    names = [name for name in arguments.split() if re.match(r"[A-Za-z]", name)]
    return ". ".join(packages.advice(re.split(r"[\[=<>~!;]", name)[0]) for name in names)
