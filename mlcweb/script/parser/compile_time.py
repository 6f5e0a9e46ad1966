"""What Python itself computes while a script is read: comprehensions, f-strings, sets, …

The script's names go in as they are, so that such an expression may have expressions of TensorIR in
it: `sum([A[j] for j in range(3)])`.
"""

from __future__ import annotations

import ast
import builtins
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


def run(self: Evaluator, node: ast.expr) -> Any:
    """The value that Python gives an expression."""
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
