"""What is wrong with a program that is being written, found without running it.

Its Python is parsed, and so are the functions and modules in TVMScript, with the names that its
imports give and that its last run has left.
"""

from __future__ import annotations

import ast
import linecache
import re
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.playground.session import Document, session
from mlcweb.script.parser.compile_time import NotRun
from mlcweb.script.parser.environment import names_around
from mlcweb.script.parser.functions import parse_function, parse_module
from mlcweb.script.parser.source import source_of_text
from mlcweb.user_code import diagnostics
from mlcweb.user_code.diagnostics import Diagnostic

FILENAME = "program being written.py"

_ROOTS = ("tvm", "mlcweb", "numpy")
"""Packages whose import does nothing but define names."""

_DECORATORS = {"prim_func": parse_function, "function": parse_function, "ir_module": parse_module}


def check(document_name: str, source: str) -> list[Diagnostic]:
    """The diagnostics of a text of a document.

    Names that the program defines only when it runs are not complained about.
    """
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    try:
        tree, text = source_of_text(source, FILENAME, runs=False)
    except (SyntaxError, ValueError) as error:
        # A notebook's magics are no Python, and run all the same.
        if re.search(r"^\s*[%!]\S", source, re.MULTILINE):
            return []
        return diagnostics.describe(error, FILENAME).diagnostics
    names = _names(tree, session.open(document_name))
    late = _defined(tree) - names.keys()
    diagnosed: list[Diagnostic] = []
    for statement in tree.body:
        parse = _parser_of(statement)
        if parse is None:
            continue
        try:
            parse(statement, text, names)
        except NotRun:
            continue
        except TVMError as error:
            unknown = re.match(r'"(\w+)" is not defined', str(getattr(error, "message", error)))
            if unknown is None or unknown[1] not in late:
                diagnosed += diagnostics.describe(error, FILENAME, known=names).diagnostics
        except Exception:
            # Running the program shows it, with its traceback.
            continue
    return diagnosed


def _parser_of(statement: ast.stmt) -> Any:
    """What reads a definition: the parser of its innermost decorator in TVMScript, if any."""
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return None
    for decorator in statement.decorator_list:
        callee = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        if name in _DECORATORS and isinstance(statement, ast.ClassDef) == (name == "ir_module"):
            return _DECORATORS[name]
    return None


def _names(tree: ast.Module, document: Document) -> dict[str, Any]:
    """What the document's runs left, then what the program's imports and plain constants define."""
    names = names_around(None, [])
    names.update(document.variables)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module = statement.module if isinstance(statement, ast.ImportFrom) else None
            paths = [module or alias.name for alias in statement.names]
            if any(path.partition(".")[0] not in _ROOTS for path in paths):
                continue
        elif not (isinstance(statement, ast.Assign) and _is_constant(statement.value)):
            continue
        try:
            exec(compile(ast.Module([statement], []), FILENAME, "exec"), names)
        except Exception:
            # Running the program will tell.
            continue
    return names


def _is_constant(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def _defined(tree: ast.Module) -> set[str]:
    """All names that the program may define somewhere."""
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    definitions = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    stored |= {node.name for node in ast.walk(tree) if isinstance(node, definitions)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return stored
