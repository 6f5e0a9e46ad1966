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

    def realize(
        self, body: S.Stmt, regions: Callable[[S.Block], tuple[tuple[BufferRegion, ...], ...]]
    ) -> S.BlockRealize:
        """The finished block. `regions` finds what it reads and writes where it does not say."""
        block = S.Block(
            tuple(self.axes),
            self.reads or (),
            self.writes or (),
            self.name,
            body,
            self.init,
            tuple(self.alloc_buffers),
            tuple(self.match_buffers),
            self.annotations,
            span=self.span,
        )
        if self.reads is None or self.writes is None:
            found_reads, found_writes = regions(block)
            block = replace(
                block,
                reads=found_reads if self.reads is None else self.reads,
                writes=found_writes if self.writes is None else self.writes,
            )
        predicate = arithmetic.const(True) if self.where is None else self.where
        return S.BlockRealize(tuple(self.values), predicate, block, span=self.span)
