"""The pass `tvm.tir.transform.UnrollLoop`: writes out loops, the marked ones and small ones.

How small is what the option "tir.UnrollLoop" says, or a "pragma_auto_unroll_max_step" around one:
how many statements the copies may have together. By default only marked loops are written out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlcweb.ir import node
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.options import UNROLL_LOOP, configured
from mlcweb.lower.statement_simplifier import in_sequence, resequenced
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, is_const_int
from mlcweb.tir.substitute import substitute, variables_in


@dataclass(frozen=True, slots=True)
class UnrollLoopConfig:
    """Which loops are written out: marked ones; serial ones around nothing but such loops whose
    copies have up to `auto_max_step` statements, or that have up to `auto_max_extent` iterations;
    and, with `unroll_local_access`, serial ones that index "local" memory, which can then be in
    registers.

    Without `explicit_unroll` loops are marked, and stay."""

    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_extent: int = 0
    explicit_unroll: bool = True
    unroll_local_access: bool = False


_PRAGMAS = {
    "pragma_auto_unroll_max_step": "auto_max_step",
    "pragma_unroll_explicit": "explicit_unroll",
}


class UnrollLoop(Mutator):
    """`steps` counts the statements below, `serial` and `depth` how deep loops of each kind are."""

    def __init__(self) -> None:
        self.config = configured(UNROLL_LOOP, UnrollLoopConfig)
        self.steps = self.serial = self.depth = 0

    @on(S.BufferStore, S.Evaluate)
    def statement(self, statement: Any) -> Any:
        self.steps += 1
        return statement

    @on(S.AttrStmt)
    def pragma(self, statement: S.AttrStmt) -> S.Stmt:
        field = _PRAGMAS.get(statement.attr_key)
        if field is None or not isinstance(statement.value, E.IntImm):
            return self.rewrite_children(statement)
        around = self.config
        self.config = replace(around, **{field: statement.value.value})
        body = self.rewrite(statement.body)
        self.config = around
        return body

    @on(S.SeqStmt)
    def sequence(self, sequence: S.SeqStmt) -> S.Stmt:
        before = self.steps, self.serial, self.depth
        counts = [before]
        parts = []
        for part in sequence.seq:
            self.steps = self.serial = self.depth = 0
            parts.append(self.rewrite(part))
            counts.append((self.steps, self.serial, self.depth))
        steps, serial, depth = zip(*counts, strict=True)
        self.steps, self.serial, self.depth = sum(steps), max(serial), max(depth)
        return resequenced(sequence, parts)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        new = self.rewrite_children(loop)
        marked = new.kind == S.ForKind.UNROLLED or self.indexes_local(new)
        count = new.extent.value if isinstance(new.extent, E.IntImm) else None
        if count is None:
            self.serial += 1
            return new
        unrolls = marked or self.is_small(new)
        if unrolls:
            self.steps *= count
            self.depth += 1
        else:
            self.serial += 1
        if not self.is_single(new) and not (unrolls and self.config.explicit_unroll):
            return node.replace(new, kind=S.ForKind.UNROLLED) if unrolls and not marked else new
        numbers = (add(new.min, const(n, new.loop_var.dtype)) for n in range(count))
        return in_sequence(substitute(new.body, {new.loop_var: number}) for number in numbers)

    def is_single(self, loop: S.For) -> bool:
        """Whether a loop of one iteration is written out in any case."""
        return (
            self.config.auto_max_extent == 1
            and loop.kind == S.ForKind.SERIAL
            and is_const_int(loop.extent, 1)
        )

    def indexes_local(self, loop: S.For) -> bool:
        if loop.kind != S.ForKind.SERIAL or not self.config.unroll_local_access:
            return False
        return any(
            isinstance(part, (E.BufferLoad, S.BufferStore))
            and part.buffer.scope().startswith("local")
            and loop.loop_var in variables_in(*part.indices)
            for part in walk(loop.body)
        )

    def is_small(self, loop: S.For) -> bool:
        assert isinstance(loop.extent, E.IntImm)
        extent, config = loop.extent.value, self.config
        if loop.kind != S.ForKind.SERIAL or self.serial or self.depth > config.auto_max_depth:
            return False
        return self.steps * extent <= config.auto_max_step or extent <= config.auto_max_extent
