"""Where reductions start: decompose_reduction, fuse_reduction_epilogue."""

from __future__ import annotations

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import same_expression, same_expressions
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.effects import (
    is_uncovered,
    reads_only_written,
    runs_whole_domain,
)
from mlcweb.schedule.analysis.iteration_order import (
    check_init_runs_first,
    check_repeats_no_reduction,
    init_predicate,
)
from mlcweb.schedule.analysis.regions import loads_of
from mlcweb.schedule.analysis.scopes import (
    check_affine,
    check_binds_loops,
    check_complete,
    check_not_output,
    check_reduction,
    runs_one_to_one,
    scope_around,
    scope_at,
    short_title,
)
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.analysis.units import (
    bound_reads,
    check_same_guards,
    check_unguarded,
    stands_in,
)
from mlcweb.schedule.errors import BindingError, BlockKindError, DataflowError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import in_fresh_loops, loops_from, part_of_block
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Add, BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, BufferStore, For, IterType, Stmt, sequence
from mlcweb.tir.substitute import substitute, uses


@primitive("DecomposeReduction")
def decompose_reduction(
    state: ScheduleState, block: BlockIdentity, loop: Var
) -> tuple[ScheduleState, BlockIdentity]:
    """Move the init of a reduction block into a block of its own, right before `loop`.

    A reduction of symbolic extent is taken to have iterations, as in TVM: of one without any, the
    init would be there after this, where before nothing was written.

    Checked: the block is a reduction block with an affine binding, whose init runs in the first
    iteration of what it reduces over; `loop` is around it and not
    inside of one of its reduction loops; no loop from there on repeats the whole reduction; what
    the init reads is written before `loop`, and what it writes is read after the reduction alone.

    rewrite:
        for i, j, k in T.grid(…):                 for i in range(…):
            with T.block("C"): (init, update)         for j_init in range(…): (block "C_init")
                                           -->        for k, j in T.grid(…): (block "C_update")
    """
    place = state.block(block)
    loop_place = state.loop(loop)
    check_reduction(state, place, _ADVICE, may_go_on=True)
    check_affine(state, place, even_without_predicate=True)
    inner = loops_from(place, loop_place.loop)
    _check_above_reduction(place, loop_place.loop)
    _check_not_repeated(state, place, inner)
    check_unguarded(place, loop_place.loop, "the init would run whatever it says")
    init_realize = _init_realize(place, inner)
    check_init_runs_first(place, "bind reduction iterators to loops that begin where they do")
    check_binds_loops(BlockPlace(place.function, init_realize, place.parents), inner)
    _check_init_moves(state, place, loop_place.loop, init_realize)
    values = init_realize.iter_values
    driving = [each for each in inner if any(uses(value, each.loop_var) for value in values)]
    body = in_fresh_loops(init_realize, driving, "_init")

    realize, old = place.realize, place.block
    written = {region.buffer for region in old.writes}
    others = (region for region in old.reads if region.buffer not in written)
    updated = replace(
        old, name_hint=f"{old.name_hint}_update", reads=(*old.writes, *others), init=None
    )
    nest = state.replaced(place.function, {realize: replace(realize, block=updated)}).loop(loop)
    state = state.replaced(place.function, {loop_place.loop: sequence(body, nest.loop)})
    return state, init_realize.block.identity


def _check_not_repeated(state: ScheduleState, place: BlockPlace, inner: tuple[For, ...]) -> None:
    for loop in inner:
        check_repeats_no_reduction(place.realize, loop, "decompose at a loop inside of it")
    if not runs_one_to_one(state, place, inner):
        raise BindingError(
            f'The loops from "{inner[0].loop_var.name}" on repeat parts of the reduction of block '
            f'"{place.block.name_hint}", which a single init before them would not do',
            [inner[0], place.realize],
            "decompose at a loop inside of them",
        )


def _check_above_reduction(place: BlockPlace, loop: For) -> None:
    name = loop.loop_var.name
    for outer in place.loops:
        if outer is loop:
            return
        for iter_var, value in place.realize.iterators:
            if iter_var.iter_type == IterType.COMM_REDUCE and uses(value, outer.loop_var):
                raise LoopError(
                    f'The loop "{name}" is inside of the reduction loop "{outer.loop_var.name}", '
                    "so the initial value would be set again in the middle of the reduction",
                    [loop, outer],
                    f'decompose at "{outer.loop_var.name}" or at a loop around it',
                )


