"""How many arithmetic operations a program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir.errors import DiagnosticError, nesting_limit
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import Family, keys


@nesting_limit("analyzed")
def estimate_flops(program: PrimFunc | IRModule) -> float:
    """Operations that the stores of a program compute; of branches the dearest counts.

    Counted is what TVM's `estimate_tir_flops` counts: arithmetic of any type in the values stored
    and in conditions, but no comparisons and no indices; a call costs what its arguments cost.
    Loops must have constant extents. A function's or block's "estimated_flops" attribute overrides.
    """
    if isinstance(program, IRModule):
        functions = [f for f in program.functions.values() if isinstance(f, PrimFunc)]
        return sum(estimate_flops(func) for func in functions)
    estimate = program.attrs.get("estimated_flops")
    return float(estimate) if estimate is not None else _count(program.body)


def _count(node: Node | None) -> float:
    if node is None:
        return 0.0
    rule = _RULES.get(type(node))
    return rule(node) if rule else 0.0


def _loop(loop: S.For) -> float:
    if not isinstance(loop.extent, E.IntImm):
        raise DiagnosticError(
            f'The operations of loop "{loop.loop_var.name}" cannot be counted: its extent is not '
            "constant",
            loop.span,
        )
    return loop.extent.value * _count(loop.body)


def _block(block: S.Block) -> float:
    estimate = block.annotations.get("estimated_flops")
    return float(estimate) if estimate is not None else _count(block.body)


def _branch(branch: S.IfThenElse) -> float:
    return _count(branch.condition) + max(_count(branch.then_case), _count(branch.else_case))


def _select(select: E.Select) -> float:
    branches = max(_count(select.true_value), _count(select.false_value))
    return _count(select.condition) + branches


def _parts(node: Node) -> float:
    return sum([_count(child) for child in children(node)])


_RULES: dict[type, Callable[[Any], float]] = {
    **dict.fromkeys(keys(Family.ARITHMETIC, arity=2), lambda n: 1 + _parts(n)),
    **dict.fromkeys(keys(Family.COMPARISON, Family.LOGIC, arity=2), _parts),
    **dict.fromkeys((E.Not, E.Cast, E.Let, E.Call), _parts),
    **dict.fromkeys((S.SeqStmt, S.LetStmt, S.AllocBuffer, S.DeclBuffer, S.Evaluate), _parts),
    E.Select: _select,
    S.For: _loop,
    S.IfThenElse: _branch,
    S.BlockRealize: lambda n: _count(n.block),
    S.Block: _block,
    S.BufferStore: lambda n: _count(n.value),
    S.AttrStmt: lambda n: _count(n.body),
}
