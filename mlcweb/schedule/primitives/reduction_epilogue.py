"""Letting a reduction start from what would be added to its result: fuse_reduction_epilogue."""

from __future__ import annotations

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import same_expression
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.errors import BlockKindError, DataflowError
from mlcweb.schedule.regions import iterator_domains, loads_of
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.scopes import (
    check_binds_loops,
    check_complete,
    check_not_output,
    check_reduction,
    is_trivially_true,
    scope_at,
    short_title,
)
from mlcweb.schedule.stage_pipeline import check_stage_pipeline, reads_only_written
from mlcweb.schedule.state import BlockPlace, ScheduleState, loops_above
from mlcweb.schedule.units import check_same_guards
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Add, BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BufferStore, IterType, Stmt
from mlcweb.tir.substitute import substitute

_FORM = "D[i, …] = C[i, …] + f(i, …) behind C[i, …] = C[i, …] + g(i, …, k), which starts from 0"


@primitive("FuseReductionEpilogue")
def fuse_reduction_epilogue(
    state: ScheduleState, reduction_block: BlockIdentity, epilogue_block: BlockIdentity
) -> ScheduleState:
    """Start a sum from the term that a second block would add to it, and remove that block.

    Floating-point sums are rounded in another order. Maxima and limits of a sum are refused: to
    apply them at each step is not to apply them to the sum.

    Checked: the scope is a stage pipeline; the reduction is a sum that starts from 0 into a buffer
    of the scope, each iteration of its spatial iterators into one element; the epilogue is the
    buffer's only reader, is complete, has no predicate and adds one term to each element; what the
    term reads is ready before the reduction.

    rewrite:
        (block "C") C[vi] = 0; C[vi] += A[vi, vk]       (block "C") D[vi] = bias[vi]
        (block "D") D[vi] = C[vi] + bias[vi]       -->              D[vi] = D[vi] + A[vi, vk]
    """
    reduction, epilogue = state.block(reduction_block), state.block(epilogue_block)
    scope = state.scope_of(reduction)
    check_stage_pipeline(state, scope)
    check_reduction(state, reduction)
    check_same_guards(epilogue, reduction, "the reduction does not run as often")
    buffer, indices = _sum(state, reduction)
    _check_order(state, scope, reduction, epilogue, buffer)
    check_complete(state, epilogue)
    check_binds_loops(epilogue, loops_above(epilogue))
    store, load, term = _added(epilogue, buffer)
    _check_covers(reduction, epilogue, buffer, load)
    values: dict[Var, PrimExpr] = {
        var: index for var, index in zip(load.indices, indices, strict=True) if isinstance(var, Var)
    }
    _check_term_ready(state, scope, reduction, epilogue, term)
    target = store.buffer
    places = tuple(substitute(index, values) for index in store.indices)
    start = BufferStore(target, substitute(term, values), places)
    body = reduction.block.body
    assert isinstance(body, BufferStore) and isinstance(body.value, Add)
    old = BufferLoad(target, places)
    ends = [old if _is_load(end, buffer) else end for end in (body.value.a, body.value.b)]
    update = BufferStore(target, Add(*ends), places)
    block = with_access_regions(replace(reduction.block, init=start, body=update))
    changes: dict[Stmt, Stmt | None] = {
        epilogue.realize: None,
        reduction.realize: replace(reduction.realize, block=block),
    }
    return state.replaced(reduction.function, changes)


def _is_load(value: PrimExpr, buffer: Buffer) -> bool:
    return isinstance(value, BufferLoad) and value.buffer is buffer


def _sum(state: ScheduleState, place: BlockPlace) -> tuple[Buffer, tuple[PrimExpr, ...]]:
    """The buffer of a sum, and where an iteration writes it."""
    block = place.block
    store, init = block.body, block.init
    spatial = {i.var for i in block.iter_vars if i.iter_type == IterType.DATA_PARALLEL}
    is_sum = (
        isinstance(store, BufferStore)
        and isinstance(init, BufferStore)
        and init.buffer is store.buffer
        and constant_value(init.value) == 0
        and isinstance(store.value, Add)
        and len(loads_of(store.value, store.buffer)) == 1
        and any(_is_load(end, store.buffer) for end in (store.value.a, store.value.b))
        and all(same_expression(a, b) for a, b in zip(init.indices, store.indices, strict=True))
        and {index for index in store.indices if isinstance(index, Var)} == spatial
        and len(set(store.indices)) == len(store.indices) == len(spatial)
    )
    if not is_sum:
        raise BlockKindError(
            f'The block "{block.name_hint}" is not a sum that starts from 0, with an element of '
            "its own for each iteration of its spatial iterators",
            [place.realize],
            _FORM,
        )
    assert isinstance(store, BufferStore)
    check_not_output(state, place, "a sum into a buffer that T.alloc_buffer makes")
    return store.buffer, store.indices


