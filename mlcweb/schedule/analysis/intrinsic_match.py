"""Whether a block of a program computes what a tensor intrinsic describes, and on which regions.

The two are compared node by node, in order. Variables and buffers map one to one; an index of the
program counts from the start of the region that the block declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import Dispatcher, on
from mlcweb.tir.arithmetic import const, is_const_int, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.dtype import is_integer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, For, IterType, LetStmt, Stmt
from mlcweb.tir.substitute import substitute


class Mismatch(Exception):
    """A part of the program is not what the description has there. `statements` are the innermost
    statements around the difference, of program and description."""

    def __init__(self, reason: str, statements: tuple[Stmt, Stmt] | None) -> None:
        self.reason = reason
        self.statements = statements
        super().__init__(reason)


class DescriptionMatch(Dispatcher):
    """The comparison of a program's block with a description, whose variables are `variables`.

    `buffers` gives the buffer of the program for each one of the description, and `starts` the
    element of it that stands for element 0. Raises Mismatch.
    """

    def __init__(self, block: Block, description: Block) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        self.variables: dict[Var, PrimExpr] = {}
        self.analyzer = Analyzer()
        self.statements: list[tuple[Stmt, Stmt]] = [(block, description)]
        for iter_var in block.iter_vars:
            self._bind_domain(iter_var.var, iter_var.dom)
        self._compare_block(block, description, self._start)

    def _differ(self, reason: str) -> Mismatch:
        return Mismatch(reason, self.statements[-1] if self.statements else None)

    def _require(self, condition: bool, reason: str) -> None:
        if not condition:
            raise self._differ(reason)

    def _equal(self, ours: PrimExpr, described: PrimExpr) -> bool:
        return self.analyzer.can_prove_equal(ours, substitute(described, self.variables))

    def _bind_domain(self, var: Var, domain: Range | None) -> None:
        if domain is not None:
            self.analyzer.bind(var, domain)

    def _bind(self, ours: Var, described: Var) -> None:
        # Indices may have more bits than those of the description, which is written for int32.
        same = ours.dtype == described.dtype or {ours.dtype, described.dtype} == {"int32", "int64"}
        self._require(
            same,
            f'"{ours.name}" has the type {ours.dtype}, and "{described.name}" {described.dtype}',
        )
        self.variables[described] = ours

    def _map_buffer(self, ours: Buffer, described: Buffer) -> None:
        previous = self.buffers.get(described)
        if previous is None and ours in self.buffers.values():
            other = next(theirs for theirs, mapped in self.buffers.items() if mapped is ours)
            raise self._differ(
                f'the buffer "{ours.name}" would stand for both "{other.name}" and '
                f'"{described.name}"'
            )
        self._require(
            previous in (None, ours),
            f'the buffer "{described.name}" stands for "{previous.name if previous else ""}" '
            f'elsewhere, and for "{ours.name}" here',
        )
        for what, mine, theirs in (
            ("type", ours.dtype, described.dtype),
            ("storage scope", ours.scope(), described.scope()),
        ):
            self._require(
                mine == theirs,
                f'the buffer "{ours.name}" has the {what} "{mine}", and "{described.name}" of the '
                f'description "{theirs}"',
            )
        self.buffers[described] = ours

    def _start(self, ours: BufferRegion, described: BufferRegion) -> None:
        """A region of the block itself: it says where the description's element 0 is."""
        self._map_buffer(ours.buffer, described.buffer)
        leading = self._leading(ours.buffer, described.buffer)
        for side in ours.region[:leading]:
            self._require(
                is_const_int(side.extent, 1),
                f'the region {ours!r} has more dimensions than "{described.buffer.name}", so that '
                "the first ones must be single indices",
            )
        starts = [side.min for side in ours.region[:leading]]
        for side, counterpart in zip(ours.region[leading:], described.region, strict=True):
            self._require(
                self._equal(side.extent, counterpart.extent),
                f"the regions {ours!r} and {described!r} have different extents",
            )
            is_first = is_const_int(counterpart.min, 0)
            starts.append(side.min if is_first else subtract(side.min, counterpart.min))
        recorded = self.starts.setdefault(ours.buffer, starts)
        self._require(
            all(self.analyzer.can_prove_equal(a, b) for a, b in zip(recorded, starts, strict=True)),
            f'the regions of "{ours.buffer.name}" start at different elements',
        )

    def _leading(self, ours: Buffer, described: Buffer) -> int:
        """How many dimensions the program's buffer has before those of the description's."""
        leading = ours.ndim - described.ndim
        self._require(
            leading >= 0,
            f'the buffer "{ours.name}" has {ours.ndim} dimension(s), and "{described.name}" '
            f"{described.ndim}",
        )
        return leading

    def _same_indices(
        self, ours: Buffer, described: Buffer, mine: Sequence[PrimExpr], theirs: Sequence[PrimExpr]
    ) -> bool:
        self._map_buffer(ours, described)
        leading = self._leading(ours, described)
        zeros = [const(0, index.dtype) for index in mine]
        starts = self.starts.get(ours, zeros)
        padded = [*zeros[:leading], *(substitute(index, self.variables) for index in theirs)]
        return all(
            self.analyzer.can_prove_equal(subtract(index, start), offset)
            for index, start, offset in zip(mine, starts, padded, strict=True)
        )

    @on(BufferLoad, BufferStore)
    def _compare_access(self, ours: Any, described: Any) -> None:
        if not self._same_indices(ours.buffer, described.buffer, ours.indices, described.indices):
            names = ours.buffer.name, described.buffer.name
            mine, theirs = (", ".join(map(repr, node.indices)) for node in (ours, described))
            raise self._differ(f"{names[0]}[{mine}] and {names[1]}[{theirs}] are other elements")
        if isinstance(ours, BufferStore):
            self._compare(ours.value, described.value)

    def _compare_region(self, ours: BufferRegion, described: BufferRegion) -> None:
        leading = self._leading(ours.buffer, described.buffer)
        mine, theirs = ([s.min for s in node.region] for node in (ours, described))
        same = self._same_indices(ours.buffer, described.buffer, mine, theirs) and all(
            self._equal(a.extent, b.extent)
            for a, b in zip(ours.region[leading:], described.region, strict=True)
        )
        self._require(same, f"the regions {ours!r} and {described!r} are other elements")

    def _compare_regions(
        self,
        what: str,
        ours: Sequence[BufferRegion],
        described: Sequence[BufferRegion],
        compare: Callable[[BufferRegion, BufferRegion], None],
    ) -> None:
        mine, theirs = (", ".join(map(repr, regions)) or "nothing" for regions in (ours, described))
        self._require(
            len(ours) == len(described),
            f"the program {what} {mine}, and the description {what} {theirs}",
        )
        for region, counterpart in zip(ours, described, strict=True):
            compare(region, counterpart)

    def _compare_allocations(self, ours: Block, described: Block) -> None:
        self._require(
            len(ours.alloc_buffers) == len(described.alloc_buffers),
            f"the program allocates {len(ours.alloc_buffers)} buffer(s) there, and the description "
            f"{len(described.alloc_buffers)}",
        )
        for buffer, counterpart in zip(ours.alloc_buffers, described.alloc_buffers, strict=True):
            self._map_buffer(buffer, counterpart)
            self._compare_items("shape", buffer.shape, counterpart.shape)

    @on(MatchBufferRegion)
    def _compare_match(self, ours: MatchBufferRegion, described: MatchBufferRegion) -> None:
        self._compare_region(ours.source, described.source)
        self._map_buffer(ours.buffer, described.buffer)

    @on(For)
    def _compare_loop(self, ours: For, described: For) -> None:
        self._bind(ours.loop_var, described.loop_var)
        self._bind_domain(ours.loop_var, ours.domain)
        names = f'the loop "{ours.loop_var.name}"', f'"{described.loop_var.name}"'
        for what, mine, theirs in (
            ("starts at", ours.min, described.min),
            ("has the extent", ours.extent, described.extent),
        ):
            self._require(
                self._equal(mine, theirs), f"{names[0]} {what} {mine!r}, and {names[1]} {theirs!r}"
            )
        same = ours.kind is described.kind and ours.annotations == described.annotations
        tags = [
            loop.thread_binding and loop.thread_binding.thread_tag for loop in (ours, described)
        ]
        self._require(
            same and tags[0] == tags[1],
            f"{names[0]} and {names[1]} are not of the same kind, or have different annotations",
        )
        self._compare(ours.body, described.body)

    @on(BlockRealize)
    def _compare_realize(self, ours: BlockRealize, described: BlockRealize) -> None:
        blocks = ours.block, described.block
        kinds = [[_KINDS[iter_var.iter_type] for iter_var in b.iter_vars] for b in blocks]
        names = [[iter_var.var.name for iter_var in block.iter_vars] for block in blocks]
        mine, theirs = (
            ", ".join(f"{name} ({kind})" for name, kind in zip(*pair, strict=True)) or "none"
            for pair in zip(names, kinds, strict=True)
        )
        self._require(
            kinds[0] == kinds[1], f"the iterators are {mine}, and those of the description {theirs}"
        )
        values = zip(names[0], ours.iter_values, names[1], described.iter_values, strict=True)
        for mine, value, theirs, counterpart in values:
            self._require(
                self._equal(value, counterpart),
                f'the iterator "{mine}" is bound to {value!r}, where "{theirs}" of the description '
                f"asks for {substitute(counterpart, self.variables)!r}",
            )
        self._compare(ours.predicate, described.predicate)
        for iter_var, counterpart in zip(blocks[0].iter_vars, blocks[1].iter_vars, strict=True):
            self._bind(iter_var.var, counterpart.var)
            self._bind_domain(iter_var.var, iter_var.dom)
        inits = ours.block.init, described.block.init
        self._require(
            (inits[0] is None) == (inits[1] is None), "only one of the blocks has an init"
        )
        if inits[0] is not None:
            self._compare(*inits)
        self._compare_block(ours.block, described.block, self._compare_region)

    def _compare_block(
        self, ours: Block, described: Block, compare: Callable[[BufferRegion, BufferRegion], None]
    ) -> None:
        self._compare_regions("writes", ours.writes, described.writes, compare)
        self._compare_regions("reads", ours.reads, described.reads, compare)
        self._compare_items("match_buffers", ours.match_buffers, described.match_buffers)
        self._compare_allocations(ours, described)
        self._compare(ours.body, described.body)

    @on(Var)
    def _compare_variable(self, ours: Var, described: Var) -> None:
        mapped = self.variables.setdefault(described, ours)
        self._require(mapped is ours, f'"{ours.name}" is not what "{described.name}" stands for')

    def _compare(self, ours: Any, described: Any) -> None:
        """Compare two nodes, or two values of a field."""
        if isinstance(ours, Stmt) and isinstance(described, Stmt):
            self.statements.append((ours, described))
            self._compare_nodes(ours, described)
            self.statements.pop()
        elif isinstance(ours, Node):
            self._compare_nodes(ours, described)
        elif isinstance(ours, tuple):
            self._compare_items("items", ours, described)
        else:
            self._require(ours == described, f"{ours!r} and {described!r} differ")

    def _compare_nodes(self, ours: Node, described: Any) -> None:
        if type(ours) is not type(described):
            if isinstance(described, LetStmt):
                self.variables[described.var] = substitute(described.value, self.variables)
                self._compare(ours, described.body)
                return
            if isinstance(ours, PrimExpr) and isinstance(described, PrimExpr):
                # The program's indices are simplified by what is known there.
                if is_integer(ours.dtype) and self._equal(ours, described):
                    return
            kinds = type(ours).__name__, type(described).__name__
            whole = isinstance(ours, Stmt)
            texts = kinds if whole else (repr(ours), repr(described))
            raise self._differ(f"{texts[0]} and {texts[1]} differ")
        handler = self.table.get(type(ours))
        if handler is not None:
            handler(self, ours, described)
            return
        cls = type(ours)
        for name in cls.structural_fields:
            mine, theirs = getattr(ours, name), getattr(described, name)
            if cls.role_of_field[name] == "definition":
                self._bind(mine, theirs)
            elif cls.role_of_field[name] == "attribute":
                self._require(mine == theirs, f"{ours!r} and {described!r} differ")
            else:
                self._compare(mine, theirs)

    def _compare_items(self, what: str, ours: Sequence[Any], described: Sequence[Any]) -> None:
        self._require(
            len(ours) == len(described),
            f"there are {len(ours)} {what} in the program and {len(described)} in the description",
        )
        for item, counterpart in zip(ours, described, strict=True):
            self._compare(item, counterpart)


_KINDS = {
    IterType.DATA_PARALLEL: "spatial",
    IterType.THREAD_INDEX: "thread",
    IterType.COMM_REDUCE: "reduction",
    IterType.ORDERED: "scan",
    IterType.OPAQUE: "opaque",
}
