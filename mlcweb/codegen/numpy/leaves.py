"""A function as a list of leaves: single stores, each under its own chain of loops.

What cannot be taken apart (loops with varying extents, external calls, …) is a leaf as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mlcweb.arith import conjunction, conjuncts
from mlcweb.codegen.external import called_name
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import equal, logical_not
from mlcweb.tir.buffer import Buffer, has_constant_layout
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop of constant extent."""

    var: E.Var
    low: int
    extent: int
    statement: S.For


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write. `indices` are in terms of loop variables; None where they are not known."""

    buffer: Buffer
    indices: tuple[E.PrimExpr, ...] | None
    writes: bool


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A statement and what is around it, outermost first.

    `bindings` give the block iterators in terms of loop variables, `guards` are the conditions (in
    loop variables) under which it runs, `block` is the innermost block's name. A `barrier` may
    touch any memory.
    """

    statement: S.Stmt
    loops: tuple[Loop, ...] = ()
    bindings: dict[E.Var, E.PrimExpr] = field(default_factory=dict)
    guards: tuple[E.PrimExpr, ...] = ()
    block: str = ""
    accesses: tuple[Access, ...] = ()
    barrier: bool = False

    @property
    def store(self) -> S.BufferStore | None:
        """The statement, where it is a single store."""
        return self.statement if isinstance(self.statement, S.BufferStore) else None


def leaves_of(body: S.Stmt, allocations: list[Buffer]) -> list[Leaf]:
    """The leaves in the order of the text; buffers that are allocated are added to the list."""
    leaves = _collect(Leaf(body), allocations)
    return [
        replace(leaf, accesses=tuple(_accesses(leaf)), barrier=_is_barrier(leaf)) for leaf in leaves
    ]


def _collect(place: Leaf, allocations: list[Buffer]) -> Iterator[Leaf]:
    statement = place.statement
    if isinstance(statement, S.SeqStmt):
        for part in statement.seq:
            yield from _collect(replace(place, statement=part), allocations)
    elif isinstance(statement, S.For):
        low, extent = (substitute(e, place.bindings) for e in (statement.min, statement.extent))
        if isinstance(low, E.IntImm) and isinstance(extent, E.IntImm):
            loop = Loop(statement.loop_var, low.value, extent.value, statement)
            inner = replace(place, statement=statement.body, loops=(*place.loops, loop))
            yield from _collect(inner, allocations)
        else:
            yield place
    elif isinstance(statement, S.BlockRealize):
        yield from _block(place, statement, allocations)
    elif isinstance(statement, S.IfThenElse) and not reads_memory(statement.condition):
        condition = substitute(statement.condition, place.bindings)
        yield from _collect(_guarded(place, statement.then_case, condition), allocations)
        if statement.else_case is not None:
            otherwise = logical_not(condition)
            yield from _collect(_guarded(place, statement.else_case, otherwise), allocations)
    elif isinstance(statement, S.AllocBuffer):
        allocations.append(statement.buffer)
        yield from _collect(replace(place, statement=statement.body), allocations)
    elif isinstance(statement, S.DeclBuffer) and has_constant_layout(statement.buffer):
        yield from _collect(replace(place, statement=statement.body), allocations)
    elif isinstance(statement, S.LetStmt) and _can_be_inlined(statement):
        body = substitute(statement.body, {statement.var: statement.value})
        yield from _collect(replace(place, statement=body), allocations)
    elif not isinstance(statement, S.Evaluate) or _acts(statement.value):
        yield place


def _acts(value: E.PrimExpr) -> bool:
    """Whether computing a value may do something; what is assumed is not looked at."""
    return isinstance(value, E.Call) and operator_name(value) != "assume"


def _can_be_inlined(let: S.LetStmt) -> bool:
    """Whether computing the value where it is used gives the same, and it is used by no buffer's
    layout."""
    if isinstance(let.body, S.BufferStore):
        return True
    return not reads_memory(let.value) and not any(
        let.var in variables_in(part)
        for statement in S.find_statements(let.body, S.AllocBuffer, S.DeclBuffer)
        for buffer in (statement.buffer,)
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset)
    )


def _guarded(place: Leaf, statement: S.Stmt, condition: E.PrimExpr) -> Leaf:
    parts = [c for c in conjuncts(condition) if not (isinstance(c, E.IntImm) and c.value)]
    return replace(place, statement=statement, guards=(*place.guards, *parts))


def _block(place: Leaf, realize: S.BlockRealize, allocations: list[Buffer]) -> Iterator[Leaf]:
    block = realize.block
    if block.match_buffers or any(map(reads_memory, (realize.predicate, *realize.iter_values))):
        yield place
        return
    allocations.extend(block.alloc_buffers)
    values = [substitute(value, place.bindings) for value in realize.iter_values]
    axes = {axis.var: value for axis, value in zip(block.iter_vars, values, strict=True)}
    inside = replace(
        _guarded(place, block.body, substitute(realize.predicate, place.bindings)),
        bindings={**place.bindings, **axes},
        block=block.name_hint,
    )
    if block.init is not None:
        start = conjunction(
            equal(value, axis.dom.min)
            for axis, value in zip(block.iter_vars, values, strict=True)
            if axis.iter_type == S.IterType.COMM_REDUCE and axis.dom is not None
        )
        yield from _collect(_guarded(inside, block.init, start), allocations)
    yield from _collect(inside, allocations)


def _accesses(leaf: Leaf) -> Iterator[Access]:
    store = leaf.store
    for node in find_nodes(leaf.statement, E.BufferLoad, S.BufferStore):
        is_fixed = store is not None and not any(reads_memory(index) for index in node.indices)
        indices = tuple(substitute(i, leaf.bindings) for i in node.indices) if is_fixed else None
        yield Access(node.buffer, indices, isinstance(node, S.BufferStore))


def _is_barrier(leaf: Leaf) -> bool:
    """Whether memory is reached by other ways than loads and stores of the buffers themselves."""
    return any(
        (isinstance(node, E.Var) and node.dtype == "handle")
        or (isinstance(node, E.Call) and called_name(node) is not None)
        or (isinstance(node, S.Block) and node.match_buffers)
        for node in walk(leaf.statement)
    )
