"""Blocks that are new in a program: copies of buffers, and parts of other blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.schedule.nests import loop_nest
from mlcweb.schedule.regions import and_unproved
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import BufferLoad, PointerType, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, IterVar, Stmt
from mlcweb.tir.substitute import substitute

Access = tuple[Buffer, Sequence[PrimExpr]]
"""An element of a buffer, by its indices."""


def stage(
    name: str,
    loops: Mapping[Var, PrimExpr],
    iterators: Iterable[tuple[IterVar, PrimExpr]],
    body: Stmt,
    predicate: PrimExpr | None = None,
) -> Stmt:
    """A block in loops of its own, which are given with their extents. Each of its iterators comes
    with what it is bound to; it declares what its body accesses."""
    bound = dict(iterators)
    block = with_access_regions(Block(tuple(bound), (), (), name, body))
    predicate = const(True) if predicate is None else predicate
    realize = BlockRealize(tuple(bound.values()), predicate, block)
    return loop_nest(list(loops), list(loops.values()), realize)


def part_of_block(
    block: Block, kept: Sequence[IterVar], name: str, body: Stmt, suffix: str = ""
) -> Block:
    """A block of its own for a part of what another one does, with iterators like those that are
    `kept`. It declares what the other writes, and what its body reads."""
    fresh = {i.var: Var(i.var.name + suffix, i.var.dtype) for i in kept}
    iter_vars = tuple(replace(i, var=fresh[i.var]) for i in kept)
    writes = tuple(substitute(region, fresh) for region in block.writes)
    made = Block(iter_vars, (), (), name, substitute(body, fresh), span=block.span)
    return replace(with_access_regions(made), writes=writes)


def copy_of(
    buffer: Buffer, storage_scope: str, shape: Sequence[PrimExpr], name: str = ""
) -> Buffer:
    """A buffer of a shape in a storage scope, named after the one that it is a copy of."""
    name = name or f"{buffer.name}_{storage_scope}"
    return replace(
        buffer,
        data=Var(name, "handle", PointerType(buffer.dtype, storage_scope)),
        shape=tuple(shape),
        strides=(),
        elem_offset=const(0, shape[0].dtype if shape else "int64"),
        name=name,
    )


def copying_store(original: Access, copy: Access, reads: bool) -> BufferStore:
    """A store of an element of a buffer to its copy (`reads`), or back."""
    (source, at), (target, to) = (original, copy) if reads else (copy, original)
    return BufferStore(target, BufferLoad(source, tuple(at)), tuple(to))


def copy_stage(
    buffer: Buffer,
    cache: Buffer,
    region: Sequence[Range],
    origin: Sequence[PrimExpr],
    analyzer: Analyzer,
    reads: bool,
) -> Stmt:
    """Loops around a block that copies a region from the buffer to the cache (`reads`), or back.

    Element 0 of the cache is the element `origin` of the buffer.
    """
    loops: dict[Var, PrimExpr] = {}
    iterators: dict[IterVar, PrimExpr] = {}
    outside: list[PrimExpr] = []
    inside: list[PrimExpr] = []
    for n, (dimension, start) in enumerate(zip(region, origin, strict=True)):
        loop_var, iterator = (Var(f"{name}{n}", dimension.extent.dtype) for name in ("ax", "v"))
        loops[loop_var] = dimension.extent
        analyzer.bind(loop_var, Range(const(0, loop_var.dtype), dimension.extent))
        element = dimension.min + loop_var
        domain = Range(const(0, iterator.dtype), cache.shape[n])
        iterators[IterVar(domain, iterator)] = element if is_const_int(start, 0) else loop_var
        outside.append(start + iterator)
        inside += [element >= 0, element < buffer.shape[n]]
    own = [iter_var.var for iter_var in iterators]
    store = copying_store((buffer, outside), (cache, own), reads)
    predicate = analyzer.simplify(and_unproved(const(True), inside, analyzer))
    return stage(cache.name, loops, iterators.items(), store, predicate)