def _check_order(
    state: ScheduleState,
    scope: BlockPlace,
    reduction: BlockPlace,
    epilogue: BlockPlace,
    buffer: Buffer,
) -> None:
    blocks = scope_at(state, scope)
    readers = [r for r in blocks.readers_of(buffer) if r.block is not reduction.block]
    if [reader.block for reader in readers] != [epilogue.block]:
        names = ", ".join(short_title(reader) for reader in readers) or "none"
        raise DataflowError(
            f'The block "{epilogue.block.name_hint}" is not the only reader of "{buffer.name}"; '
            f"the readers are: {names}",
            [reduction.realize, *(reader.statement for reader in readers)],
            "compute_inline of the epilogue into its consumers",
        )
    target = epilogue.block.writes[0].buffer if epilogue.block.writes else None
    used = [
        place
        for place in (
            (*blocks.readers_of(target), *blocks.writers_of(target)) if target is not None else ()
        )
        if place.block is not epilogue.block
        and blocks.position(place.block) < blocks.position(epilogue.block)
    ]
    if used:
        raise DataflowError(
            f'The {used[0].title} uses what block "{epilogue.block.name_hint}" '
            "writes before that block stands there",
            [used[0].statement, epilogue.realize],
            "an epilogue into a buffer that no earlier block uses",
        )


def _added(place: BlockPlace, buffer: Buffer) -> tuple[BufferStore, BufferLoad, PrimExpr]:
    """The store of an epilogue, its load of the sum, and the term that it adds."""
    store = place.block.body
    if isinstance(store, BufferStore) and isinstance(store.value, Add):
        for load, term in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            if (
                isinstance(load, BufferLoad)
                and load.buffer is buffer
                and not loads_of(term, buffer)
                and not loads_of(term, store.buffer)
                and store.buffer.dtype == buffer.dtype
                and is_trivially_true(place.realize.predicate)
                and place.block.init is None
            ):
                return store, load, term
    raise BlockKindError(
        f'The block "{place.block.name_hint}" does not add one term to each element of '
        f'"{buffer.name}"; a function of the finished sum cannot be computed step by step',
        [place.realize],
        f"{_FORM}; or reverse_compute_at of the epilogue",
    )


def _check_covers(
    reduction: BlockPlace, epilogue: BlockPlace, buffer: Buffer, load: BufferLoad
) -> None:
    """Raise BlockKindError unless the epilogue's iterations are the elements of the sum."""
    domains = iterator_domains(epilogue.block)
    written = iterator_domains(reduction.block)
    sizes = [written[v] for v in reduction.block.body.indices]  # type: ignore[union-attr]
    is_same = set(load.indices) == set(domains) and len(load.indices) == len(domains) and all(
        same_expression(domains[index].min, size.min)  # type: ignore[index]
        and same_expression(domains[index].extent, size.extent)  # type: ignore[index]
        for index, size in zip(load.indices, sizes, strict=True)
    )  # fmt: skip
    if not is_same or not reads_only_written(epilogue, reduction, buffer):
        raise BlockKindError(
            f'The iterations of block "{epilogue.block.name_hint}" are not the elements of '
            f'"{buffer.name}", one for each',
            [reduction.realize, epilogue.realize],
            _FORM,
        )


def _check_term_ready(
    state: ScheduleState,
    scope: BlockPlace,
    reduction: BlockPlace,
    epilogue: BlockPlace,
    term: PrimExpr,
) -> None:
    blocks = scope_at(state, scope)
    here = blocks.position(reduction.block)
    for node in walk(term):
        if not isinstance(node, BufferLoad):
            continue
        for writer in blocks.writers_of(node.buffer):
            if blocks.position(writer.block) >= here:
                raise DataflowError(
                    f'The term that block "{epilogue.block.name_hint}" adds reads '
                    f'"{node.buffer.name}", which is not ready before the reduction: the block '
                    f'"{writer.block.name_hint}" writes it later',
                    [reduction.realize, writer.realize, epilogue.realize],
                    "a term of buffers that are written before the reduction",
                )
