"""Run a program as a notebook runs a cell, and tell the page what it left behind.

The program is executed as the module ``__main__`` with a file name of its own, and its source is
put where `inspect` and tracebacks look for it: so decorators find the source of functions *and*
classes, and tracebacks quote lines, although there is no file.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import re
import sys
import time
from collections.abc import Collection
from types import CodeType, ModuleType
from typing import Any

from mlcweb.ir.display import display_hook, publish
from mlcweb.playground.search.watched import telling_of_searches
from mlcweb.playground.shown import Gallery
from mlcweb.runtime.build import reset_warnings
from mlcweb.user_code import diagnostics, namespace

_MAGIC = re.compile(r"^(\s*)([%!]\S.*)$")


def execute(source: str, filename: str = "lesson.py") -> dict[str, Any]:
    """`execute_async` for callers without an event loop."""
    return asyncio.run(execute_async(source, filename))


async def execute_async(source: str, filename: str = "lesson.py") -> dict[str, Any]:
    """Run `source` in a fresh module.

    Top-level ``await`` is allowed. The value of a last expression is shown as a notebook shows it,
    and notebook magics (``%…``, ``!…``) are skipped with a note.

    Returns:
        Plain JSON: ``ok``; ``error`` (None, or ``kind``, ``message``, ``text`` and
        ``diagnostics``); ``elapsedMs``; the ``modules`` and ``traces`` to look at; and what a
        search can start from, ``searchFunctions`` and ``searchModules``. What an unfinished program
        has left behind is in it too.
    """
    reset_warnings()
    return await run_in(ModuleType("__main__"), source, filename)


async def run_in(
    module: ModuleType, source: str, filename: str, earlier: Collection[str] = ()
) -> dict[str, Any]:
    """Run `source` in a module, which becomes ``__main__``; returns what `execute_async` does.

    Args:
        module: where names are looked up and defined; it may hold those of earlier cells.
        filename: what tracebacks call the source.
        earlier: file names of the cells that ran in this module before.
    """
    module.__file__ = filename
    sys.modules["__main__"] = module
    variables = vars(module)
    own = {filename, *earlier}
    gallery = Gallery(variables, filename)
    error = None
    started = time.perf_counter()
    try:
        with display_hook(gallery.show), telling_of_searches():
            await _run(source, filename, variables)
    except SystemExit:
        pass  # the program asked for its end
    except BaseException as raised:
        error = diagnostics.describe(raised, filename, own)
    elapsed = time.perf_counter() - started
    return {
        "ok": error is None,
        "error": error,
        "elapsedMs": elapsed * 1000,
        **gallery.content(),
        "searchFunctions": namespace.schedule_functions(variables, own),
        "searchModules": namespace.search_modules(variables),
    }


async def _run(source: str, filename: str, variables: dict[str, Any]) -> None:
    text = _without_magics(source, filename)
    # The mtime None keeps `linecache.checkcache` from dropping an entry without a file.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    statements = ast.parse(text, filename).body
    last = statements[-1] if statements else None
    if isinstance(last, ast.Expr) and not text.rstrip().endswith(";"):
        await _evaluate(ast.Module(statements[:-1], []), filename, variables)
        value = await _evaluate(ast.Expression(last.value), filename, variables)
        # An object with a MIME bundle has shown itself when it was made.
        if value is not None and not hasattr(value, "_repr_mimebundle_"):
            publish(value)
    else:
        await _evaluate(ast.Module(statements, []), filename, variables)


async def _evaluate(
    tree: ast.Module | ast.Expression, filename: str, variables: dict[str, Any]
) -> Any:
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(tree, filename, mode, flags=flags, dont_inherit=True)
    value = eval(code, variables)
    return await value if code.co_flags & inspect.CO_COROUTINE else value


def _without_magics(source: str, filename: str) -> str:
    """The source, with notebook magics as empty statements if it is no Python as it stands."""
    try:
        ast.parse(source, filename)
        return source
    except SyntaxError:
        pass
    lines = source.split("\n")
    for index, line in enumerate(lines):
        match = _MAGIC.match(line)
        if match is None:
            continue
        indent, command = match.groups()
        lines[index] = f"{indent}pass"
        hint = ""
        if found := re.match(r"[%!]\s*(?:python3? -m )?pip3? install (?:-\S+ )*(\S+)", command):
            hint = f'; use: import micropip; await micropip.install("{found[1]}")'
        print(f"line {index + 1}: {command} is for notebooks and is skipped here{hint}")
    return "\n".join(lines)
