"""Statements as Python text: loops as loops, blocks with their checks, accesses checked.

Blocks run as TensorIR defines them: the predicate first, then the iterators take their values, then
`init` where all reduction iterators are at the start of their domains, then the body. Lowered
programs have no blocks and take the same path, so that the two can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlcweb.codegen.interpreter.expressions import ExpressionText
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import Visitor, on, walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, MatchBufferRegion, has_constant_layout
from mlcweb.tir.function import PrimFunc

MAX_NESTING = 16
"""Python nests at most 20 loops in one function; deeper ones go on in a function of their own."""


class PythonSource(Visitor):
    """Writes the statements of a function. `namespace` has what the text may refer to, `allocator`
    names the function that makes memory, `constants` are arrays that the text refers to as well."""

    def __init__(self, namespace: Mapping[str, Any], allocator: str = "allocate") -> None:
        self.namespace = namespace
        self.constants: dict[str, Any] = {}
        self.expressions = ExpressionText(namespace)
        self.allocator = allocator
        self.lines: list[str] = []
        self.depth = 0
        self.nested = 0
        self.calls = ""
        """What stands before calls of functions that the text defines: "yield from " where these
        are generators."""
        self.defined: set[Node] = set()
        self.aliases: dict[E.PrimExpr, list[Buffer]] = defaultdict(list)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        self.line(header)
        self.depth += 1
        before = len(self.lines)
        yield
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.line("pass")
        self.depth -= 1

    @contextmanager
    def looped(self, header: str) -> Iterator[None]:
        """A loop around what is written inside."""
        if self.nested < MAX_NESTING:
            self.nested += 1
            with self.indented(header):
                yield
            self.nested -= 1
            return
        outer, defined = self.nested, set(self.defined)
        self.nested = 0
        name = self.expressions.names.fresh("nest")
        with self.indented(f"def {name}():"):
            if self.calls:
                self.line("yield from ()")
            with self.looped(header):
                yield
        self.line(f"{self.calls}{name}()")
        # What is defined in there is not known out here.
        self.nested, self.defined = outer, defined

    def text(self, expression: E.PrimExpr) -> str:
        return self.expressions.text(expression)

    def name(self, node: E.Var | Buffer) -> str:
        return self.expressions.names[node]

    def function(self, func: PrimFunc, name: str) -> str:
        """The text of a whole function."""
        self.collect_aliases(func)
        names = [self.name(func.buffer_map.get(param) or param) for param in func.params]
        with self.indented(f"def {name}({', '.join(names)}):"):
            for param in func.params:
                if dtypes.is_float(param.dtype):
                    self.line(f"{self.name(param)} = {param.dtype}({self.name(param)})")
            for buffer in func.parameter_buffers:
                self.bind_dimensions(buffer)
                self.define_symbol(buffer.elem_offset, "0")
            for buffer in func.parameter_buffers:
                self.own(buffer)
            self.body(func)
        return "\n".join(self.lines) + "\n"

    def body(self, func: PrimFunc) -> None:
        self.visit(func.body)

    def collect_aliases(self, func: PrimFunc) -> None:
        """Find the buffers that are laid over memory which another buffer owns; those whose layout
        is not constant are made where they are declared."""
        seen: set[Buffer] = set()
        for item in walk(func.body):
            if isinstance(item, S.DeclBuffer) and not has_constant_layout(item.buffer):
                seen.add(item.buffer)
            if isinstance(item, (E.BufferLoad, S.BufferStore)) and item.buffer not in seen:
                seen.add(item.buffer)
                self.aliases[item.buffer.data].append(item.buffer)

    def bind_dimensions(self, buffer: Buffer) -> None:
        """Define the symbolic sizes and strides of a buffer from the array that came in."""
        name = self.name(buffer)
        for symbols, values in (
            (buffer.shape, f"{name}.shape"),
            (buffer.strides, f"strides_in_elements({name})"),
        ):
            for axis, symbol in enumerate(symbols):
                self.define_symbol(symbol, f"{values}[{axis}]")

    def define_symbol(self, symbol: E.PrimExpr, value: str) -> None:
        """Give a symbol its value, where it is one and has none."""
        if isinstance(symbol, E.Var) and symbol not in self.defined:
            self.defined.add(symbol)
            self.line(f"{self.name(symbol)} = {value}")

    def own(self, owner: Buffer) -> None:
        """Define the views of the memory of `owner` that the function uses."""
        self.expressions.owners[owner.data] = owner
        for alias in self.aliases[owner.data]:
            if alias is not owner and alias not in self.defined:
                self.defined.add(alias)
                self.lay(alias, owner)

    def lay(self, alias: Buffer, owner: Buffer) -> None:
        """Define a view of the memory of `owner`."""
        shape = self.tuple_of(alias.shape)
        strides = self.tuple_of(alias.strides) if alias.strides else "None"
        arguments = f'{shape}, "{alias.dtype}", {strides}, {self.text(alias.elem_offset)}'
        self.line(f"{self.name(alias)} = view({self.name(owner)}, {arguments})")

    @on(S.DeclBuffer)
    def declaration(self, statement: S.DeclBuffer) -> None:
        buffer = statement.buffer
        if not has_constant_layout(buffer):
            self.lay(buffer, self.expressions.owners[buffer.data])
        self.visit(statement.body)

    def tuple_of(self, expressions: tuple[E.PrimExpr, ...]) -> str:
        texts = [self.text(expression) for expression in expressions]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def allocate(self, buffer: Buffer) -> None:
        self.line(
            f"{self.name(buffer)} = {self.allocator}({self.tuple_of(buffer.shape)}, "
            f'"{buffer.dtype}")'
        )
        self.own(buffer)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        low, extent = self.text(loop.min), self.text(loop.extent)
        low_range = self.expressions.ranges.interval(loop.min)
        extent_range = self.expressions.ranges.interval(loop.extent)
        self.expressions.ranges.bind(
            loop.loop_var, low_range[0], low_range[1] + max(extent_range[1], 1) - 1
        )
        bounds = extent if low == "0" else f"{low}, {low} + {extent}"
        with self.looped(f"for {self.name(loop.loop_var)} in range({bounds}):"):
            self.visit(loop.body)

    @on(S.While)
    def while_loop(self, loop: S.While) -> None:
        with self.looped(f"while {self.text(loop.condition)}:"):
            self.visit(loop.body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        with self.indented(f"if {self.text(branch.condition)}:"):
            self.visit(branch.then_case)
        if branch.else_case is not None:
            with self.indented("else:"):
                self.visit(branch.else_case)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> None:
        self.define(let.var, let.value)
        self.visit(let.body)

    def define(self, var: E.Var, value: E.PrimExpr) -> None:
        if dtypes.is_integer(var.dtype):
            self.expressions.ranges.bind(var, *self.expressions.ranges.interval(value))
        self.line(f"{self.name(var)} = {self.text(value)}")

    @on(S.AssertStmt)
    def assertion(self, statement: S.AssertStmt) -> None:
        condition, message = self.text(statement.condition), self.text(statement.message)
        self.line(f"check_assertion({condition}, {message}, {statement.error_kind!r})")
        self.visit(statement.body)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if not S.is_launch(statement):
            self.visit(statement.body)
            return
        var = statement.node.var
        self.expressions.ranges.bind(
            var, 0, self.expressions.ranges.interval(statement.value)[1] - 1
        )
        with self.looped(f"for {self.name(var)} in range({self.text(statement.value)}):"):
            self.visit(statement.body)

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> None:
        if isinstance(statement.value, E.Call):
            self.line(self.expressions.effect(statement.value))

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        value = self.text(store.value)
        place = self.expressions.access("Writing", store.buffer, store.indices, store.span)
        self.line(f"{place} = {value}")

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        self.allocate(statement.buffer)
        self.visit(statement.body)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> None:
        certain = isinstance(realize.predicate, E.IntImm) and realize.predicate.value
        if certain:
            self.block(realize)
            return
        with self.indented(f"if {self.text(realize.predicate)}:"):
            self.block(realize)

    def block(self, realize: S.BlockRealize) -> None:
        block, outer = realize.block, self.expressions.block
        self.expressions.block = block.name_hint
        for axis, value in realize.iterators:
            self.axis(axis, value, block.name_hint)
        for buffer in block.alloc_buffers:
            self.allocate(buffer)
        for match in block.match_buffers:
            self.match(match)
        if block.init is not None:
            self.init(block)
        self.visit(block.body)
        self.expressions.block = outer

    def axis(self, axis: S.IterVar, value: E.PrimExpr, block: str) -> None:
        text, domain, ranges = self.text(value), axis.dom, self.expressions.ranges
        assert domain is not None
        low, extent = ranges.interval(domain.min), ranges.interval(domain.extent)
        inside = ranges.interval(value)
        constant = low[0] == low[1] and extent[0] == extent[1]
        if not constant or inside[0] < low[0] or inside[1] >= low[0] + extent[0]:
            text = (
                f"check_axis({text}, {self.text(domain.min)}, {self.text(domain.extent)}, "
                f'"{axis.var.name}", "{block}")'
            )
        ranges.bind(axis.var, low[0], low[1] + max(extent[1], 1) - 1)
        self.line(f"{self.name(axis.var)} = {text}")

    def init(self, block: S.Block) -> None:
        reductions = [a for a in block.iter_vars if a.iter_type == S.IterType.COMM_REDUCE]
        conditions = [f"{self.name(a.var)} == {self.text(a.dom.min)}" for a in reductions if a.dom]
        assert block.init is not None
        if not conditions:
            self.visit(block.init)
            return
        with self.indented(f"if {' and '.join(conditions)}:"):
            self.visit(block.init)

    def match(self, match: MatchBufferRegion) -> None:
        """Define a buffer as a view of a region, and the symbols in its type."""
        source, target = match.source.buffer, match.buffer
        owner = self.expressions.owners[source.data]
        dropped = len(match.source.region) - len(target.shape)
        indices = []
        for axis, part in enumerate(match.source.region):
            low = self.text(part.min)
            high = f"{low} + {self.text(part.extent)}"
            indices.append(low if axis < dropped else f"slice({low}, {high})")
        name = self.name(target)
        self.line(f"{name} = window({self.name(source)}, {', '.join(indices)})")
        self.bind_dimensions(target)
        self.define_symbol(target.elem_offset, f"element_offset({name}, {self.name(owner)})")
        self.expressions.owners[target.data] = owner
