"""What passes of lowering leave no more of in a function, so that later ones need not know it.

A pass names in `PassInfo.removes` what it removes for good, as passes of LLVM set properties of a
`MachineFunction`; verify.py sees to it that none of it comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc

_ARITHMETIC = (*E.BinaryExpr.__subclasses__(), *E.ComparisonExpr.__subclasses__())


def _is_arithmetic_of(element: str) -> Callable[[Any], bool]:
    return lambda node: isinstance(node, _ARITHMETIC) and dtypes.element_of(node.a.dtype) == element


_IS: dict[str, Callable[[Any], bool]] = {
    "T.init()": lambda node: isinstance(node, S.Block) and node.init is not None,
    "blocks": lambda node: isinstance(node, S.BlockRealize),
    "accesses by several indices": lambda node: (
        isinstance(node, (E.BufferLoad, S.BufferStore)) and len(node.indices) > 1
    ),
    "vectorized loops": lambda node: isinstance(node, S.For) and node.kind is S.ForKind.VECTORIZED,
    **{
        f"arithmetic of {element}": _is_arithmetic_of(element)
        for element in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16")
    },
}
"""What a pass can remove, and which nodes are of it."""


def check_removed(function: PrimFunc, removed: Iterable[str]) -> None:
    """Raise a DiagnosticError at the first node of what a function should have no more of."""
    tests = [(name, _IS[name]) for name in removed]
    for node in walk(function.body) if tests else ():
        for name, is_one in tests:
            if is_one(node):
                raise DiagnosticError(
                    f"it has {name}, which were removed before", getattr(node, "span", None)
                )
