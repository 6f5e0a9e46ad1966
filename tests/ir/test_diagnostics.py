"""What is told about scripts that are refused."""

import pytest

from mlcweb.ir.diagnostics import DiagnosticContext, DiagnosticLevel, override_renderer
from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import from_source
from mlcweb.script import tir as T

SOURCE = """
@T.prim_func
def main(A: T.Buffer((8,))):
    for i in range(8):
        A[i] = B[i]
"""


def test_a_renderer_gets_what_is_wrong_and_where() -> None:
    seen: list[DiagnosticContext] = []
    override_renderer(seen.append)
    try:
        with pytest.raises(DiagnosticError):
            from_source(SOURCE)
        with pytest.raises(DiagnosticError):

            @T.prim_func
            def undefined(x: T.int32):
                T.evaluate(x + y)
    finally:
        override_renderer(None)
    found = [diagnostic for context in seen for diagnostic in context.diagnostics]
    assert [d.message for d in found] == ['"B" is not defined', '"y" is not defined']
    assert (found[0].level, found[0].span and found[0].span.line) == (DiagnosticLevel.ERROR, 5)
    with pytest.raises(DiagnosticError):
        from_source(SOURCE)
    assert len(seen) == 2
