"""Checks that a function read from a script is one that can be run."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.visitor import Visitor, on
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


def check_well_formed(function: PrimFunc) -> None:
    """Raise a DiagnosticError at the first axis whose range is not that of its loop."""
    _AxisCheck().visit(function.body)


class _AxisCheck(Visitor):
    """Compares the range of each axis with the loop that it is bound to.

    Only a loop variable standing alone is compared, and only where no predicate cuts the loop: the
    ranges of other bindings are the business of the iterator analysis.
    """

    def __init__(self) -> None:
        self.loops: dict[E.Var, S.For] = {}

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.loops[loop.loop_var] = loop
        self.visit(loop.body)

    @on(S.BlockRealize)
    def visit_block(self, realize: S.BlockRealize) -> None:
        if arithmetic.is_const_int(realize.predicate, 1):
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
                loop = self.loops.get(value) if isinstance(value, E.Var) else None
                if loop is not None:
                    _compare(realize.block, axis, loop)
        self.visit(realize.block)


def _compare(block: S.Block, axis: S.IterVar, loop: S.For) -> None:
    domain = axis.dom
    if domain is None:
        return
    loop_range = _constants(loop.min, loop.extent)
    axis_range = _constants(domain.min, domain.extent)
    if loop_range is None or axis_range is None or loop_range == axis_range:
        return
    (start, extent), (axis_start, axis_extent) = loop_range, axis_range
    name = loop.loop_var.name
    if start != axis_start:
        found, wanted = f"starts at {start}", f"at {axis_start}"
        right = f"range({axis_start}, {axis_start + axis_extent})"
    else:
        found, wanted = f"runs over {extent} values", f"has {axis_extent}"
        right = f"range({extent})" if start == 0 else f"range({start}, {start + extent})"
        right = f"`for {name} in range({axis_extent})`, or an axis of {extent}"
        raise DiagnosticError(
            f'The loop "{name}" {found} (0 to {extent - 1}), but the axis "{axis.var.name}" of '
            f'the block "{block.name_hint}" that it is bound to {wanted}; write {right}',
            axis.span,
        )
    raise DiagnosticError(
        f'The loop "{name}" {found}, but the axis "{axis.var.name}" of the block '
        f'"{block.name_hint}" that it is bound to {wanted}; write `for {name} in {right}`',
        axis.span,
    )


def _constants(*values: E.PrimExpr) -> tuple[int, ...] | None:
    if all(isinstance(value, E.IntImm) for value in values):
        return tuple(int(value) for value in values)  # type: ignore[call-overload]
    return None
