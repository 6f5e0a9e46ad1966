"""Inlining: computing a block's values where they are read, or moving it into its producer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mlcweb.analysis import block_access_regions
from mlcweb.arith import Analyzer, conjunction, conjuncts, same_expressions
from mlcweb.arith.equality import same_expression
from mlcweb.arith.inverse_map import InverseMap, inverse_map, unit_iterators
from mlcweb.arith.padded_inverse import padded_inverse_map
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, post_order_visit, rewrite_nodes
from mlcweb.schedule.analysis.effects import (
    check_own_threads,
    reads_only_written,
    runs_whole_domain,
)
from mlcweb.schedule.analysis.iteration_domain import executed_domains
from mlcweb.schedule.analysis.regions import check_no_declared_view, loads_of, use_of_memory
from mlcweb.schedule.analysis.scopes import (
    check_binds_loops,
    check_complete,
    check_not_output,
    is_trivially_true,
    scope_at,
    short_title,
)
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.analysis.units import (
    check_all_blocks,
    check_same_guards,
    check_within_guards,
    let_variables,
)
from mlcweb.schedule.errors import BlockKindError, DataflowError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import with_accesses
from mlcweb.schedule.state import BlockPlace, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import equal
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, BufferStore
from mlcweb.tir.substitute import substitute, variables_in


@primitive("ComputeInline")
def compute_inline(state: ScheduleState, block: BlockIdentity) -> ScheduleState:
    """Compute a block's values where its consumers read them, and remove the block.

    Checked: the block's scope is a stage pipeline and has other blocks; the block is complete, has
    no init, writes one buffer, which is not seen outside of the scope, and its body is one store,
    whose indices give each iteration an element of its own; its predicate leaves nothing out;
    nobody uses the buffer's address, and no thread would use what another has for itself.

    rewrite:
        for i in range(16): (block "B") B[vi] = A[vi] * 2
        for i in range(16): (block "C") C[vi] = B[vi] + 1  -->  … (block "C") C[vi] = A[vi] * 2 + 1
    """
    place = state.block(block)
    _check_no_init(place)
    buffer = _only_written(place)
    scope = state.scope_of(place)
    check_stage_pipeline(state, scope)
    blocks = scope_at(state, scope)
    blocks.check_links_of_reads(place)
    check_not_output(state, place, "cache_write first, or inline the block's own producers")
    check_complete(state, place)
    _check_all_written(place)
    check_binds_loops(place, place.loops)
    if len(blocks.units) == 1:
        raise BlockKindError(
            f"The {place.title} is the only block of its scope, which would be empty without it",
            [place.realize],
            "inline blocks that others read",
        )
    store = place.block.body
    inverse = None
    if isinstance(store, BufferStore):
        inverse = inverse_map(store.indices, place.block.domains)
    if not isinstance(store, BufferStore) or inverse is None:
        raise BlockKindError(
            f"The body of {place.title} is not a single store whose indices are a bijective "
            "affine function of the iterators",
            [place.realize],
            f"a body of the form {buffer.name}[f(i, j, …)] = g(i, j, …)",
        )
    check_no_declared_view(place, scope.block, buffer)
    inliner = _Inliner(buffer, store, inverse, place.block.domains)
    for reader in (*blocks.readers.get(buffer, ()), *blocks.undeclared_readers.get(buffer, ())):
        check_within_guards(place, reader, f'the {reader.title} reads "{buffer.name}" without it')
        check_own_threads(place, place, reader)
    _check_elements(blocks.units, buffer)
    state = state.replaced(place.function, {place.realize: None})
    scope = state.block(scope.block.identity)
    state = state.with_fields(scope, body=inliner.rewrite(scope.block.body))
    return _without_allocation(state, scope, buffer)


@primitive("ReverseComputeInline")
def reverse_compute_inline(state: ScheduleState, block: BlockIdentity) -> ScheduleState:
    """Apply a block to each value of its only producer as that is computed, and remove the block.

    Checked: the block's scope is a stage pipeline; the block is complete, has no init, and a
    predicate at most that bounds its iterators; its body is one store that reads the producer's
    buffer at one place, whose indices give each iteration an element of its own; the producer is
    complete, a single store, not an output, and has no other consumer; where it sets elements and
    updates them, the block copies them as they are. Elements that the block does not use are cut
    off by a predicate.

    rewrite:
        for i in range(16): (block "B") B[vi] = A[vi] * 2
        for i in range(16): (block "C") C[vi] = B[vi] + 1  -->  … (block "B") C[vi] = A[vi] * 2 + 1
    """
    place = state.block(block)
    _check_no_init(place)
    scope = state.scope_of(place)
    check_stage_pipeline(state, scope)
    check_complete(state, place)
    check_binds_loops(place, place.loops)
    producer, buffer = _only_producer(state, scope, place)
    check_all_blocks([producer], buffer, "a block can only be inlined into another block")
    check_same_guards(place, producer, f"the {producer.title} does not run as often")
    check_own_threads(place, producer, place)
    check_not_output(state, producer, "cache_write of the producer first")
    check_complete(state, producer)
    _check_elements((place, producer), buffer)
    outer, inner = _storing_realize(producer, buffer)
    stored = inner.block.body
    assert isinstance(stored, BufferStore)
    updates = inner.block.init is not None or bool(loads_of(stored.value, buffer))
    if updates and not (_copies(place, buffer) and _updates_one_element(inner.block, buffer)):
        raise BlockKindError(
            f'The producer "{producer.block.name_hint}" updates "{buffer.name}" rather than just '
            "storing to it, so its values are not complete where they are stored",
            [producer.realize],
            "reverse_compute_at under a loop of the producer",
        )
    if not reads_only_written(place, producer, buffer):
        raise DataflowError(
            f"Some iterations of the {place.title} read nothing that the producer "
            f'"{producer.block.name_hint}" writes, and would be lost in it',
            [place.realize, producer.realize],
            "inline the producer with compute_inline instead",
        )
    store, indices, inverse = _consuming_store(place, buffer)
    values = {**unit_iterators(place.block.domains), **inverse(stored.indices)}
    indices = [substitute(index, values) for index in indices]
    predicate = _use_predicate(state, producer, inner, place, values, indices, stored.indices)
    store = substitute(store, values)
    if updates:
        changed = with_accesses(inner.block, buffer, store.buffer, store.indices)
    else:
        value = stored.value
        taken = rewrite_nodes(
            store, BufferLoad, lambda load: value if load.buffer is buffer else load
        )
        changed = replace(inner.block, body=taken)
    changed = _with_regions(changed)
    realize = replace(inner, block=changed, predicate=predicate)
    state = state.replaced(place.function, {place.realize: None, inner: realize})
    for block_around in reversed(outer):
        around = state.block(block_around.identity).block
        state = state.replaced(place.function, {around: _with_regions(around)})
    return _without_allocation(state, scope, buffer)


def _copies(place: BlockPlace, buffer: Buffer) -> bool:
    """Whether a block stores elements of a buffer as they are."""
    store = place.block.body
    value = store.value if isinstance(store, BufferStore) else None
    return isinstance(value, BufferLoad) and value.buffer is buffer


def _updates_one_element(block: Block, buffer: Buffer) -> bool:
    """Whether each iteration of a block sets an element of a buffer and then updates that one, and
    uses no other. (The block is complete: no later iteration comes back to the element.)"""
    if block.init is None:
        return False
    accesses = [
        node
        for part in (block.init, block.body)
        for node in find_nodes(part, BufferLoad, BufferStore)
        if node.buffer is buffer
    ]
    return isinstance(block.init, BufferStore) and all(
        same_expressions(access.indices, accesses[0].indices) for access in accesses
    )


class _Inliner(Mutator):
    """Puts the value of a store in place of each load of its buffer."""

    def __init__(
        self, buffer: Buffer, store: BufferStore, inverse: InverseMap, domains: Mapping[Var, Range]
    ) -> None:
        self.buffer = buffer
        self.store = store
        self.inverse = inverse
        self.domains = domains
        self.units = unit_iterators(domains)
        pairs = list(zip(domains, store.indices, strict=False))
        same = all(
            index is var or (var in self.units and same_expression(self.units[var], index))
            for var, index in pairs
        )
        self.by_position = same and len(pairs) == len(domains) == len(store.indices)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        new = self.rewrite_children(node)
        if node.buffer is not self.buffer:
            return new
        if self.by_position:
            values = dict(zip(self.domains, new.indices, strict=True))
        else:
            values = {**self.units, **self.inverse(new.indices)}
        return substitute(self.store.value, values)

    @on(Block)
    def block(self, node: Block) -> Block:
        new = self.rewrite_children(node)
        if not any(region.buffer is self.buffer for region in node.reads):
            return new
        return _with_regions(new)


def _with_regions(block: Block) -> Block:
    """The block with its reads and writes found anew; what is read to find an index comes first.
    Buffers that it declares and whose address it uses may be read and written everywhere."""
    addresses = {r.buffer.data: r.buffer for r in (*block.reads, *block.writes)}
    reads, writes = block_access_regions(block, addresses).possible
    buffers: list[Buffer] = []

    def collect(node: Node) -> None:
        buffer = node.buffer if isinstance(node, BufferLoad) else None
        buffer = addresses.get(node) if isinstance(node, Var) else buffer
        if buffer is not None:
            buffers.append(buffer)

    post_order_visit(block.body, collect)
    order = {buffer: n for n, buffer in enumerate(dict.fromkeys(buffers))}
    reads = tuple(sorted(reads, key=lambda region: order.get(region.buffer, len(order))))
    return replace(block, reads=reads, writes=writes)


def _check_elements(units: Iterable[BlockPlace], buffer: Buffer) -> None:
    """Raise DataflowError where a unit uses a buffer otherwise than element by element."""
    for unit in units:
        use = use_of_memory(unit.realize, buffer)
        if use is not None:
            raise DataflowError(
                f'The buffer "{buffer.name}" cannot be inlined into the {unit.title}: {use}',
                [unit.statement],
                "keep the buffer, and move its block with compute_at",
            )


def _check_no_init(place: BlockPlace) -> None:
    if place.block.init is not None:
        raise BlockKindError(
            f"The {place.title} has an init statement: a reduction cannot be inlined",
            [place.realize],
            "use compute_at or reverse_compute_at",
        )


def _check_all_written(place: BlockPlace) -> None:
    """Raise DataflowError where a block leaves elements out, as far as its predicate tells: they
    are read in bounds, unlike perhaps what they would be computed from."""
    if not (is_trivially_true(place.realize.predicate) or runs_whole_domain(place)):
        raise DataflowError(
            f"The predicate of {place.title} may leave out elements, which then cannot be "
            "computed where they are read",
            [place.realize],
            "a predicate that is a bound of the iterators, or compute_at",
        )


def _only_written(place: BlockPlace) -> Buffer:
    if len(place.block.writes) != 1:
        raise BlockKindError(
            f"The {place.title} writes {len(place.block.writes)} buffer regions; a block to be "
            "inlined writes one",
            [place.realize],
            "a block with a single store",
        )
    return place.block.writes[0].buffer


def _only_producer(
    state: ScheduleState, scope: BlockPlace, place: BlockPlace
) -> tuple[BlockPlace, Buffer]:
    """The block that makes what `place` reads, and the buffer between them."""
    blocks = scope_at(state, scope)
    blocks.check_links(place)
    producers = blocks.producers(place)
    name = place.block.name_hint
    if len(producers) != 1:
        names = ", ".join(short_title(p) for p in producers) or "none"
        raise BlockKindError(
            f'The block "{name}" must have a single producer in its scope; it has {names}',
            [place.realize, *(producer.statement for producer in producers)],
            "reverse_compute_at, or compute_inline of the producers",
        )
    producer = producers[0]
    blocks.check_links(producer)
    consumers = blocks.consumers(producer)
    if len(consumers) != 1:
        others = ", ".join(short_title(c) for c in consumers if c.block is not place.block)
        raise BlockKindError(
            f'The producer "{producer.block.name_hint}" of block "{name}" has other consumers, '
            f"which need its result: {others}",
            [consumer.statement for consumer in consumers],
            "compute_inline of the producer into all of them",
        )
    written = {region.buffer for region in producer.block.writes}
    buffers = {region.buffer for region in place.block.reads} & written
    if len(buffers) != 1 or len(written) != 1:
        raise BlockKindError(
            f'The producer "{producer.block.name_hint}" of block "{name}" writes several buffers',
            [producer.realize],
            "a producer with a single store",
        )
    return producer, next(iter(buffers))


def _storing_realize(producer: BlockPlace, buffer: Buffer) -> tuple[list[Block], BlockRealize]:
    """The realize of the block, the producer's or one in it, whose body is the store, and the
    blocks around it up to the producer."""
    around: list[Block] = []
    realize = producer.realize
    while not isinstance(realize.block.body, BufferStore):
        inner = list(block_realizes_below(realize.block.body))
        if len(inner) != 1 or realize.block.init is not None:
            raise BlockKindError(
                f'The body of the producer "{producer.block.name_hint}" is not a single store of '
                f'"{buffer.name}"',
                [producer.realize],
                "reverse_compute_at under a loop of the producer",
            )
        around.append(realize.block)
        realize = inner[0]
    return around, realize


def _consuming_store(
    place: BlockPlace, buffer: Buffer
) -> tuple[BufferStore, Sequence[PrimExpr], InverseMap]:
    """The consumer's store, the indices at which it reads the buffer, and their inverse."""
    store = place.block.body
    loads = loads_of(store, buffer)
    reason = None
    inverse = None
    if not isinstance(store, BufferStore):
        reason = "its body is not a single store"
    elif executed_domains(place) is None:
        reason = "its loops and predicate leave out combinations of its iterators' values"
    elif not loads:
        reason = f'it does not load "{buffer.name}"'
    elif any(not same_expressions(load.indices, loads[0].indices) for load in loads):
        reason = f'it reads "{buffer.name}" at several places'
    else:
        domains = place.block.domains
        inverse = inverse_map(loads[0].indices, domains)
        inverse = inverse or padded_inverse_map(loads[0].indices, domains)
        if inverse is None or not inverse.has_unit_scale:
            reason = (
                f'the indices at which it reads "{buffer.name}" are not a bijective affine '
                "function of its iterators"
            )
    if reason or not isinstance(store, BufferStore) or inverse is None:
        raise BlockKindError(
            f"The {place.title} cannot be moved into its producer: {reason}",
            [place.realize],
            f"a body of the form C[…] = g(i, j, …, {buffer.name}[f(i, j, …)])",
        )
    return store, loads[0].indices, inverse


