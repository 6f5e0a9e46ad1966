"""The pass that dissolves blocks into the loops around them."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.analysis.access_regions import in_source
from mlcweb.analysis.threads import (
    CROSS_THREAD_REDUCTION,
    exchanges_data,
    is_allreduce,
    is_own,
    is_thread_tag,
    stored_data,
    thread_tag,
)
from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on
from mlcweb.lower.atomics import lower_atomics
from mlcweb.lower.local_stage import manifest_local_stage
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.matrix_cores import lower_matrix_cores
from mlcweb.lower.matrix_units import lower_matrix_units
from mlcweb.lower.pipeline_annotations import has_pipelines, with_attributes
from mlcweb.lower.thread_launches import launch_as_loop
from mlcweb.lower.warp_matrices import lower_warp_matrices
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floormod, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, row_major_strides
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@lowering_pass("LowerOpaqueBlock", needed=True, removes=("blocks",))
def convert_blocks_to_loops(func: PrimFunc) -> PrimFunc:
    """Iterators become their bindings, predicates `if`s, allocations statements around the body,
    calls of matrix units loops, atomic additions updates, and accesses of matched buffers accesses
    of what they view. Other views need no declaration: they are known by their data."""
    func = instructions_in_loops(func)
    pipelines = has_pipelines(func)
    func = manifest_local_stage(func) if pipelines else func
    return BlockConversion(exchanges_data(func), pipelines).run(func)


def instructions_in_loops(func: PrimFunc) -> PrimFunc:
    """Loops and updates, under marks, for the instructions of GPUs."""
    return lower_atomics(lower_matrix_units(lower_matrix_cores(lower_warp_matrices(func))))


class BlockConversion(Mutator):
    """`exchanges` says that threads exchange data, so that their reductions are marked, `pipelines`
    that there are software pipelines, so that what blocks say of them stays."""

    def __init__(self, exchanges: bool = False, pipelines: bool = False) -> None:
        self.exchanges = exchanges
        self.pipelines = pipelines
        self.threads: dict[E.Var, str] = {}
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.views: dict[Buffer, MatchBufferRegion] = {}
        self.declared: dict[Buffer, Buffer] = {}
        self.bound: dict[E.Var, E.PrimExpr] = {}
        self.domains: dict[E.Var, Range] = {}
        self.parameters: set[E.Var] = set()
        self.combined: set[E.Var] = set()

    def run(self, func: PrimFunc) -> PrimFunc:
        extents = (extent for buffer in func.buffer_map.values() for extent in buffer.shape)
        self.parameters = {*func.params, *variables_in(*extents)}
        allreduces = filter(is_allreduce, S.statements_in(func.body))
        loads = (load for call in allreduces for load in find_nodes(call, E.BufferLoad))
        self.combined = {load.buffer.data for load in loads if is_own(load.buffer)}
        return func.with_body(self.rewrite(func.body))

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        return self.values.get(var, var)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        block = realize.block
        predicate = self.rewrite(realize.predicate)
        around = dict(self.values)
        named = self.bind_axes(realize)
        for match in block.match_buffers:
            self.match(match)
        body = self.rewrite(block.body)
        if self.pipelines:
            body = with_attributes(block, body)
        axes = self.axes_reduced_over(block) if self.exchanges else ()
        self.values = around
        if axes:
            body = S.AttrStmt(
                block.identity, CROSS_THREAD_REDUCTION, E.StringImm(" ".join(axes)), body
            )
        body = under_lets(named, body)
        for buffer in reversed(block.alloc_buffers):
            body = S.AllocBuffer(buffer, body, span=block.span)
        if isinstance(predicate, E.IntImm) and predicate.value:
            return body
        return S.IfThenElse(predicate, body, span=realize.span)

    def bind_axes(self, realize: S.BlockRealize) -> dict[E.Var, E.PrimExpr]:
        """Remember the values of a block's axes, and return those that read memory, which the body
        may overwrite.

        Raises:
            TVMError: the block has an init, which says when it runs by the axes.
        """
        block = realize.block
        if block.init is not None:
            raise TVMError(f'Block "{block.name_hint}" has an init; lower it first', block.span)
        values = {axis.var: self.rewrite(binding) for axis, binding in realize.iterators}
        named = {var: value for var, value in values.items() if reads_memory(value)}
        self.values.update((var, value) for var, value in values.items() if var not in named)
        return named

    def axes_reduced_over(self, block: S.Block) -> list[str]:
        """The axes of threads that a block reduces over, unless a call in it does that, or it is
        what each thread has of its own that a call combines."""
        if any(map(is_allreduce, S.statements_in(block.body))):
            return []
        if not self.combined.isdisjoint(stored_data(block.body)):
            return []
        reduced = {
            var
            for axis in block.iter_vars
            if axis.iter_type == S.IterType.COMM_REDUCE
            for var in variables_in(self.values.get(axis.var, axis.var))
        }
        return sorted({tag for var, tag in self.threads.items() if var in reduced})

    def match(self, match: MatchBufferRegion) -> None:
        """Remember a view; its symbols get the values that its source gives them.

        Raises:
            TVMError: what the view says of its layout does not hold of its source.
        """
        source = self.rewrite(match.source)
        view, region = match.buffer, source.region
        strides = row_major_strides(source.buffer)
        leading = len(region) - len(view.shape)
        offset = source.buffer.offset_of([part.min for part in region])[0]
        extents = [part.extent for part in region[leading:]]
        layout = [
            *(("shape", *pair) for pair in zip(view.shape, extents, strict=True)),
            *(("strides", *pair) for pair in zip(view.strides, strides[leading:], strict=False)),
            ("elem_offset", view.elem_offset, offset),
        ]
        self.values[view.data] = source.buffer.data
        for field, stated, value in layout:
            if isinstance(stated, E.Var) and stated not in self.parameters:
                self.values.setdefault(stated, value)
            self.check_layout(match, field, self.rewrite(stated), value)
        if view.offset_factor > 1:
            beyond = floormod(offset, const(view.offset_factor, offset.dtype))
            self.check_layout(match, "elem_offset % offset_factor", const(0, offset.dtype), beyond)
        self.views[view] = replace(match, source=source)

    def check_layout(
        self, match: MatchBufferRegion, field: str, stated: E.PrimExpr, value: E.PrimExpr
    ) -> None:
        """Refuse a view of which a field is not what its source says."""
        if stated is not value and not Analyzer(self.domains).can_prove_equal(stated, value):
            raise TVMError(
                f'The view "{match.buffer.name}" of "{match.source.buffer.name}" has {field} '
                f"{stated}, but its region has {value}; leave it open with offset_factor=1 and "
                "symbols as strides",
                match.buffer.span,
            )

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        """The part of a buffer that a part of a view is."""
        new = self.rewrite_children(region)
        match = self.views.get(region.buffer)
        return new if match is None else in_source(match, new)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        """Threads that are launched are a loop that is bound to them."""
        launches = S.is_launch(statement)
        if launches and is_thread_tag(statement.node.thread_tag):
            self.threads[statement.node.var] = statement.node.thread_tag
        new = self.rewrite_children(statement)
        return launch_as_loop(new) if launches else new

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if thread_tag(loop):
            self.threads[loop.loop_var] = thread_tag(loop)
        self.domains[loop.loop_var] = loop.domain
        return self.rewrite_children(loop)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        if not reads_memory(let.value):
            self.bound[let.var] = substitute(self.rewrite(let.value), self.bound)
        return let.rewritten(self)

    @on(S.DeclBuffer)
    def declaration(self, statement: S.DeclBuffer) -> S.Stmt:
        """The layout of a view, which stands nowhere from now on, names what is known all over."""
        buffer = self.rewrite_children(statement.buffer)
        self.declared[statement.buffer] = substitute(buffer, self.bound)
        return self.rewrite(statement.body)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        if node.buffer in self.declared:
            return replace(new, buffer=self.declared[node.buffer])
        match = self.views.get(node.buffer)
        if match is None:
            return new
        region = match.source.region
        leading = len(region) - len(node.indices)
        self.check_view(node, match)
        inner = (
            add(part.min, index) for part, index in zip(region[leading:], new.indices, strict=True)
        )
        outer = (part.min for part in region[:leading])
        return replace(new, buffer=match.source.buffer, indices=(*outer, *inner))

    def check_view(self, node: E.BufferLoad | S.BufferStore, match: MatchBufferRegion) -> None:
        """Refuse a vector whose elements are not neighbours in what a view is of."""
        if _leaves_row(node) and not _is_contiguous(match):
            raise TVMError(
                f'A vector of "{node.buffer.name}" goes on in the next row, and rows of what it '
                f'views in "{match.source.buffer.name}" are not neighbours in memory; store '
                f'"{match.source.buffer.name}" so that they are, by sch.transform_layout or a copy',
                node.span,
            )


def under_lets(values: Mapping[E.Var, E.PrimExpr], body: S.Stmt) -> S.Stmt:
    """A statement that gives variables their values before it."""
    for var, value in reversed([*values.items()]):
        body = S.LetStmt(var, value, body, span=body.span)
    return body


def _leaves_row(access: E.BufferLoad | S.BufferStore) -> bool:
    """Whether a vector of neighbours is longer than the rows of its buffer."""
    if not access.indices or len(access.indices) < 2:
        return False
    index, extent = access.indices[-1], access.buffer.shape[-1]
    if not isinstance(index, E.Ramp) or not isinstance(extent, E.IntImm):
        return False
    first = index.base.value if isinstance(index.base, E.IntImm) else 0
    return first + dtypes.lanes(index.dtype) > extent.value


def _is_contiguous(match: MatchBufferRegion) -> bool:
    """Whether the elements of a view lie in memory as those of a compact array."""
    source, view = match.source, match.buffer
    strides = row_major_strides(source.buffer)[-len(view.shape) :]
    pairs = zip(view.shape, strides, row_major_strides(replace(view, strides=())), strict=True)
    analyzer = Analyzer()
    return all(
        is_const_int(extent, 1) or analyzer.can_prove_equal(stride, compact)
        for extent, stride, compact in pairs
    )
