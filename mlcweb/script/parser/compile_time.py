"""What Python itself computes while a script is read: comprehensions, f-strings, sets, …

The script's names go in as they are, so that such an expression may have expressions of TensorIR in
it: `sum([A[j] for j in range(3)])`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import DiagnosticError

if TYPE_CHECKING:
    from mlcweb.script.parser.expressions import Evaluator

PYTHON_FUNCTIONS: dict[str, Any] = {
    name: value
    for name, value in vars(builtins).items()
    if name.islower() and not name.startswith("_") and callable(value)
}
"""What Python calls without an import."""

_UNKNOWN = object()

_HARMLESS = frozenset((
    abs, bool, dict, divmod, enumerate, float, getattr, int, isinstance, len, list, max, min, range,
    reversed, round, set, sorted, str, sum, tuple, zip,
))  # fmt: skip
"""Functions of Python that do nothing but compute."""

_OURS = __name__.partition(".")[0]


class NotRun(DiagnosticError):
    """A text that nobody has run asks Python to compute something."""


def check_call(self: Evaluator, function: Any, node: ast.expr) -> None:
    """Refuse to call functions of others where nobody has run the text."""
    while isinstance(function, partial):
        function = function.func
    if self.source.runs or (isinstance(function, Hashable) and function in _HARMLESS):
        return
    home = getattr(function, "__module__", None) or ""
    if home.partition(".")[0] != _OURS:
        raise NotRun(f"{ast.unparse(node)} is called when the script runs", self.source.span(node))


def run(self: Evaluator, node: ast.expr) -> Any:
    """The value that Python gives an expression."""
    if not self.source.runs:
        raise NotRun("Python computes this when the script runs", self.source.span(node))
    names = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            value = self.scopes.find(part.id, _UNKNOWN)
            if value is not _UNKNOWN:
                names[part.id] = value
    code = compile(ast.Expression(node), self.source.filename, "eval")
    try:
        return eval(code, names)  # the script's author runs it
    except DiagnosticError:
        raise
    except NameError as error:
        complaint = self.scopes.complaint(error.name, PYTHON_FUNCTIONS) if error.name else error
        raise self.error(str(complaint), node) from None
    except Exception as error:
        raise self.error(f"{type(error).__name__}: {error}", node) from None
