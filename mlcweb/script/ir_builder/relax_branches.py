"""Branches of graph functions that are built: `R.If`, `R.Then`, `R.Else`.

    with R.If(condition) as branch:
        with R.Then():
            IRBuilder.name("y", R.emit(R.add(x, x)))
        with R.Else():
            IRBuilder.name("y", R.emit(R.multiply(x, x)))
    R.func_ret_value(branch.var)

The last variable of each branch is what it gives; both have one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.normalize import merged
from mlcweb.script.ir_builder.base import BuilderError, Frame


class Branches:
    """An `R.If` that is being built; afterwards `var` is the variable of its result."""

    def __init__(self) -> None:
        self.cases: dict[str, E.SeqExpr] = {}
        self.var: E.Var | None = None


class OpenBranches:
    """The `R.If`s of a function that are open, the innermost last."""

    def __init__(self, blocks: BlockBuilder) -> None:
        self.blocks = blocks
        self.open: list[Branches] = []

    def if_(self, condition: Any) -> Frame:
        @contextmanager
        def build() -> Iterator[Branches]:
            branches = Branches()
            if self.blocks.current_block_is_dataflow():
                raise BuilderError("R.If does not belong inside `with R.dataflow():`")
            self.open.append(branches)
            yield branches
            self.open.pop()
            missing = [case for case in ("Then", "Else") if case not in branches.cases]
            if missing:
                raise BuilderError(f"R.If has no R.{missing[0]}: both branches give a value")
            then, other = (_result(branches.cases[case]) for case in ("Then", "Else"))
            if then.name_hint != other.name_hint:
                raise BuilderError(
                    "Both branches of R.If end with a variable of one name, not "
                    f'"{then.name_hint}" and "{other.name_hint}": IRBuilder.name gives names'
                )
            value = E.If(condition, branches.cases["Then"], branches.cases["Else"])
            branches.var = self.blocks.emit(value)
            object.__setattr__(branches.var, "name_hint", then.name_hint)

        return Frame("R.If(condition)", build)

    def branch(self, case: str) -> Frame:
        call = f"R.{case}()"

        @contextmanager
        def build() -> Iterator[None]:
            if not self.open:
                raise BuilderError(f"{call} belongs inside `with R.If(condition):`")
            if case in self.open[-1].cases:
                raise BuilderError(f"R.If has two {call}")
            scope, depth = self.blocks._func, len(self.blocks._open)
            outer, scope.blocks = scope.blocks, []
            self.blocks._begin_binding_block()
            yield
            self.blocks._close_block()
            blocks, scope.blocks = merged(scope.blocks), outer
            del self.blocks._open[depth:]
            if not blocks:
                raise BuilderError(f"{call} is empty: it ends with the variable that it gives")
            self.open[-1].cases[case] = E.SeqExpr(blocks, blocks[-1].bindings[-1].var)

        return Frame(call, build)


def _result(case: E.SeqExpr) -> E.Var:
    assert isinstance(case.body, E.Var)
    return case.body


def branch_calls(innermost: Callable[[str], OpenBranches]) -> tuple[Any, Any, Any]:
    """`R.If`, `R.Then` and `R.Else`, of the function that `innermost(call)` finds."""
    return (
        lambda condition: innermost("R.If").if_(condition),
        lambda: innermost("R.Then").branch("Then"),
        lambda: innermost("R.Else").branch("Else"),
    )
