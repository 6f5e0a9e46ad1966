"""From tensors to a PrimFunc: one block per operation, in the order of their dependences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.analysis import block_access_regions
from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.names import unique_name
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.te.errors import ExpressionError
from mlcweb.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp, domain
from mlcweb.te.tensor import ProducerLoad, Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, Range, decl_buffer, full_region
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.reduction import Reduce
from mlcweb.tir.substitute import substitute
from mlcweb.tir.wide_indices import WIDE, with_wide_indices


def create_prim_func(
    ops: Sequence[Tensor | Var], index_dtype_override: str | None = None
) -> PrimFunc:
    """A function that computes tensors.

    Args:
        ops: its parameters in order: placeholders and symbolic scalars, which are read, and
            computed tensors, which are written. What is computed on the way gets memory inside.
        index_dtype_override: "int64" gives all loop variables and extents that dtype.

    Returns: a PrimFunc with the attributes `global_symbol` "main" and `tir.noalias`.

    Raises: DiagnosticError where a placeholder is needed that is no parameter.
    """
    if index_dtype_override not in (None, "int32", WIDE):
        raise ExpressionError(
            f'index_dtype_override is "int64" or None, not {index_dtype_override!r}'
        )
    function = _Builder(ops).function()
    return with_wide_indices(function) if index_dtype_override == WIDE else function


class _Builder:
    """The buffers of tensors and the names of blocks, while a function is put together."""

    def __init__(self, parameters: Sequence[Tensor | Var]) -> None:
        for parameter in parameters:
            if not isinstance(parameter, (Tensor, Var)):
                raise ExpressionError(
                    "create_prim_func takes tensors and symbolic scalars, not "
                    f"{type(parameter).__name__}"
                )
        self.parameters = parameters
        self.buffers: dict[tuple[Operation, int], Buffer] = {}
        self.allocations: list[Buffer] = []
        self.names: set[str] = set()
        self.analyzer = Analyzer()

    def function(self) -> PrimFunc:
        operations = _in_order([p.op for p in self.parameters if isinstance(p, Tensor)])
        for operation in operations:
            if not isinstance(operation, (PlaceholderOp, ComputeOp, ExternOp)):
                raise ExpressionError(
                    f'Unsupported Operation: {type(operation).__name__}. "{operation.name}" is no '
                    "placeholder, compute or extern; write its loops with @T.prim_func"
                )
        params: list[Var] = []
        buffer_map: dict[Var, Buffer] = {}
        for parameter in self.parameters:
            if isinstance(parameter, Var):
                params.append(parameter)
                continue
            buffer = self._parameter_buffer(parameter, operations)
            handle = Var(f"{buffer.name}_handle", "handle")
            params.append(handle)
            buffer_map[handle] = buffer
        statements = [self._statement(op) for op in operations if not isinstance(op, PlaceholderOp)]
        if not statements:
            raise ExpressionError("Only placeholders are given; there is nothing to compute")
        attrs: dict[str, Any] = {"global_symbol": "main", "tir.noalias": True}
        layout_free = self._layout_free(operations, list(buffer_map.values()))
        if layout_free:
            attrs["layout_free_buffers"] = layout_free
        body = self._root(S.sequence(*statements))
        return PrimFunc(tuple(params), body, None, buffer_map, attrs=attrs)

    def _root(self, body: S.Stmt) -> S.Stmt:
        if not self.allocations and isinstance(body, S.BlockRealize) and not body.iter_values:
            return body
        root = S.Block((), (), (), "root", body, alloc_buffers=tuple(self.allocations))
        return S.BlockRealize((), arithmetic.const(True), root)

    def _parameter_buffer(self, tensor: Tensor, operations: list[Operation]) -> Buffer:
        key = (tensor.op, tensor.value_index)
        if key in self.buffers:
            raise ExpressionError(f'The tensor "{tensor.name}" is given twice as a parameter')
        if isinstance(tensor.op, ExternOp):
            buffer = tensor.op.output_buffers[tensor.value_index]
        else:
            offset_factor = 1 if _goes_to_extern(tensor, operations) else 0
            buffer = decl_buffer(
                tensor.shape, tensor.dtype, _buffer_name(tensor), offset_factor=offset_factor
            )
        self.buffers[key] = buffer
        return buffer

    def _buffer(self, tensor: Tensor) -> Buffer:
        key = (tensor.op, tensor.value_index)
        if key in self.buffers:
            return self.buffers[key]
        if isinstance(tensor.op, PlaceholderOp):
            raise ExpressionError(
                f'The placeholder "{tensor.name}" is read, but is no parameter; pass it to '
                "create_prim_func, before the tensors that depend on it"
            )
        return self._allocated(key, decl_buffer(tensor.shape, tensor.dtype, _buffer_name(tensor)))

    def _allocated(self, key: tuple[Operation, int], buffer: Buffer) -> Buffer:
        self.buffers[key] = buffer
        self.allocations.append(buffer)
        return buffer

    def _block_name(self, name: str) -> str:
        return unique_name(name.replace(".", "_"), self.names)

    def _statement(self, operation: Operation) -> S.Stmt:
        if isinstance(operation, ExternOp):
            return self._extern(operation)
        assert isinstance(operation, ComputeOp)
        outputs = [self._buffer(operation.output(i)) for i in range(operation.num_outputs)]
        if any(_is_empty(axis) for axis in operation.reduce_axis):
            # A block that never runs would not even initialise its output.
            operation = _initial_values(operation)
        axes = (*operation.axis, *operation.reduce_axis)
        loops = [Var(axis.var.name, axis.var.dtype) for axis in axes]
        reduction = operation.body[0]
        if isinstance(reduction, Reduce) and _is_ragged(axes):
            axes = operation.axis
            loops = loops[: len(axes)]
            blocks = [self._nested(operation, loops, tuple(outputs), reduction)]
        elif isinstance(reduction, Reduce):
            values = reduction.source
            blocks = [self._block(operation, axes, loops, tuple(outputs), values, reduction)]
        else:
            blocks = [
                self._block(operation, axes, loops, (buffer,), (value,))
                for buffer, value in zip(outputs, operation.body, strict=True)
            ]
        body = S.sequence(*blocks)
        return _in_loops(body, [axis.dom for axis in axes], loops)

    def _nested(
        self,
        operation: ComputeOp,
        loops: Sequence[Var],
        outputs: tuple[Buffer, ...],
        reduction: Reduce,
    ) -> S.Stmt:
        """A reduction over axes whose extents depend on other axes, or are read from tensors: a
        block that stores the initial values, and holds the loops over them, which may be empty."""
        outer = _iterators(operation.axis)
        renamed = {axis.var: i.var for axis, i in zip(operation.axis, outer, strict=True)}
        axes = _outermost_first(operation.reduce_axis)
        inner_loops = [Var(axis.var.name, axis.var.dtype) for axis in axes]
        outside = renamed | {axis.var: loop for axis, loop in zip(axes, inner_loops, strict=True)}
        domains = [
            Range.from_min_extent(*(self._value(bound, outside) for bound in (dom.min, dom.extent)))
            for dom in map(domain, axes)
        ]
        inner = [
            replace(iterator, dom=dom)
            for iterator, dom in zip(_iterators(axes), domains, strict=True)
        ]
        place = tuple(iterator.var for iterator in outer)
        first = reduction.init or reduction.combiner.identity_element
        stores = [
            S.BufferStore(buffer, self._value(value, renamed), place)
            for buffer, value in zip(outputs, first, strict=True)
        ]
        renamed |= {axis.var: i.var for axis, i in zip(axes, inner, strict=True)}
        values = tuple(self._value(value, renamed) for value in reduction.source)
        condition = self._value(reduction.condition, renamed)
        update = _update(reduction, outputs, place, values, condition)
        block = self._realized(f"{operation.name}_update", inner, update, inner_loops)
        body = S.sequence(*stores, _in_loops(block, domains, inner_loops))
        return self._realized(operation.name, outer, body, loops, self._annotations(operation))

    def _realized(
        self,
        name: str,
        iterators: Sequence[S.IterVar],
        body: S.Stmt,
        loops: Sequence[Var],
        attrs: dict[str, Any] | None = None,
    ) -> S.Stmt:
        block = S.Block(
            tuple(iterators), (), (), self._block_name(name), body, annotations=attrs or {}
        )
        regions = block_access_regions(block)
        block = replace(block, reads=regions.reads, writes=regions.writes)
        return S.BlockRealize(tuple(loops), arithmetic.const(True), block)

    def _block(
        self,
        operation: ComputeOp,
        axes: Sequence[S.IterVar],
        loops: Sequence[Var],
        outputs: tuple[Buffer, ...],
        values: tuple[PrimExpr, ...],
        reduction: Reduce | None = None,
    ) -> S.Stmt:
        """A block that stores `values`, or combines them into the outputs by `reduction`."""
        iterators = _iterators(axes)
        renamed = {axis.var: iterator.var for axis, iterator in zip(axes, iterators, strict=True)}
        place = tuple(renamed[axis.var] for axis in operation.axis)
        values = tuple(self._value(value, renamed) for value in values)
        init = None
        if reduction is None:
            body: S.Stmt = S.BufferStore(outputs[0], values[0], place)
            name = outputs[0].name
        else:
            condition = self._value(reduction.condition, renamed)
            body = _update(reduction, outputs, place, values, condition)
            first = reduction.init or reduction.combiner.identity_element
            first = tuple(self._value(value, renamed) for value in first)
            stores = (S.BufferStore(b, v, place) for b, v in zip(outputs, first, strict=True))
            init = S.sequence(*stores)
            name = operation.name
        attrs = self._annotations(operation)
        block = S.Block(iterators, (), (), self._block_name(name), body, init, annotations=attrs)
        regions = block_access_regions(block)
        block = replace(block, reads=regions.reads, writes=regions.writes)
        if not axes:
            # A block without iterators would be taken for the root block.
            unit = S.IterVar(Range.from_min_extent(0, 1), Var("vi"))
            block = replace(block, iter_vars=(unit,))
            return S.BlockRealize((arithmetic.const(0),), arithmetic.const(True), block)
        return S.BlockRealize(tuple(loops), arithmetic.const(True), block)

    def _extern(self, operation: ExternOp) -> S.Stmt:
        declared = {}
        for tensor, buffer in zip(operation.inputs, operation.input_buffers, strict=True):
            declared[buffer] = self._buffer(tensor)
        for index, buffer in enumerate(operation.output_buffers):
            key = (operation, index)
            if key not in self.buffers:
                # What is allocated here begins at its beginning.
                self._allocated(key, decl_buffer(buffer.shape, buffer.dtype, buffer.name))
            declared[buffer] = self.buffers[key]
        variables: dict[Var, PrimExpr] = {}
        for old, new in declared.items():
            variables[old.data] = new.data
            if isinstance(old.elem_offset, Var):
                variables[old.elem_offset] = new.elem_offset
        body = substitute(operation.body, variables, declared)
        reads = tuple(full_region(self._buffer(tensor)) for tensor in operation.input_tensors)
        writes = tuple(
            full_region(self.buffers[(operation, index)]) for index in range(operation.num_outputs)
        )
        name, attrs = self._block_name(operation.name), self._annotations(operation)
        block = S.Block((), reads, writes, name, body, annotations=attrs)
        return S.BlockRealize((), arithmetic.const(True), block)

    def _value(self, value: PrimExpr, renamed: dict[Var, Var]) -> PrimExpr:
        loads = _ToBuffers(self).rewrite(value)
        return self.analyzer.simplify(substitute(loads, renamed))

    def _layout_free(self, operations: list[Operation], parameters: list[Buffer]) -> list[int]:
        """Positions of the buffers whose layout an operation declares to be free to change."""
        positions: list[int] = []
        for operation in operations:
            for tensor in operation.attrs.get("layout_free_placeholders", ()):
                buffer = self.buffers.get((tensor.op, tensor.value_index))
                if buffer in parameters:
                    positions.append(parameters.index(buffer))
        return sorted(set(positions))

    def _annotations(self, operation: Operation) -> dict[str, Any]:
        """The attributes of an operation that stay with its block: that the layout of parameters is
        free is said of the function."""
        attrs = dict(operation.attrs)
        tensors = attrs.pop("layout_free_placeholders", ())
        buffers = [self.buffers.get((tensor.op, tensor.value_index)) for tensor in tensors]
        own = [buffer for buffer in buffers if buffer in self.allocations]
        return {**attrs, "layout_free_placeholders": own} if own else attrs


class _ToBuffers(Mutator):
    """Loads of tensors become loads of their buffers."""

    def __init__(self, builder: _Builder) -> None:
        self.builder = builder

    @on(ProducerLoad)
    def load(self, load: ProducerLoad) -> Node:
        indices = tuple(self.rewrite(index) for index in load.indices)
        return BufferLoad(self.builder._buffer(load.producer), indices)


def _update(
    reduction: Reduce,
    outputs: tuple[Buffer, ...],
    place: tuple[PrimExpr, ...],
    values: tuple[PrimExpr, ...],
    condition: PrimExpr,
) -> S.Stmt:
    """Combines `values` with what is there: where the condition does not hold, the identity.

    Of several outputs, all are computed before one is written.
    """
    combiner = reduction.combiner
    if not arithmetic.is_const_int(condition, 1):
        identity = combiner.identity_element
        values = tuple(
            if_then_else(condition, value, nothing)
            for value, nothing in zip(values, identity, strict=True)
        )
    now: dict[Var, PrimExpr] = {
        var: BufferLoad(buffer, place) for var, buffer in zip(combiner.lhs, outputs, strict=True)
    }
    results = [
        substitute(result, {**now, **dict(zip(combiner.rhs, values, strict=True))})
        for result in combiner.result
    ]
    if len(results) == 1:
        return S.BufferStore(outputs[0], results[0], place)
    temporaries = [
        Var(f"v_{buffer.name}", value.dtype) for buffer, value in zip(outputs, results, strict=True)
    ]
    body = S.sequence(
        *(S.BufferStore(b, var, place) for b, var in zip(outputs, temporaries, strict=True))
    )
    for var, value in zip(reversed(temporaries), reversed(results), strict=True):
        body = S.LetStmt(var, value, body)
    return body


def _iterators(axes: Sequence[S.IterVar]) -> tuple[S.IterVar, ...]:
    """The iterators of a block over axes."""
    return tuple(
        S.IterVar(axis.dom, Var(f"v_{axis.var.name}", axis.var.dtype), axis.iter_type)
        for axis in axes
    )


def _in_loops(body: S.Stmt, domains: Sequence[Range | None], loops: Sequence[Var]) -> S.Stmt:
    for dom, loop in zip(reversed(domains), reversed(loops), strict=True):
        assert dom is not None
        body = S.For(loop, dom.min, dom.extent, S.ForKind.SERIAL, body)
    return body


def _is_ragged(axes: Sequence[S.IterVar]) -> bool:
    """Whether the bounds of an axis depend on another one, or are read from a tensor."""
    variables = {axis.var for axis in axes}
    return any(
        isinstance(node, ProducerLoad) or node in variables
        for axis in axes
        for node in walk(domain(axis))
    )


def _variables(axis: S.IterVar) -> set[Var]:
    """What the bounds of an axis depend on."""
    return set(find_nodes(domain(axis), Var))


def _outermost_first(axes: Sequence[S.IterVar]) -> list[S.IterVar]:
    """The axes in an order in which each comes after those that its bounds depend on."""
    ordered: list[S.IterVar] = []
    while len(ordered) < len(axes):
        rest = [axis for axis in axes if axis not in ordered]
        inside = {axis.var for axis in rest}
        ordered.append(next(axis for axis in rest if _variables(axis).isdisjoint(inside)))
    return ordered


def _is_empty(axis: S.IterVar) -> bool:
    return axis.dom is not None and arithmetic.is_const_int(axis.dom.extent, 0)


def _initial_values(operation: ComputeOp) -> ComputeOp:
    """The reduction of nothing."""
    reduction = operation.body[0]
    assert isinstance(reduction, Reduce)
    return replace(operation, body=reduction.init or reduction.combiner.identity_element)


def _in_order(outputs: Sequence[Operation]) -> list[Operation]:
    """The operations that `outputs` need and they themselves, each after those it reads."""
    ordered: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(outputs)]
    while stack:
        operation, inputs_done = stack.pop()
        if operation in ordered:
            continue
        if inputs_done:
            ordered[operation] = None
            continue
        stack.append((operation, True))
        stack.extend((tensor.op, False) for tensor in reversed(operation.input_tensors))
    return list(ordered)


def _goes_to_extern(tensor: Tensor, operations: list[Operation]) -> bool:
    return any(
        isinstance(op, ExternOp)
        and any(t.op is tensor.op and t.value_index == tensor.value_index for t in op.inputs)
        for op in operations
    )


def _buffer_name(tensor: Tensor) -> str:
    return tensor.name.replace(".", "_")
