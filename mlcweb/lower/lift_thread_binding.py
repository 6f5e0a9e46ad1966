"""The pass `tvm.s_tir.transform.LiftThreadBinding`: where a kernel has several loops over one axis
of threads, one loop around all of them takes their place, no further out than it has to be."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, Visitor, on
from mlcweb.lower.thread_axes import check_one_index, check_same_extent
from mlcweb.lower.unify_thread_binding import axis_of, index_on
from mlcweb.schedule.state import shared_prefix
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


def lift_thread_binding(func: PrimFunc) -> PrimFunc:
    """The function with one loop for each axis of each kernel.

    Raises:
        ThreadError: two of these differ in extent, or a statement uses the indices of two.
    """
    axes = _Axes()
    axes.visit(func.body)
    return func.with_body(_Lifting(axes).rewrite(func.body)) if axes.of else func


class _Axes(Visitor):
    """The axis that a loop over threads is of (`of`), and those that a loop gets: in its place, or
    just inside of it (`inside`)."""

    def __init__(self) -> None:
        self.of: dict[S.For, S.For] = {}
        self.inside: dict[S.For, list[S.For]] = {}
        self.around: tuple[S.For, ...] = ()
        self.kernel: dict[str, list[tuple[S.For, ...]]] | None = None

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        around, self.around = self.around, (*self.around, loop)
        binding, is_kernel = loop.thread_binding, False
        if binding is not None:
            if self.kernel is None:
                is_kernel, self.kernel = True, {}
            self.kernel.setdefault(binding.thread_tag, []).append(self.around)
        self.visit_children(loop)
        self.around = around
        if is_kernel:
            assert self.kernel is not None
            for tag, chains in self.kernel.items():
                self.place(tag, chains)
            self.kernel = None

    def place(self, tag: str, chains: list[tuple[S.For, ...]]) -> None:
        """Decide where one loop over an axis stands for those at the end of chains of loops."""
        loops = [chain[-1] for chain in chains]
        annotations = {key: value for loop in loops for key, value in loop.annotations.items()}
        axis = replace(axis_of(loops[0], tag), annotations=annotations)
        for loop, *outer in (tuple(reversed(chain)) for chain in chains):
            check_same_extent(axis, loop)
            if any(other in outer for other in loops):
                check_one_index(loop, axis)
            self.of[loop] = axis
        self.inside.setdefault(shared_prefix(chains)[-1], []).append(axis)


class _Lifting(Mutator):
    def __init__(self, axes: _Axes) -> None:
        self.axes = axes
        self.indices: dict[E.Var, E.PrimExpr] = {}

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        return self.indices.get(var, var)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        axis, inside = self.axes.of.get(loop), self.axes.inside.get(loop, ())
        if axis is not None:
            self.indices[loop.loop_var] = index_on(axis, loop)
        new = self.rewrite_children(loop)
        body = new.body
        for own in inside:
            if own is not axis:
                body = replace(own, body=body)
        if axis is None:
            return replace(new, body=body)
        return replace(axis, body=body) if axis in inside else body