def _use_predicate(
    state: ScheduleState,
    producer: BlockPlace,
    inner: BlockRealize,
    place: BlockPlace,
    values: Mapping[Var, PrimExpr],
    read: Sequence[PrimExpr],
    written: Sequence[PrimExpr],
) -> PrimExpr:
    """That the consumer uses the element that is being written, and the producer's predicate where
    that does not follow."""
    inner_place = state.block(inner.block.identity)
    analyzer = Analyzer({**inner_place.domains_around, **inner.block.domains})
    bound = inner.bindings
    extra: list[PrimExpr] = []
    for var, domain in (executed_domains(place) or place.block.domains).items():
        value = values[var]
        extra += [value >= domain.min, value < domain.min + domain.extent]
    extra += [equal(r, w) for r, w in zip(read, written, strict=True)]
    needed = [condition for condition in extra if not analyzer.can_prove(condition)]
    used: list[PrimExpr] = []
    of_consumer = {*place.domains_around, *place.block.domains, *let_variables(place, None)}
    elsewhere = of_consumer - {*bound, *inner_place.domains_around}
    for condition in needed:
        if variables_in(condition) & elsewhere:
            raise DataflowError(
                f"The {place.title} uses a part of the elements that the producer "
                f'"{producer.block.name_hint}" computes, which no predicate can tell',
                [place.realize, producer.realize],
                "compute_inline of the producer, or reverse_compute_at",
            )
        used.append(substitute(analyzer.simplify(condition), bound))
    if not used:
        return inner.predicate
    with analyzer.constraint(conjunction(used)):
        follows = analyzer.can_prove(inner.predicate)
    parts = used if follows else [*conjuncts(inner.predicate), *used]
    # As TVM does, which knows nothing of the loops here.
    return Analyzer(inner.block.domains).simplify(conjunction(parts))


def _without_allocation(state: ScheduleState, scope: BlockPlace, buffer: Buffer) -> ScheduleState:
    place = state.block(scope.block.identity)
    kept = tuple(b for b in place.block.alloc_buffers if b is not buffer)
    return state.with_fields(place, alloc_buffers=kept)
