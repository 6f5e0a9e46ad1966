"""Which loops are over the threads of a block, and whether these threads exchange data.

Threads of one block are the iterations of loops bound to threadIdx or vthread axes. They exchange
data through shared memory, around barriers, and where they reduce to one element together. Their
loops are then no loops as any other: a barrier stands between iterations.
"""

from __future__ import annotations

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children, find_nodes, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import variables_in

CROSS_THREAD_REDUCTION = "cross_thread_reduction"
"""The attribute of a reduction whose threads add to one element, one after the other."""


MATRIX_UNIT = "matrix_unit"
"""The attribute of loops that one instruction of a matrix unit does for the threads of a warp."""


WARP_MATRIX = "warp_matrix"
"""The attribute of loops by the first lane that one matrix instruction does on the registers of all
threads of a warp."""


WARP_EXCHANGE = "warp_exchange"
"""The attribute of statements in which threads of a warp read each other's registers: all of them
have to come there."""


ATOMIC = "atomic"
"""The attribute of an update that no other thread interrupts."""


def is_thread_tag(tag: str) -> bool:
    """Whether an axis is one of threads inside a block; "" is none."""
    return tag != "" and not tag.startswith("blockIdx")


def thread_tag(loop: Node) -> str:
    """The axis of a loop over threads of one block; "" for other nodes."""
    if not (isinstance(loop, S.For) and loop.thread_binding is not None):
        return ""
    tag = loop.thread_binding.thread_tag
    return tag if is_thread_tag(tag) else ""


def is_shared(buffer: Buffer) -> bool:
    """Whether the threads of a block, or of a warp, see one buffer because of its storage scope."""
    return buffer.scope().startswith(("shared", "warp"))


def is_own(buffer: Buffer) -> bool:
    """Whether each thread has a buffer for itself because of its storage scope: in registers, which
    those of matrix units are, too."""
    return buffer.scope().startswith(("local", "wmma"))


def is_barrier(statement: Node) -> bool:
    """Whether a statement is a call of `tvm_storage_sync`."""
    return S.called_by(statement, ("tvm_storage_sync",)) is not None


def is_allreduce(statement: Node) -> bool:
    """Whether a statement is a call of `tvm_thread_allreduce`, at which threads wait, too."""
    return S.called_by(statement, ("tvm_thread_allreduce",)) is not None


def is_shuffle(node: Node) -> bool:
    """Whether an expression is what another thread of the warp has for it."""
    return isinstance(node, E.Call) and operator_name(node).startswith("tvm_warp_shuffle")


def shuffles(node: Node) -> bool:
    """Whether threads of a warp read each other's values in a part of a program."""
    return any(map(is_shuffle, walk(node)))


def has_barrier(statement: S.Stmt) -> bool:
    return any(map(is_barrier, S.statements_in(statement)))


def launches_threads(func: PrimFunc) -> bool:
    """Whether a function binds a loop to an axis of blocks or threads."""
    return any(
        part.thread_binding is not None
        if isinstance(part, S.For)
        else isinstance(part, S.AttrStmt) and S.is_launch(part)
        for part in S.statements_in(func.body)
    )


def exchanges_data(func: PrimFunc) -> bool:
    """Whether a function has threads that share memory, wait at barriers, reduce together, or may
    pass each other what they store in memory that is not their own."""
    exchange = False
    threads: set[E.Var] = set()
    loops: list[S.Stmt] = []
    for part in S.statements_in(func.body):
        if isinstance(part, S.For):
            if thread_tag(part):
                threads.add(part.loop_var)
                loops.append(part.body)
        elif isinstance(part, S.AttrStmt):
            axis = part.node if isinstance(part.node, S.IterVar) else None
            if axis is not None and is_thread_tag(axis.thread_tag):
                threads.add(axis.var)
                loops.append(part.body)
            exchange = exchange or part.attr_key == CROSS_THREAD_REDUCTION
        elif isinstance(part, S.BlockRealize):
            exchange = exchange or (bool(threads) and reduces_over(part, threads))
        elif isinstance(part, (S.Block, S.AllocBuffer)):
            exchange = exchange or any(map(is_shared, S.allocated_buffers(part)))
        elif isinstance(part, S.Evaluate):
            exchange = exchange or is_barrier(part) or is_allreduce(part)
        if threads and exchange:
            return True
    exchange = any(_passed_on(loop) or shuffles(loop) for loop in loops)
    return exchange or _own_through_several(func.body)


def _own_through_several(body: S.Stmt) -> bool:
    """Whether threads find what they have for themselves in one loop over them in another."""
    seen: set[E.Var] = set()
    pending: list[Node] = [body]
    while pending:
        part = pending.pop()
        if not thread_tag(part):
            pending += (child for child in children(part) if isinstance(child, S.Stmt))
            continue
        own = {
            node.buffer.data
            for node in find_nodes(part, E.BufferLoad, S.BufferStore)
            if is_own(node.buffer)
        }
        if seen & own:
            return True
        seen |= own
    return False


def _passed_on(statement: S.Stmt) -> set[E.Var]:
    """The data of the buffers, but for those of a thread alone, that one statement stores to and
    another one loads from."""
    stored: set[E.Var] = set()
    loaded: set[E.Var] = set()
    own: set[Node] = set()
    for part in walk(statement):  # parents first
        if isinstance(part, S.BufferStore) and not is_own(part.buffer):
            stored.add(part.buffer.data)
            own.update(
                load
                for load in find_nodes(part.value, E.BufferLoad)
                if load.buffer.data is part.buffer.data
            )
        elif isinstance(part, E.BufferLoad) and part not in own:
            loaded.add(part.buffer.data)
    return stored & loaded


def reduces_over(realize: S.BlockRealize, variables: set[E.Var]) -> bool:
    """Whether a block reduces over some loops. Iterators that depend on these join `variables`."""
    reduces = False
    for axis, value in realize.iterators:
        if not variables.isdisjoint(variables_in(value)):
            variables.add(axis.var)
            reduces = reduces or axis.iter_type == S.IterType.COMM_REDUCE
    return reduces


def uses_barriers(loop: S.For) -> bool:
    """Whether a loop over threads is no loop as any other: below it is a barrier, threads read each
    other's values, shared memory is both written and read, other memory is passed from one
    statement to another, or what the threads reduce to is read elsewhere."""
    nodes = list(walk(loop.body))
    loads = [node for node in nodes if isinstance(node, E.BufferLoad)]
    stores = (node for node in nodes if isinstance(node, S.BufferStore))
    if any(is_barrier(node) or is_allreduce(node) or is_shuffle(node) for node in nodes):
        return True
    if _passed_on(loop.body):
        return True
    if any(is_shared(load.buffer) for load in loads):
        if any(is_shared(store.buffer) for store in stores):
            return True
    variables = {loop.loop_var}
    realizes = (node for node in nodes if isinstance(node, S.BlockRealize))
    reductions = [realize for realize in realizes if reduces_over(realize, variables)]
    reduced = {data for realize in reductions for data in stored_data(realize)}
    own = {node for realize in reductions for node in walk(realize)}
    return any(load.buffer.data in reduced and load not in own for load in loads)


def uses_warp(loop: S.For) -> bool:
    """Whether there is memory of a warp, which threads along threadIdx.x share, below a loop."""
    return any(
        isinstance(node, E.BufferLoad) and node.buffer.scope().startswith("warp")
        for node in walk(loop.body)
    )


def stored_data(node: Node) -> set[E.Var]:
    """The data of the buffers that a part of a program stores to."""
    return {part.buffer.data for part in find_nodes(node, S.BufferStore)}
