"""Run a program as a notebook runs a cell, and tell the page what it left behind.

The program is executed as the module ``__main__`` with a file name of its own, and its source is
put where `inspect` and tracebacks look for it: so decorators find the source of functions *and*
classes, and tracebacks quote lines, although there is no file.
"""

from __future__ import annotations
import __future__

import ast
import asyncio
import inspect
import linecache
import sys
import time
from types import CodeType
from typing import Any

from mlcweb.ir.display import display_hook, publish
from mlcweb.playground import figures, function_locals, interpreter_state, magics
from mlcweb.playground.interrupts import as_interrupt
from mlcweb.playground.protocol.program import RunResult
from mlcweb.playground.search.watched import telling_of_searches
from mlcweb.playground.session import Document, session
from mlcweb.playground.shown import Gallery
from mlcweb.runtime.build import reset_warnings
from mlcweb.user_code import diagnostics, namespace


def execute(source: str, filename: str = "lesson.py") -> RunResult:
    """`execute_async` for callers without an event loop."""
    return asyncio.run(execute_async(source, filename))


async def execute_async(
    source: str, filename: str = "lesson.py", document_name: str = "program"
) -> RunResult:
    """Run `source` as a document that has nothing else.

    Top-level ``await`` is allowed. The value of a last expression is shown as a notebook shows it,
    and notebook magics (``%…``, ``!…``) are skipped with a note.
    """
    reset_warnings()
    document = session.open(document_name)
    document.restart()
    return await run_in(document, source, filename)


async def run_in(document: Document, source: str, filename: str) -> RunResult:
    """Run `source` with the names of a document, whose module becomes ``__main__``.

    Args:
        filename: what tracebacks call the source.
    """
    document.module.__file__ = filename
    document.files.add(filename)
    sys.modules["__main__"] = document.module
    variables = vars(document.module)
    document.locals.clear()
    gallery = Gallery(document, filename)
    error = None
    started = time.perf_counter()
    try:
        with (
            interpreter_state.put_back(),
            display_hook(gallery.show),
            telling_of_searches(document),
            function_locals.kept(document.locals),
        ):
            try:
                await _run(source, filename, variables)
            finally:
                figures.show()
    except SystemExit:
        pass  # the program asked for its end
    except BaseException as raised:
        function_locals.keep_of_error(raised.__traceback__, document.files, document.locals)
        error = diagnostics.describe(as_interrupt(raised), filename, document.files, variables)
    elapsed = time.perf_counter() - started
    modules, traces, programs = gallery.content()
    return RunResult(
        document=document.name,
        ok=error is None,
        error=error,
        elapsed_ms=elapsed * 1000,
        modules=modules,
        traces=traces,
        programs=programs,
        search_functions=namespace.schedule_functions(variables, document.files),
        search_modules=namespace.search_modules(document.offered),
    )


async def _run(source: str, filename: str, variables: dict[str, Any]) -> None:
    text, skipped = magics.without_magics(source, filename)
    magics.follow(skipped)
    # The mtime None keeps `linecache.checkcache` from dropping an entry without a file.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    statements = _futures_first(ast.parse(text, filename).body)
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
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | _future_flags(variables)
    code: CodeType = compile(tree, filename, mode, flags=flags, dont_inherit=True)
    function_locals.watch(code)
    value = eval(code, variables)
    return await value if code.co_flags & inspect.CO_COROUTINE else value


def _futures_first(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, with imports from `__future__` first, where Python wants them.

    Several cells may be one source, and an import holds for the whole of it.
    """

    def rank(statement: ast.stmt) -> int:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return 1
        return 0 if statement is statements[0] and _is_docstring(statement) else 2

    return sorted(statements, key=rank)


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _future_flags(variables: dict[str, Any]) -> int:
    """What cells before have imported from `__future__`, as flags of the compiler."""
    flags = 0
    for name in __future__.all_feature_names:
        feature = getattr(__future__, name)
        if variables.get(name) is feature:
            flags |= feature.compiler_flag
    return flags
