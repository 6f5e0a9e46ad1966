"""What the statement parser keeps while it is inside a function or a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.span import Span
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.substitute import substitute

Wrapper = Callable[[S.Stmt], S.Stmt]
"""Puts a binding around the statements that follow it."""


@dataclass(slots=True)
class FunctionFrame:
    """A function being read; its allocations go to the root block. Unless it is `checked`, it may
    use buffers that nothing allocates."""

    name: str
    checked: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)
    params: list[E.Var] = field(default_factory=list)
    buffer_map: dict[E.Var, Buffer] = field(default_factory=dict)
    alloc_buffers: list[Buffer] = field(default_factory=list)
    extents: dict[str, E.Var] = field(default_factory=dict)
    """Variables that the shapes of parameters introduce; some become parameters themselves."""


@dataclass(slots=True)
class BlockContents:
    """A block being read."""

    name: str
    span: Span | None
    axes: list[S.IterVar] = field(default_factory=list)
    values: list[E.PrimExpr] = field(default_factory=list)
    where: E.PrimExpr | None = None
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    alloc_buffers: list[Buffer] = field(default_factory=list)
    match_buffers: list[MatchBufferRegion] = field(default_factory=list)
    init: S.Stmt | None = None
    unbound: set[E.Var] = field(default_factory=set)
    """The axes of an older block that no `T.bind` has bound yet."""
    names: dict[E.Var, E.PrimExpr] = field(default_factory=dict)
    """What names of the body stand for; regions, which are outside of it, have the values."""

    def realize(
        self, body: S.Stmt, regions: Callable[[S.Block], tuple[tuple[BufferRegion, ...], ...]]
    ) -> S.BlockRealize:
        """The finished block. `regions` finds what it reads and writes where it does not say."""
        reads, writes = self._declared(self.reads), self._declared(self.writes)
        block = S.Block(
            tuple(self.axes),
            reads or (),
            writes or (),
            self.name,
            body,
            self.init,
            tuple(self.alloc_buffers),
            tuple(self.match_buffers),
            self.annotations,
            span=self.span,
        )
        if reads is None or writes is None:
            inferred_reads, inferred_writes = regions(block)
            block = replace(
                block,
                reads=inferred_reads if reads is None else reads,
                writes=inferred_writes if writes is None else writes,
            )
        predicate = arithmetic.const(True) if self.where is None else self.where
        return S.BlockRealize(tuple(self.values), predicate, block, span=self.span)

    def _declared(
        self, regions: tuple[BufferRegion, ...] | None
    ) -> tuple[BufferRegion, ...] | None:
        return regions and tuple(substitute(region, self.names) for region in regions)
