"""The error of tensor expressions."""

from mlcweb.ir.errors import DiagnosticError


class ExpressionError(DiagnosticError, TypeError, ValueError):
    """There is no such tensor expression. TVM raises an InternalError, a TypeError or a
    ValueError; which one depends on the fault, and on TVM's version."""