def _check_init_moves(
    state: ScheduleState, place: BlockPlace, loop: For, init: BlockRealize
) -> None:
    """The init may run before all that the loop holds: nothing there changes what it reads, nor
    reads what it writes, unless the reduction has written it by then."""
    blocks = scope_around(state, place)
    here = blocks.position(place.block)
    read = {region.buffer for region in init.block.reads} | set(bound_reads(init))
    written = {region.buffer for region in init.block.writes}
    for number, unit in enumerate(blocks.units):
        if number == here or not stands_in(unit, loop):
            continue
        for region in unit.block.writes:
            if region.buffer in read:
                raise DataflowError(
                    f'The init of {place.title} reads "{region.buffer.name}", which the '
                    f'{unit.title} writes in the loop "{loop.loop_var.name}"',
                    [unit.statement, loop, place.realize],
                    "decompose at a loop that does not hold it",
                )
        for buffer in (*(r.buffer for r in unit.block.reads), *bound_reads(unit.realize)):
            if buffer in written and (number < here or is_uncovered(buffer, [place], unit)):
                raise DataflowError(
                    f'The {unit.title} reads "{buffer.name}" in the loop "{loop.loop_var.name}" '
                    f"before the {place.title} has written it, and would find the initial values "
                    "of the reduction there",
                    [unit.statement, loop, place.realize],
                    "decompose at a loop that does not hold it",
                )


def _init_realize(place: BlockPlace, inner: tuple[For, ...]) -> BlockRealize:
    old = place.block
    assert old.init is not None
    bound = [
        (iter_var, value)
        for iter_var, value in place.realize.iterators
        if iter_var.iter_type == IterType.DATA_PARALLEL
    ]
    values = [value for _, value in bound]
    block = part_of_block(old, [i for i, _ in bound], old.name_hint + "_init", old.init)
    block = replace(block, annotations=old.annotations)
    predicate = init_predicate(place.realize, place.realize.predicate, place.loops, inner, values)
    return BlockRealize(tuple(values), predicate, block, span=place.realize.span)


_ADVICE = "decompose_reduction needs a block with T.init and a reduction iterator"
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
    check_reduction(state, reduction, _ADVICE)
    check_same_guards(epilogue, reduction, "the reduction does not run as often")
    buffer, indices = _sum(state, reduction)
    _check_order(state, scope, reduction, epilogue, buffer)
    check_complete(state, epilogue)
    check_binds_loops(epilogue, epilogue.loops)
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
        and same_expressions(init.indices, store.indices)
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
            f'The {epilogue.title} is not the only reader of "{buffer.name}"; the readers are: '
            f"{names}",
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
            f"The {used[0].title} uses what {epilogue.title} writes before that block stands there",
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
                and runs_whole_domain(place)
                and place.block.init is None
            ):
                return store, load, term
    raise BlockKindError(
        f'The {place.title} does not add one term to each element of "{buffer.name}"; a function '
        "of the finished sum cannot be computed step by step",
        [place.realize],
        f"{_FORM}; or reverse_compute_at of the epilogue",
    )


def _check_covers(
    reduction: BlockPlace, epilogue: BlockPlace, buffer: Buffer, load: BufferLoad
) -> None:
    """Raise BlockKindError unless the epilogue's iterations are the elements of the sum."""
    domains = epilogue.block.domains
    written = reduction.block.domains
    sizes = [written[v] for v in reduction.block.body.indices]  # type: ignore[union-attr]
    is_same = set(load.indices) == set(domains) and len(load.indices) == len(domains) and all(
        same_expression(domains[index].min, size.min)  # type: ignore[index]
        and same_expression(domains[index].extent, size.extent)  # type: ignore[index]
        for index, size in zip(load.indices, sizes, strict=True)
    )  # fmt: skip
    if not is_same or not reads_only_written(epilogue, reduction, buffer):
        raise BlockKindError(
            f'The iterations of {epilogue.title} are not the elements of "{buffer.name}", one for '
            "each",
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
                    f'The term that {epilogue.title} adds reads "{node.buffer.name}", which is '
                    f'not ready before the reduction: the block "{writer.block.name_hint}" writes '
                    "it later",
                    [reduction.realize, writer.realize, epilogue.realize],
                    "a term of buffers that are written before the reduction",
                )
