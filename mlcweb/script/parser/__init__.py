"""The parser: TVMScript → IR. Bodies are read from source, never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from mlcweb.ir.diagnostics import rendered_diagnostics
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.script.decorators import ir_module
from mlcweb.script.parser.functions import no_definition, parse_function, parse_module
from mlcweb.script.parser.source import source_of_text, type_variables_in

__all__ = ["from_source", "ir_module", "parse"]


def parse(
    text: str,
    extra_vars: Mapping[str, Any] | None = None,
    check_well_formed: bool = True,
    s_tir: bool = False,
    *,
    filename: str | None = None,
    runs: bool = True,
) -> IRModule | BaseFunc:
    """The last module or function that a text defines.

    `T`, `I` and `R` are known; other names of Python that the text uses come from `extra_vars`.
    Imports in the text are ignored. `check_well_formed=False` leaves out the checks of whole
    functions, and `s_tir` says that they are in the spelling of TVM since 2026. Unless it `runs`, a
    text in which Python would have to compute something is refused (`compile_time.NotRun`). A
    SyntaxError or a DiagnosticError says where the text is wrong.
    """
    with nesting_limit("read"), rendered_diagnostics():
        tree, source = source_of_text(text, filename, runs)
        names = {"T": T, "I": I, **type_variables_in(tree)}
        if "@tvm.script.tir" in text:  # as before TVM 0.8
            names |= {"tir": T, "ty": T}
        if re.search(r"\bR\b|\bmetadata\b", text):
            names |= _graph_level(tree)
        names.update(extra_vars or {})
        options = {"check_well_formed": check_well_formed, "s_tir": s_tir}
        for item in reversed(tree.body):
            if isinstance(item, ast.ClassDef):
                return parse_module(item, source, names, options)
            if isinstance(item, ast.FunctionDef):
                return parse_function(item, source, names, options)
    raise no_definition("The text")


def _graph_level(tree: ast.Module) -> dict[str, Any]:
    """Names that only functions of the graph level use. It is loaded with the first of them: it is
    as much as all else."""
    from mlcweb.script import relax as R
    from mlcweb.script.metadata import metadata_in

    return {"R": R, "metadata": metadata_in(tree)}


from_source = parse
