"""Which operators have instructions, and the lowering of the others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax_vm.builtins import BUILTINS
from mlcweb.relax_vm.compiler import CALLS


def lowered(mod: IRModule) -> IRModule:
    """The module without calls of operators that a virtual machine does not know."""
    left = operators_left(mod)
    if not left:
        return mod
    try:
        transform: Any = import_module("mlcweb.relax.transform")
        legalize = transform.LegalizeOps
    except (ModuleNotFoundError, AttributeError):
        raise DiagnosticError(
            f"These operators have to be lowered to functions of TensorIR first: {', '.join(left)}"
        ) from None
    return legalize()(mod)


def operators_left(mod: IRModule) -> list[str]:
    """The operators in graph functions for which there are no instructions."""
    names = (
        node.op.name
        for func in mod.functions.values()
        if isinstance(func, E.Function)
        for node in walk(func)
        if isinstance(node, E.Call) and isinstance(node.op, Op)
    )
    return sorted({name for name in names if name not in CALLS and name not in BUILTINS})
