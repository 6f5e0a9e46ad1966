"""The pass `tvm.s_tir.transform.UnifyThreadBinding`: each kernel has one loop for each axis of
threads, the first of its loops outermost. (`thread_axes.py` has the pass of the pipeline.)"""

from __future__ import annotations

from mlcweb.arith import same_expression
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.thread_axes import check_one_index, check_same_extent
from mlcweb.lower.thread_launches import launch_as_loop
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const, subtract
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute


def unify_thread_binding(func: PrimFunc) -> PrimFunc:
    """Make one loop of all loops and launches over one axis of threads.

    Raises:
        ThreadError: two of a kernel differ in extent, or a statement uses the indices of two.
    """
    return func.with_body(_Kernels().rewrite(func.body))


class _Kernels(Mutator):
    """`axes` are the loops of the kernel so far, by their axes; those of `around` are around a
    statement in the program, too."""

    def __init__(self) -> None:
        self.axes: dict[str, S.For] = {}
        self.around: frozenset[str] = frozenset()

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if S.is_launch(statement):
            return self.loop(launch_as_loop(statement))
        return self.rewrite_children(statement)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        tag, is_kernel = loop.thread_binding.thread_tag, not self.axes
        axis = self.axes.setdefault(tag, axis_of(loop, tag))
        check_same_extent(axis, loop)
        around = self.around
        if tag in around:
            check_one_index(loop, axis)
        self.around = around | {tag}
        body = self.rewrite(substitute(loop.body, {loop.loop_var: index_on(axis, loop)}))
        self.around = around
        if loop.annotations:
            once = E.Var("var", "int32")
            body = S.For(once, const(0), const(1), S.ForKind.SERIAL, body, None, loop.annotations)
        if is_kernel:
            for outer in reversed(self.axes.values()):
                body = replace(outer, body=body)
            self.axes = {}
        return body


def axis_of(loop: S.For, tag: str) -> S.For:
    """A loop over an axis of threads, to have in place of loops over it."""
    name, dtype = tag.replace(".", "_"), loop.loop_var.dtype
    thread = S.IterVar(None, E.Var("", dtype), S.IterType.THREAD_INDEX, tag)
    return replace(loop, loop_var=E.Var(name, dtype), thread_binding=thread, annotations={})


def index_on(axis: S.For, loop: S.For) -> E.PrimExpr:
    """The index of a loop over an axis of threads, of which there is one loop for all."""
    index: E.PrimExpr = axis.loop_var
    if not same_expression(axis.min, loop.min):
        index = add(subtract(index, axis.min), cast(index.dtype, loop.min))
    return cast(loop.loop_var.dtype, index)
