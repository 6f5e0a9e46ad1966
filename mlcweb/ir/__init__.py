"""Nodes common to all dialects: modules, spans, visitors, structural equality, errors."""

from mlcweb.ir import instrument, module, transform
from mlcweb.ir.errors import DiagnosticError, InternalError, TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op, register_op_attr
from mlcweb.ir.span import Span
from mlcweb.ir.structural import (
    StructuralMismatch,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)

__all__ = [
    "BaseFunc",
    "DiagnosticError",
    "GlobalVar",
    "IRModule",
    "InternalError",
    "Node",
    "Op",
    "Span",
    "StructuralMismatch",
    "TVMError",
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "instrument",
    "module",
    "register_op_attr",
    "structural_equal",
    "structural_hash",
    "transform",
]
