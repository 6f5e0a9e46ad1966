"""Which buffers a piece of a function reads and writes, and which of them may share memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, find_nodes, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.contents import Access, accesses_in
from mlcweb.tir.function import PrimFunc

REGISTER_SCOPE = "register"
"""The storage scope of buffers that code generators keep in registers: each access names constant
elements, and accesses to overlapping elements have the same extent or are single elements of it."""


class Touched:
    """The data of the buffers that parts of a function touch, found once for each part."""

    def __init__(self) -> None:
        self._known: dict[Node, frozenset[E.Var]] = {}

    def by(self, node: Node) -> frozenset[E.Var]:
        """The pointers in a statement or expression, those of the buffers accessed included."""
        if isinstance(node, E.Var):
            return frozenset((node,)) if node.dtype == "handle" else _NOTHING
        cached = self._known.get(node)
        if cached is None:
            accesses = isinstance(node, (E.BufferLoad, S.BufferStore))
            pointers = frozenset((node.buffer.data,)) if accesses else _NOTHING
            for child in children(node):
                if type(child) is not E.IntImm:
                    pointers |= self.by(child)
            cached = self._known[node] = pointers
        return cached


_NOTHING: frozenset[E.Var] = frozenset()


class AccessMutator(Mutator):
    """Rewrites loads and stores, and leaves indices alone, which are most of a program, where no
    index reads memory. `changed` says what becomes of an access whose parts are done."""

    def changed(self, access: Access) -> Access:
        raise NotImplementedError

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> Access:
        if any(accesses_in(index) for index in load.indices):
            load = self.rewrite_children(load)
        return self.changed(load)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> Access:
        if any(accesses_in(index) for index in store.indices):
            return self.changed(self.rewrite_children(store))
        value = self.rewrite(store.value)
        return self.changed(store if value is store.value else replace(store, value=value))


NOALIAS = "tir.noalias"
"""The attribute of functions whose parameters never share memory."""


def of_distinct_arrays(func: PrimFunc) -> PrimFunc:
    """The function for calls whose arrays are known to share no memory."""
    return func.with_attr(NOALIAS, True)


def of_overlapping_arrays(func: PrimFunc) -> PrimFunc:
    """The function for calls whose arrays may share memory, whatever it says itself."""
    return func.without_attr(NOALIAS)


def aliasing(func: PrimFunc) -> Callable[[Buffer, Buffer], bool]:
    """What says whether two buffers in a function may share memory: the same data, or two
    parameters where the function is not declared free of aliases."""
    free = func.attrs.get(NOALIAS)
    parameters = set() if free else {buffer.data for buffer in func.parameter_buffers}
    return lambda a, b: a.data is b.data or (a.data in parameters and b.data in parameters)


def surely_runs(loop: S.For) -> bool:
    """Whether a loop is known to have an iteration."""
    return isinstance(loop.extent, E.IntImm) and loop.extent.value > 0


def sure_statements(statement: S.Stmt) -> Iterator[S.Stmt]:
    """A statement and those inside it that run whenever it does, outer ones first."""
    pending = [statement]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, S.SeqStmt):
            pending.extend(reversed(part.seq))
        elif isinstance(part, (S.LetStmt, S.AllocBuffer, S.For)):
            if not isinstance(part, S.For) or surely_runs(part):
                pending.append(part.body)


def has_effects(statement: S.Stmt) -> bool:
    """Whether a statement does what cannot be told from its loads and stores."""
    return any(isinstance(part, (S.Evaluate, S.While)) for part in S.statements_in(statement))


def pointers_passed_on(statement: S.Stmt) -> set[E.Var]:
    """The pointers that calls in a statement get, which may touch what they point to."""
    return {
        node
        for part in S.find_statements(statement, S.Evaluate)
        for node in find_nodes(part.value, E.Var)
        if node.dtype == "handle"
    }
