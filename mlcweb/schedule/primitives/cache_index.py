"""Index computations made once, in buffers of their own: cache_index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mlcweb.arith.equality import Interning
from mlcweb.ir.visitor import Replacement, children, find_nodes, walk
from mlcweb.schedule.analysis.scopes import check_leaf
from mlcweb.schedule.arguments import StorageScope
from mlcweb.schedule.errors import LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import position_in, stage, with_stages
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import (
    Broadcast,
    BufferLoad,
    Call,
    Let,
    PointerType,
    PrimExpr,
    Ramp,
    StringImm,
    Var,
)
from mlcweb.tir.operators import OPERATORS, key_of
from mlcweb.tir.stmt import BlockIdentity, BufferStore, IterVar, Stmt
from mlcweb.tir.substitute import substitute, uses_any


@primitive("CacheIndex")
def cache_index(
    state: ScheduleState, block: BlockIdentity, storage_scope: StorageScope, cse_thresh: int = 0
) -> tuple[ScheduleState, list[BlockIdentity]]:
    """Compute what a block computes of its iterators alone (most often indices) in blocks of their
    own, and let the block read the results.

    Of each stored value, the largest such expressions are taken, larger ones first; one that
    occurs less than `cse_thresh` times is taken apart instead. Where there is none, the program
    stays the same. The declared accesses of the block stay as they are.

    Checked: the storage scope exists; the block holds no other blocks; the iterators in these
    expressions have domains that do not depend on loops or iterators around the block.

    rewrite:
        for i in range(16):                             for ax0 in range(16):
            (block "B") B[vi] = A[vi // 4]         -->      (block "index_0") index_var_0[v0] = …
                                                        for i in range(16):
                                                            (block "B") B[vi] = A[index_var_0[vi]]
    """
    place = state.block(block)
    check_leaf(place, "cache the indices of the blocks in it")
    iterators = {iter_var.var: iter_var for iter_var in place.block.iter_vars}
    interned = Interning()
    chosen = [
        expression
        for part in (place.block.init, place.block.body)
        if part is not None
        for store in find_nodes(part, BufferStore)
        for expression in _chosen(store.value, iterators, cse_thresh, interned)
    ]
    if not chosen:
        return state, []
    stages: list[Stmt] = []
    buffers: list[Buffer] = []
    loads: dict[PrimExpr, BufferLoad] = {}
    for n, expression in enumerate(chosen):
        nodes = find_nodes(expression, Var)
        used = list(dict.fromkeys(iterators[var] for var in nodes))
        _check_same_domains_each_time(place, used)
        buffer = _buffer_for(f"index_var_{n}", expression, used, storage_scope)
        stages.append(_stage(f"index_{n}", buffer, expression, used))
        buffers.append(buffer)
        loads.setdefault(interned(expression), BufferLoad(buffer, tuple(i.var for i in used)))
    changed = Replacement(
        lambda node: loads.get(interned(node)) if isinstance(node, PrimExpr) else None
    )
    parts = {"body": place.block.body, "init": place.block.init}
    parts = {name: changed.rewrite(part) for name, part in parts.items() if part is not None}
    scope = state.scope_of(place)
    position = position_in(scope.block, place)
    state = state.with_fields(place, **parts)
    return with_stages(state, scope, scope.block, position, stages, *buffers)


def _check_same_domains_each_time(place: BlockPlace, used: list[IterVar]) -> None:
    """Raise LoopError where an iterator has another domain in each iteration of a loop, so that no
    one buffer holds a value for each of its values."""
    around = place.domains_around
    for iter_var in used:
        domain = iter_var.domain
        if uses_any(domain.min, around) or uses_any(domain.extent, around):
            raise LoopError(
                f'The iterator "{iter_var.var.name}" of {place.title} runs over '
                f"{domain.min!r}:{domain.min + domain.extent!r}, which depends on what is around "
                "the block",
                [place.realize],
                "cache_index before the block is moved or copied by read_at or write_at",
            )


def _chosen(
    value: PrimExpr, iterators: dict[Var, IterVar], threshold: int, interned: Interning
) -> list[PrimExpr]:
    """The expressions of a value to compute once, the largest first."""
    counts = Counter(map(interned, _largest(value, iterators)))
    chosen = []
    while counts:
        expression = max(counts, key=_size)
        count = counts.pop(expression)
        if count >= threshold:
            chosen.append(expression)
            continue
        for child in children(expression):
            for candidate in _largest(child, iterators):
                counts[interned(candidate)] += count
    return chosen


def _largest(node: object, iterators: dict[Var, IterVar]) -> Iterator[PrimExpr]:
    """The largest expressions of the iterators alone in an expression, in order."""
    if not isinstance(node, PrimExpr):
        return
    if _is_of_iterators(node, iterators):
        if _size(node) > 1:
            yield node
        return
    for child in children(node):
        yield from _largest(child, iterators)


def _is_of_iterators(expression: PrimExpr, iterators: dict[Var, IterVar]) -> bool:
    has_iterator = False
    for node in walk(expression):
        if isinstance(node, (BufferLoad, Ramp, Broadcast, StringImm, Let)):
            return False
        if isinstance(node, Call) and key_of(node) not in OPERATORS:
            return False
        if isinstance(node, Var):
            if node not in iterators:
                return False
            has_iterator = True
    return has_iterator


def _size(expression: PrimExpr) -> int:
    return sum(1 for _ in walk(expression))


def _buffer_for(name: str, expression: PrimExpr, used: list[IterVar], storage_scope: str) -> Buffer:
    shape = [iter_var.domain.min + iter_var.domain.extent for iter_var in used]
    dtype = expression.dtype
    data = Var(name, "handle", PointerType(dtype, storage_scope))
    strides = (const(1, shape[0].dtype),) if len(shape) == 1 else ()
    return Buffer(data, dtype, tuple(shape), strides, const(0, shape[0].dtype), name)


def _stage(name: str, buffer: Buffer, expression: PrimExpr, used: list[IterVar]) -> Stmt:
    """A loop nest that computes an expression for all values of its iterators."""
    loops: dict[Var, PrimExpr] = {}
    iterators: dict[IterVar, PrimExpr] = {}
    for n, iter_var in enumerate(used):
        domain = iter_var.domain
        loop, iterator = (Var(f"{name}{n}", iter_var.var.dtype) for name in ("ax", "v"))
        loops[loop] = domain.extent
        at_zero = is_const_int(domain.min, 0)
        iterators[IterVar(domain, iterator)] = loop if at_zero else domain.min + loop
    indices = tuple(iter_var.var for iter_var in iterators)
    renamed = {old.var: new for old, new in zip(used, indices, strict=True)}
    store = BufferStore(buffer, substitute(expression, renamed), indices)
    return stage(name, loops, iterators.items(), store)
