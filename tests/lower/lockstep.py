"""TVMScript run as a GPU runs it, by Python and NumPy alone: a reference for loops over threads.

All threads of a block execute a statement before any of them executes the next, so that a barrier
stands between any two statements. A value is an array with an element for each thread. Programs
have at most one statement a line, `int32` data, and blocks without `T.init`.

Raises Race where the answer depends on the order of threads: two of them write different values to
an element in one statement, one reads what another writes in it, or they exchange data through
memory that is not shared, with no `T.tvm_storage_sync` between.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Race(Exception):
    """The program means nothing in particular."""


def run_lockstep(text: str, arrays: Sequence[Array]) -> list[Array]:
    """The parameters after the function `text` has run on copies of `arrays`."""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    machine = _Machine(function)
    for argument, array in zip(function.args.args, arrays, strict=True):
        machine.names[argument.arg] = _Memory(machine, array.copy())
    machine.run(function.body)
    return [machine.names[argument.arg].data for argument in function.args.args]


class _Memory:
    """A buffer: `data`, and for each thread the index of its copy in front (none where all threads
    see one copy). `writers` says who wrote an element since the last barrier, `readers` who read
    it: a thread, -1 for none, -2 for several."""

    def __init__(self, machine: _Machine, data: Array, copy: tuple[Any, ...] = ()) -> None:
        self.machine, self.data, self.copy = machine, data, copy
        self.ordered = False
        self.written = np.ones(data.shape, bool)
        self.writers = np.full(data.shape, -1)
        self.readers = np.full(data.shape, -1)

    def elements(self, key: Any) -> tuple[Any, ...]:
        index = key if isinstance(key, tuple) else (key,)
        full = [np.broadcast_to(i, self.machine.threads.shape) for i in (*self.copy, *index)]
        mask = self.machine.mask
        for i, n in zip(full, self.data.shape, strict=True):
            assert ((i[mask] >= 0) & (i[mask] < n)).all(), "out of bounds"
        return tuple(np.where(mask, i, 0) for i in full)

    def __getitem__(self, key: Any) -> Array:
        at = self.elements(key)
        mine = tuple(i[self.machine.mask] for i in at)
        me = self.machine.threads[self.machine.mask]
        if not self.written[mine].all():
            raise Race
        self.machine.reads.append((self, mine, me))
        if not self.ordered:
            if ((self.writers[mine] != -1) & (self.writers[mine] != me)).any():
                raise Race
            old = self.readers[mine]
            self.readers[mine] = np.where((old == -1) | (old == me), me, -2)
        return self.data[at]

    def __setitem__(self, key: Any, value: Any) -> None:
        mask, me = self.machine.mask, self.machine.threads[self.machine.mask]
        at = tuple(i[mask] for i in self.elements(key))
        new = np.broadcast_to(np.asarray(value).astype(self.data.dtype), mask.shape)[mask]
        for memory, other, reader in self.machine.reads:
            if memory is self:
                written = np.full(self.data.shape, -1)
                written[at] = me
                alone = (written[other] == -1) | (written[other] == reader)
                if not alone.all() and not self.machine.uniform(at, new):
                    raise Race
        if not self.ordered:
            seen = (self.writers[at], self.readers[at])
            if any(((who != -1) & (who != me)).any() for who in seen):
                raise Race
            self.writers[at] = me
        self.written[at] = True
        self.data[at] = new
        if (self.data[at] != new).any():
            raise Race


class _Machine:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.extents: dict[str, int] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name == "T.thread_binding":
                    self.extents[node.keywords[0].value.value] = ast.literal_eval(node.args[0])
                elif name == "T.launch_thread":
                    self.extents[ast.literal_eval(node.args[0])] = ast.literal_eval(node.args[1])
        self.blocks = {t: n for t, n in self.extents.items() if t.startswith("blockIdx")}
        self.axes = {t: n for t, n in self.extents.items() if t not in self.blocks}
        grid = np.indices(tuple(self.axes.values()) or (1,)).reshape(max(len(self.axes), 1), -1)
        self.index = dict(zip(self.axes, grid, strict=False))
        self.threads = np.arange(grid.shape[1])
        self.mask = np.ones(len(self.threads), bool)
        self.reads: list[Any] = []
        self.names: dict[str, Any] = {"T": self}
        self.inside: set[str] = set()

    def uniform(self, at: tuple[Array, ...], new: Array) -> bool:
        """Whether all threads do the same, so that one may do it for all."""
        return all((i == i[:1]).all() for i in (*at, new))

    # The namespace T

    def alloc_buffer(self, shape: Any, dtype: str = "float32", scope: str = "global") -> _Memory:
        copies: dict[str, int] = {}
        if scope == "local":
            copies = self.axes
        elif scope == "warp":
            copies = {t: n for t, n in self.axes.items() if t != "threadIdx.x"}
        sizes, copy = tuple(copies.values()), tuple(self.index[tag] for tag in copies)
        if not (sizes or shape):
            sizes, copy = (1,), (0,)
        memory = _Memory(self, np.full((*sizes, *shape), 77, dtype), copy)
        memory.ordered = scope != "global"
        memory.written[...] = False
        return memory

    @staticmethod
    def if_then_else(condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no)

    @staticmethod
    def shift_left(a: Any, b: Any) -> Any:
        return a << b

    @staticmethod
    def min(a: Any, b: Any) -> Any:
        return np.minimum(a, b)

    @staticmethod
    def max(a: Any, b: Any) -> Any:
        return np.maximum(a, b)

    # Statements

    def value(self, node: ast.expr) -> Any:
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<expression>", "eval")
        return eval(code, self.names)

    def run(self, body: Sequence[ast.stmt]) -> None:
        for number, statement in enumerate(body):
            self.reads = []
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                if ast.unparse(statement.value.func) == "T.launch_thread":
                    tag = ast.literal_eval(statement.value.args[0])
                    self.over_threads(statement.targets[0].id, tag, body[number + 1 :])
                    return
            getattr(self, type(statement).__name__)(statement)

    def over_threads(self, name: str, tag: str, body: Sequence[ast.stmt]) -> None:
        if tag in self.axes:
            self.names[name] = self.index[tag]
            self.run(body)
            return
        for block in range(self.blocks[tag]):
            self.names[name] = block
            for memory in self.names.values():
                if isinstance(memory, _Memory) and memory.ordered:
                    memory.written[...] = False
            self.run(body)

    def For(self, loop: ast.For) -> None:
        assert isinstance(loop.iter, ast.Call)
        name, call = loop.target.id, ast.unparse(loop.iter.func)
        if call == "T.thread_binding":
            self.over_threads(name, loop.iter.keywords[0].value.value, loop.body)
            return
        bounds = [np.broadcast_to(self.value(a), self.mask.shape) for a in loop.iter.args]
        low, high = bounds if len(bounds) == 2 else (np.zeros_like(bounds[0]), bounds[0])
        outer = self.mask
        for step in range(int((high - low)[outer].max(initial=0))):
            self.mask = outer & (step < high - low)
            self.names[name] = low + step
            self.run(loop.body)
        self.mask = outer

    def If(self, branch: ast.If) -> None:
        outer = self.mask
        holds = np.broadcast_to(self.value(branch.test), outer.shape).astype(bool)
        self.mask = outer & holds
        if self.mask.any():
            self.run(branch.body)
        self.mask = outer & ~holds
        if self.mask.any():
            self.run(branch.orelse)
        self.mask = outer

    def Assign(self, statement: ast.Assign) -> None:
        (target,) = statement.targets
        value = self.value(statement.value)
        if isinstance(target, ast.Subscript):
            self.value(target.value)[self.value(target.slice)] = value
        else:
            self.names[target.id] = value

    def AnnAssign(self, statement: ast.AnnAssign) -> None:
        assert statement.value is not None
        self.names[statement.target.id] = self.value(statement.value)

    def Expr(self, statement: ast.Expr) -> None:
        if "tvm_storage_sync" in ast.unparse(statement):
            for memory in self.names.values():
                if isinstance(memory, _Memory):
                    memory.writers[...] = memory.readers[...] = -1
