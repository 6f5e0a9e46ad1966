"""Launches as Python text: what one thread does is a generator that yields at barriers.

A function becomes

    def main(A, B):
        gpu.launch()
        for bx in range(4):
            S = allocate((64,), "float32")
            def thread(tx):
                yield from ()
                gpu.write(A[gpu.read(0, A, (bx * 64 + tx,))], 1, S, (tx,))
                yield 0
                gpu.write(S[gpu.read(2, S, (63 - tx,))], 3, B, (bx * 64 + tx,))
            gpu.run((("blockIdx.x", bx),), (("threadIdx.x", 64),), thread)

where `gpu` is a `Simulation`, which gets the number of each access and of each barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.analysis.threads import ATOMIC, is_barrier, is_shared, thread_tag
from mlcweb.codegen.interpreter import support
from mlcweb.codegen.interpreter.expressions import ExpressionText
from mlcweb.codegen.interpreter.source import PythonSource
from mlcweb.codegen.simulated.simulation import Access, Kind, Simulation, Statement
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import find_nodes, on
from mlcweb.lower.async_stages import ASYNC_SCOPE
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name


class SimulatedSource(PythonSource):
    """Writes functions whose loops over blocks and threads are where `launch_threads` puts them."""

    def __init__(self) -> None:
        super().__init__(support.namespace)
        self.simulation = Simulation()
        self.constants["gpu"] = self.simulation
        self.expressions: _WatchedText = _WatchedText(self.simulation, support.namespace)
        self.blocks: list[S.For] = []
        self.copies = False

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        if loop.thread_binding is None or self.expressions.in_threads:
            super().loop(loop)
        elif thread_tag(loop):
            self.line("gpu.launch()")
            self.threads(loop)
        else:
            self.line("gpu.launch()")
            self.one_block(loop)

    def one_block(self, statement: S.Stmt) -> None:
        """What is around the threads of a block: loops over blocks, and memory of each."""
        if isinstance(statement, S.AllocBuffer):
            self.expressions.of_a_block.add(statement.buffer.data)
            self.allocate(statement.buffer)
            self.one_block(statement.body)
            return
        if (
            not isinstance(statement, S.For)
            or not statement.thread_binding
            or thread_tag(statement)
        ):
            self.threads(statement)
            return
        self.blocks.append(statement)
        name, extent = self.bound(statement)
        with self.looped(f"for {name} in range({extent}):"):
            self.one_block(statement.body)
        self.blocks.pop()

    def bound(self, loop: S.For) -> tuple[str, str]:
        """The name and the extent of a loop over blocks or threads, which starts at 0."""
        extent = self.expressions.ranges.interval(loop.extent)[1]
        self.expressions.ranges.bind(loop.loop_var, 0, max(extent, 1) - 1)
        return self.name(loop.loop_var), self.text(loop.extent)

    def threads(self, statement: S.Stmt) -> None:
        """The threads of one block."""
        axes: list[tuple[str, str, str]] = []
        while isinstance(statement, S.For) and thread_tag(statement):
            axes.append((thread_tag(statement), *self.bound(statement)))
            statement = statement.body
        name = self.expressions.names.fresh("thread")
        with self.generator(f"def {name}({', '.join(name for _, name, _ in axes)}):"):
            self.visit(statement)
        block = "".join(
            f'("{loop.thread_binding.thread_tag}", {self.name(loop.loop_var)}), '
            for loop in self.blocks
            if loop.thread_binding
        )
        extents = "".join(f'("{tag}", {extent}), ' for tag, _, extent in axes)
        self.line(f"gpu.run(({block}), ({extents}), {name})")

    @contextmanager
    def generator(self, header: str) -> Iterator[None]:
        outer, defined = self.nested, set(self.defined)
        self.nested, self.calls, self.expressions.in_threads = 0, "yield from ", True
        with self.indented(header):
            self.line("yield from ()")
            yield
        self.nested, self.calls, self.expressions.in_threads = outer, "", False
        self.defined = defined

    def function(self, func: PrimFunc, name: str) -> str:
        self.expressions.by_address = set(find_nodes(func.body, E.Var))
        return super().function(func, name)

    def allocate(self, buffer: Buffer) -> None:
        """Memory; that of blocks and threads has no values yet. Not of all is it known who writes
        it: calls may by its address, and instructions of matrix units do."""
        of_a_block = buffer.data in self.expressions.of_a_block or is_shared(buffer)
        if self.expressions.in_threads:
            self.expressions.own.add(buffer.data)
        super().allocate(buffer)
        told = buffer.data not in self.expressions.by_address and buffer.scope()[:4] != "wmma"
        if told and (of_a_block or self.expressions.in_threads):
            self.expressions.told.add(buffer.data)
            self.line(f"gpu.is_fresh({self.name(buffer)})")

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if statement.attr_key == ASYNC_SCOPE:
            outer, self.copies = self.copies, True
            self.visit(statement.body)
            self.copies = outer
            return
        update = statement.body
        if statement.attr_key != ATOMIC or not isinstance(update, S.BufferStore):
            super().attribute(statement)
            return
        self.expressions.updated = update.buffer
        self.visit(update)
        self.expressions.updated = None

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        self.expressions.statement = Statement(str(store), store.span)
        own = self.expressions.keeps(store.buffer)
        if not own and not self.expressions.watches(store.buffer):
            super().store(store)
            return
        value = self.text(store.value)
        arguments = self.expressions.watched(Kind.WRITE, store.buffer, store.indices, store.span)
        write = "own_write" if own else "copy" if self.copies else "write"
        self.line(f"gpu.{write}({value}, {arguments})")

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> None:
        said = Statement(str(statement), statement.span or statement.value.span)
        self.expressions.statement = said
        name = operator_name(statement.value)
        if name in ("ptx_commit_group", "ptx_wait_group"):
            groups = "".join(map(self.text, statement.value.args))  # type: ignore[attr-defined]
            if self.expressions.in_threads:
                self.line(f"gpu.{name[4:]}({groups})")
        elif not is_barrier(statement):
            super().evaluate(statement)
        elif self.expressions.in_threads:
            self.simulation.barriers.append(said)
            self.line(f"yield {len(self.simulation.barriers) - 1}")


class _WatchedText(ExpressionText):
    """Writes accesses that are noted: those of threads to memory that others see."""

    def __init__(self, simulation: Simulation, reserved: Any) -> None:
        super().__init__((*reserved, "gpu"))
        self.simulation = simulation
        self.in_threads = False
        self.own: set[E.Var] = set()
        self.of_a_block: set[E.Var] = set()
        self.told: set[E.Var] = set()
        self.by_address: set[E.Var] = set()
        self.updated: Buffer | None = None
        self.statement = Statement("", None)

    def watches(self, buffer: Buffer) -> bool:
        return self.in_threads and buffer.data not in self.own

    def access(
        self, action: str, buffer: Buffer, indices: tuple[E.PrimExpr, ...], span: Span | None
    ) -> str:
        own = self.keeps(buffer)
        if action != "Reading" or not (own or self.watches(buffer)):
            return super().access(action, buffer, indices, span)
        arguments = self.watched(Kind.READ, buffer, indices, span)
        return f"{self.names[buffer]}[gpu.{'own_read' if own else 'read'}({arguments})]"

    def keeps(self, buffer: Buffer) -> bool:
        """Whether it is noted what a thread writes to memory that no other sees."""
        return self.in_threads and buffer.data in self.own and buffer.data in self.told

    def watched(
        self, kind: Kind, buffer: Buffer, indices: Sequence[E.PrimExpr], span: Span | None
    ) -> str:
        """The number of an access, the array, and its indices, which are in bounds."""
        number, name = len(self.simulation.accesses), self.names[buffer]
        if buffer is self.updated:
            kind = Kind.ATOMIC
        statement = self.statement if span is None else self.statement._replace(span=span)
        in_launch = buffer.data not in self.of_a_block
        owner = "warp" if buffer.scope().startswith("warp") else "block"
        if buffer.data in self.own:
            owner = "thread"
        self.simulation.accesses.append(Access(kind, buffer.name, statement, in_launch, owner))
        texts = "".join(f"{self.text(index)}, " for index in indices)
        if self.ranges.in_bounds(buffer, tuple(indices)):
            return f"{number}, {name}, ({texts})"
        action = "Reading" if kind is Kind.READ else "Writing"
        site = self.new_site(action, buffer, statement.span)
        return f"{number}, {name}, at({site}, {name}, {texts})"
