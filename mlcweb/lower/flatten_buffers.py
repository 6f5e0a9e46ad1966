"""The passes that give every buffer one dimension: that of the pipeline, and under TVM's name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd, prod

from mlcweb.arith import Analyzer, conjunction, conjuncts, iter_map_simplify
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.stmt_simplify import assume_extents
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, logical_and, multiply, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, has_constant_layout, row_major_strides
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory


@lowering_pass("FlattenBuffer", needed=True, removes=("accesses by several indices",))
def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """Rewrite accesses to a flat index, by the strides and offset of the buffer.

    The parameters keep their buffers, which say what callers pass; the flat ones share their data.
    """
    return func.with_body(_Flattening(func).rewrite(func.body))


def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """The pass `tvm.tir.transform.FlattenBuffer`: of each parameter that is used a flat buffer is
    declared, and flat indices are simplified, which in the pipeline is the next pass.

    Raises:
        TVMError: a block matches buffers.
    """
    for block in find_nodes(func.body, S.Block):
        for match in block.match_buffers:
            raise TVMError(
                f'A block matches "{match.buffer.name}": run LowerMatchBuffer first', block.span
            )
    parameters = func.parameter_buffers
    flattening = _Flattening(func, views=parameters)
    body = _IndexSimplification(func).rewrite(flattening.rewrite(func.body))
    for buffer in reversed(parameters):
        if buffer in flattening.flat:
            body = S.DeclBuffer(flattening.flat[buffer], body)
    return func.with_body(body)


class _Flattening(Mutator):
    """`owners` are the buffers that have memory of their own, by their data; `views` are those of
    which others are made although they are flat."""

    def __init__(self, func: PrimFunc, views: Sequence[Buffer] = ()) -> None:
        self.owners = {buffer.data: buffer for buffer in func.parameter_buffers}
        self.views = views
        self.flat: dict[Buffer, Buffer] = {}

    def flattened(self, buffer: Buffer) -> Buffer:
        flat = self.flat.get(buffer)
        if flat is None:
            keep = _is_flat(buffer) and buffer not in self.views
            flat = buffer if keep else _flat(buffer)
            owner = self.owners.get(buffer.data, buffer)
            if owner is not buffer:
                flat = _within(flat, owner)
            self.flat[buffer] = flat
        return flat

    @on(S.AllocBuffer, S.DeclBuffer)
    def declaration(self, statement: S.AllocBuffer | S.DeclBuffer) -> S.Stmt:
        if isinstance(statement, S.AllocBuffer):
            self.owners[statement.buffer.data] = statement.buffer
        buffer, body = self.flattened(statement.buffer), self.rewrite(statement.body)
        if buffer is statement.buffer and body is statement.body:
            return statement
        return replace(statement, buffer=buffer, body=body)

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        self.owners.update((buffer.data, buffer) for buffer in block.alloc_buffers)
        buffers = tuple(map(self.flattened, block.alloc_buffers))
        return replace(self.rewrite_children(block), alloc_buffers=buffers)

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        """From the first to the last element."""
        ranges = self.rewrite_tuple(region.region)
        first = _flat_index(region.buffer, tuple(part.min for part in ranges))
        ends = [subtract(add(part.min, part.extent), const(1, part.min.dtype)) for part in ranges]
        size = subtract(_flat_index(region.buffer, tuple(ends)), first)
        extent = add(size, const(1, size.dtype))
        return BufferRegion(self.flattened(region.buffer), (Range(first, extent),))

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        buffer = self.flattened(node.buffer)
        if buffer is node.buffer:
            return new
        return replace(new, buffer=buffer, indices=(_flat_index(node.buffer, new.indices),))


class _IndexSimplification(Mutator):
    """Simplifies indices by what loops and conditions around them say, and regions."""

    def __init__(self, func: PrimFunc) -> None:
        self.analyzer = Analyzer()
        self.iterators: dict[E.Var, Range] = {}
        self.predicate = const(True, "bool")
        assume_extents(self.analyzer, func)

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        self.enter(loop.loop_var, loop.domain)
        return self.rewrite_children(loop)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.AttrStmt:
        if S.is_launch(statement):
            var = statement.node.var
            self.enter(var, Range(const(0, var.dtype), statement.value))
        return self.rewrite_children(statement)

    def enter(self, var: E.Var, domain: Range) -> None:
        if not (reads_memory(domain.min) or reads_memory(domain.extent)):
            self.analyzer.bind(var, domain)
            self.iterators[var] = domain

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.IfThenElse:
        condition, around = self.rewrite(branch.condition), self.predicate
        lasting = conjunction(part for part in conjuncts(condition) if not reads_memory(part))
        with self.analyzer.constraint(lasting):
            self.predicate = logical_and(around, lasting)
            then_case = self.rewrite(branch.then_case)
            self.predicate = around
        else_case = None if branch.else_case is None else self.rewrite(branch.else_case)
        return replace(branch, condition=condition, then_case=then_case, else_case=else_case)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        return replace(new, indices=tuple(map(self.simplified, new.indices)))

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        simplify = self.analyzer.simplify
        parts = (Range(simplify(part.min), simplify(part.extent)) for part in region.region)
        return replace(region, region=tuple(parts))

    def simplified(self, index: E.PrimExpr) -> E.PrimExpr:
        analyzer, predicate = self.analyzer, self.predicate
        [index] = iter_map_simplify([index], self.iterators, predicate, analyzer=analyzer)
        return analyzer.simplify(index)


def _is_flat(buffer: Buffer) -> bool:
    at_start = isinstance(buffer.elem_offset, E.IntImm) and buffer.elem_offset.value == 0
    return len(buffer.shape) == 1 and not buffer.strides and at_start


def _flat(buffer: Buffer) -> Buffer:
    index_type = buffer.shape[0].dtype if buffer.shape else "int32"
    # With strides, all rows as the outermost dimension has them.
    factors = (buffer.strides[0], buffer.shape[0]) if buffer.strides else buffer.shape
    numbers = [part.value for part in (buffer.elem_offset, *factors) if isinstance(part, E.IntImm)]
    if len(numbers) > len(factors):
        count = max(prod(numbers[1:]), _reach(buffer))
        size = _size(buffer, numbers[0] + count, index_type)
    else:
        count = reduce(multiply, factors, const(1, index_type))
        size = Analyzer().canonical_simplify(add(buffer.elem_offset, count))
    zero = const(0, index_type)
    return replace(buffer, shape=(size,), strides=(), elem_offset=zero, axis_separators=())


def _reach(buffer: Buffer) -> int:
    """How many elements there are up to the last one, where strides that say so are numbers: an
    inner dimension may reach beyond the outermost one."""
    pairs = zip(buffer.strides, buffer.shape, strict=False)
    return 1 + sum(
        stride.value * (extent.value - 1)
        for stride, extent in pairs
        if isinstance(stride, E.IntImm) and isinstance(extent, E.IntImm)
    )


def _size(buffer: Buffer, count: int, index_type: str) -> E.PrimExpr:
    """A number of elements, which indices must reach."""
    if count > dtypes.max_value(index_type):
        raise TVMError(
            f'The buffer "{buffer.name}" has {count} elements, more than an index of '
            f"{index_type} reaches; write its shape as int64",
            buffer.span,
        )
    return const(count, index_type)


def _within(view: Buffer, owner: Buffer) -> Buffer:
    """A flat view, up to the end of the memory that it looks at; all of that, where its place
    depends on loops."""
    elements, count = _elements(owner, view), view.shape[0]
    if isinstance(count, E.IntImm) and has_constant_layout(view):
        if not isinstance(elements, E.IntImm) or count.value <= elements.value:
            return view
    return replace(view, shape=(elements,))


def _elements(owner: Buffer, view: Buffer) -> E.PrimExpr:
    """How many elements of a view's type the memory of a buffer holds."""
    count = (owner if _is_flat(owner) else _flat(owner)).shape[0]
    have, want = (dtypes.size_in_bytes(buffer.dtype) for buffer in (owner, view))
    if isinstance(count, E.IntImm):
        return _size(view, count.value * have // want, count.dtype)
    common = gcd(have, want)
    return floordiv(multiply(count, have // common), want // common)


def _flat_index(buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> E.PrimExpr:
    place = buffer.elem_offset
    for index, stride in zip(indices, row_major_strides(buffer), strict=True):
        if isinstance(index, E.Ramp) and not isinstance(place, E.Ramp):
            base = add(place, multiply(index.base, stride))
            place = E.Ramp(base, multiply(index.stride, stride), index.lanes)
        elif isinstance(place, E.Ramp) and index.dtype == stride.dtype:
            place = replace(place, base=add(place.base, multiply(index, stride)))
        else:
            place = add(place, multiply(index, stride))
    return place
