"""Staging copies in the order of a block's iterators: reindex, reindex_cache_read and _write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.analysis.effects import reads_old_elements
from mlcweb.arith import Analyzer, eval_set, same_expressions
from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.ir.visitor import walk
from mlcweb.schedule.accessed_buffer import AccessedBuffer
from mlcweb.schedule.analysis.effects import is_local, must_write_each_time, runs_whole_domain
from mlcweb.schedule.analysis.iteration_domain import executed_domains
from mlcweb.schedule.analysis.scopes import (
    check_affine,
    check_binds_loops,
    check_leaf,
    is_trivially_true,
    scope_around,
    scope_at,
)
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.arguments import StorageScope
from mlcweb.schedule.errors import BlockKindError, DataflowError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import with_accesses, with_new_regions
from mlcweb.schedule.rewriting.locations import StageLocation, location_after
from mlcweb.schedule.rewriting.nests import (
    Access,
    copy_of,
    copying_store,
    nest_of,
    position_in,
    stage,
    with_stages,
)
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import add, is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.dtype import lanes
from mlcweb.tir.expr import BufferLoad, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BufferStore, For, IterVar, SeqStmt, Stmt
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@primitive("ReIndex")
def reindex(
    state: ScheduleState, block: BlockIdentity, buffer: AccessedBuffer
) -> tuple[ScheduleState, BlockIdentity]:
    """Let a block access a buffer through a copy, which has a dimension for each iterator in the
    simplified indices of the buffer. A new block makes the copy right before the block's loops, or
    copies back right after them.

    Checked: the block holds no other block, and its loops hold it alone; its scope is a stage
    pipeline; all accesses of the buffer have the same indices, of one element, which stay inside of
    the buffer; a buffer that is read is not written, and one that is written has no earlier
    contents to keep.

    rewrite:
                                                 for ax0, ax1 in T.grid(…): (block "W_reindex_…")
        for i, k in T.grid(…):              -->      W_reindex[v0, v1] = W[v1, v0]
            (block "C") … W[vk, vi]              for i, k in T.grid(…):
                                                     (block "C") … W_reindex[vi, vk]
    """
    place = state.block(block)
    access, old = buffer.access, buffer.at(place)
    indices = _simplified(place, _single_indices(state, place, old, access))
    used = _used_iterators(place, indices)
    name = f"{old.name}_reindex"
    shape = tuple(iter_var.domain.extent for iter_var in used)
    copy = copy_of(old, old.scope(), shape, name)
    values = tuple(iter_var.var for iter_var in used)
    target = copy if access == "read" else old
    iterators = {iter_var: Var(f"v{n}", iter_var.var.dtype) for n, iter_var in enumerate(used)}
    loops = _loop_each(used)
    ends = (old, indices), (copy, values)
    name = f"{target.name}_reindex"
    nest_of(place, "reindex")
    scope = state.scope_of(place).block
    location = StageLocation(scope, position_in(scope, place) + (access == "write"))
    return _staged(state, place, access, *ends, iterators, loops, list(loops), name, location)


@primitive("ReindexCacheRead", inputs=("index_map",))
def reindex_cache_read(
    state: ScheduleState,
    block: BlockIdentity,
    read_buffer_index: int,
    storage_scope: StorageScope,
    index_map: IndexMap,
) -> tuple[ScheduleState, BlockIdentity]:
    """Let a block read a buffer through a copy in `storage_scope`, at the indices that a map of the
    block's iterators gives.

    Checked: as for `reindex`; the storage scope exists; the map takes all iterators of the block,
    uses those in the buffer's indices and no others, and gives each element a place of its own.

    rewrite, by lambda i, j: [j, i]:
                                                 for i, j in T.grid(…): (block "A_local")
        for i, j in T.grid(…):              -->      A_local[vj, vi] = A[vi, vj]
            (block "C") … A[vi, vj]              for i, j in T.grid(…):
                                                     (block "C") … A_local[vj, vi]
    """
    accessed = AccessedBuffer("read", read_buffer_index)
    return _reindex_cache(state, block, accessed, storage_scope, index_map)


@primitive("ReindexCacheWrite", inputs=("index_map",))
def reindex_cache_write(
    state: ScheduleState,
    block: BlockIdentity,
    write_buffer_index: int,
    storage_scope: StorageScope,
    index_map: IndexMap,
) -> tuple[ScheduleState, BlockIdentity]:
    """Let a block write a buffer through a copy in `storage_scope`, at the indices that a map of
    the block's iterators gives. Checked: as for `reindex_cache_read`."""
    accessed = AccessedBuffer("write", write_buffer_index)
    return _reindex_cache(state, block, accessed, storage_scope, index_map)


def _reindex_cache(
    state: ScheduleState,
    block: BlockIdentity,
    accessed: AccessedBuffer,
    storage_scope: str,
    index_map: IndexMap,
) -> tuple[ScheduleState, BlockIdentity]:
    place = state.block(block)
    access, buffer = accessed.access, accessed.at(place)
    indices = _single_indices(
        state, place, buffer, access, is_trivially_true(place.realize.predicate)
    )
    used = _used_iterators(place, indices)
    values, shape = _mapped(place, buffer, index_map, indices, used)
    copy = copy_of(buffer, storage_scope, shape)
    iterators = {iter_var: Var(iter_var.var.name, iter_var.var.dtype) for iter_var in used}
    location = _location_of_copy(state, place, buffer, access, indices)
    loops, bound = _loops_of_copy(place, used, location)
    ends = (buffer, indices), (copy, values)
    return _staged(state, place, access, *ends, iterators, loops, bound, copy.name, location)


def _location_of_copy(
    state: ScheduleState,
    place: BlockPlace,
    buffer: Buffer,
    access: str,
    indices: Sequence[PrimExpr],
) -> StageLocation:
    """Between the block that writes the buffer and the one that reads it, with loops alone around
    the block there; at the start of the scope for what is only read."""
    scope = state.scope_of(place)
    blocks = scope_at(state, scope)
    if access == "write":
        location = location_after(state, scope, place, blocks.readers_of(buffer))
    elif buffer in blocks.writers:
        location = location_after(state, scope, blocks.writers_of(buffer)[-1], [place])
    else:
        at_start = not any(map(reads_memory, indices))
        location = StageLocation(scope.block, 0 if at_start else position_in(scope.block, place))
    whole = is_trivially_true(place.realize.predicate) or location.loop is None
    inside = _parents_inside(place, location.container)
    if not whole or not all(isinstance(parent, (For, SeqStmt)) for parent in inside):
        container = f'block "{scope.block.name_hint}"'
        if location.loop is not None:
            container = f'loop "{location.loop.loop_var.name}"'
        raise LoopError(
            f"The loop nest of {place.title} is not directly in {container}: other statements or "
            "conditions enclose it",
            [place.realize],
            "a loop nest that no branch or other statement encloses",
        )
    return location


def _parents_inside(place: BlockPlace, container: For | Block) -> list[Stmt]:
    at = next(n for n, parent in enumerate(place.parents) if parent is container)
    return list(place.parents[at + 1 :])


def _loops_of_copy(
    place: BlockPlace, used: Sequence[IterVar], location: StageLocation
) -> tuple[dict[Var, PrimExpr], list[PrimExpr]]:
    """The loops of a copy (variable and extent), and what they bind the iterators to: as those of
    the block are there, or, where a predicate cuts these off, one for each iterator."""
    values = place.realize.bindings
    bound = [values[iter_var.var] for iter_var in used]
    if is_trivially_true(place.realize.predicate):
        driving = variables_in(*bound)
        inside = _parents_inside(place, location.container)
        loops: dict[Var, PrimExpr] = {}
        renamed: dict[Var, PrimExpr] = {}
        for loop in _driving_loops(place, driving):
            if not any(loop is parent for parent in inside):
                continue
            var = Var(loop.loop_var.name, loop.loop_var.dtype)
            loops[var] = substitute(loop.extent, renamed)
            renamed[loop.loop_var] = add(var, substitute(loop.min, renamed))
        return loops, [substitute(value, renamed) for value in bound]
    loops = _loop_each(used)
    return loops, list(loops)


def _loop_each(used: Sequence[IterVar]) -> dict[Var, PrimExpr]:
    """A loop, with its extent, for each iterator."""
    return {Var(f"ax{n}", i.var.dtype): i.domain.extent for n, i in enumerate(used)}


def _driving_loops(place: BlockPlace, driving: set[Var]) -> list[For]:
    """The loops over some variables, and those that these loops' own bounds depend on."""
    around = []
    for loop in reversed(place.loops):
        if loop.loop_var in driving:
            around.append(loop)
            driving = driving | variables_in(loop.min, loop.extent)
    return around[::-1]


def _single_indices(
    state: ScheduleState,
    place: BlockPlace,
    buffer: Buffer,
    access: str,
    in_loops_of_block: bool = False,
) -> tuple[PrimExpr, ...]:
    """The indices of all accesses of a buffer in a leaf block."""
    name = place.block.name_hint
    check_leaf(place, "reindex the block inside of it")
    check_stage_pipeline(state, state.scope_of(place))
    scope_around(state, place).check_declared(buffer)
    check_affine(state, place)
    check_binds_loops(place, place.loops)
    all_indices: list[tuple[PrimExpr, ...]] = []
    for node in walk(place.block):
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer:
            all_indices.append(node.indices)
        elif node is buffer.data:
            raise BlockKindError(
                f'The block "{name}" uses the address of "{buffer.name}"',
                [place.realize],
                "reindex before tensorize",
            )
    if any(lanes(index.dtype) > 1 for indices in all_indices for index in indices):
        raise BlockKindError(
            f'The block "{name}" accesses the buffer "{buffer.name}" by vectors, but its copy has '
            "one place per iteration",
            [place.realize],
            "a block that accesses one element in each iteration, whose loop is vectorized later",
        )
    for other in all_indices[1:]:
        if not same_expressions(all_indices[0], other):
            raise BlockKindError(
                f'The block "{name}" accesses the buffer "{buffer.name}" at different indices, '
                f"{_text(all_indices[0])} and {_text(other)}, but its copy has one place per "
                "iteration",
                [place.realize],
                "a block in which all accesses of the buffer have the same indices",
            )
    if not all_indices:
        raise BlockKindError(
            f'The block "{name}" does not access the buffer "{buffer.name}"',
            [place.realize],
            "a buffer that the block reads or writes",
        )
    for iter_var in _used_iterators(place, all_indices[0]):
        if not is_const_int(iter_var.domain.min, 0):
            raise BlockKindError(
                f'The iterator "{iter_var.var.name}" of block "{name}" does not start at 0',
                [place.realize],
                "iterators whose domains start at 0",
            )
    domains = (in_loops_of_block and executed_domains(place)) or place.block.domains
    _check_inside(place, buffer, all_indices[0], domains)
    if access == "write":
        _check_copied_back(state, place, buffer, in_loops_of_block)
    elif any(region.buffer is buffer for region in place.block.writes):
        raise DataflowError(
            f'The block "{name}" also writes "{buffer.name}", and the copy that it would write '
            "instead is not copied back",
            [place.realize],
            "reindex before decompose_reduction",
        )
    return all_indices[0]


def _simplified(place: BlockPlace, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The indices in simplest form. One that is constant only by the domains of its iterators keeps
    them, as in TVM."""
    analyzer = Analyzer(place.block.domains)
    simple = [analyzer.simplify(index) for index in indices]
    return tuple(
        index if isinstance(short, IntImm) else short
        for index, short in zip(indices, simple, strict=True)
    )


def _check_inside(
    place: BlockPlace, buffer: Buffer, indices: Sequence[PrimExpr], domains: Mapping[Var, Range]
) -> None:
    """`domains` are those that the iterators of the copy run through."""
    analyzer = Analyzer({**place.domains_around, **domains})
    for index, extent in zip(indices, buffer.shape, strict=True):
        low, high = eval_set(analyzer.simplify(index), domains, analyzer)
        if low is not None and high is not None:
            if analyzer.can_prove(low >= 0) and analyzer.can_prove(high < extent):
                continue
        raise BlockKindError(
            f'The index {index!r} of "{buffer.name}" is not known to stay in [0, {extent!r}), and '
            "the copy is made in all iterations, whatever conditions guard the access",
            [place.realize],
            "reindex before a split that does not divide the extent, or guard by T.where",
        )


def _check_copied_back(
    state: ScheduleState, place: BlockPlace, buffer: Buffer, in_loops_of_block: bool
) -> None:
    scope = scope_around(state, place)
    if len(scope.writers.get(buffer, ())) > 1 or reads_old_elements(place.block, buffer):
        raise DataflowError(
            f'The {place.title} updates elements of "{buffer.name}" that were written before, and '
            "the copy does not hold their first values",
            [place.realize],
            "reindex before decompose_reduction",
        )
    # A copy in the loops of the block runs as often as the block does.
    whole = in_loops_of_block or runs_whole_domain(place)
    if not is_local(state.scope_of(place), buffer) and not (
        whole and must_write_each_time(place, buffer)
    ):
        raise DataflowError(
            f'The {place.title} is not sure to write "{buffer.name}" in all iterations of its '
            "iterators, which the copy back would do",
            [place.realize],
            "a block without conditions, whose loops run through the domains of its iterators",
        )


def _used_iterators(place: BlockPlace, indices: Sequence[PrimExpr]) -> list[IterVar]:
    used = variables_in(*indices)
    return [iter_var for iter_var in place.block.iter_vars if iter_var.var in used]


def _mapped(
    place: BlockPlace,
    buffer: Buffer,
    index_map: IndexMap,
    indices: Sequence[PrimExpr],
    used: Sequence[IterVar],
) -> tuple[tuple[PrimExpr, ...], tuple[PrimExpr, ...]]:
    """The indices and the shape of a copy that a map of the block's iterators gives."""
    iter_vars = [iter_var.var for iter_var in place.block.iter_vars]
    index_map = index_map.with_index_dtype(iter_vars[0].dtype if iter_vars else "int32")
    values = tuple(index_map.map_indices(iter_vars))
    mapped = variables_in(*values)
    needed = {iter_var.var for iter_var in used}
    for var in iter_vars:
        if (var in mapped) is (var in needed):
            continue
        here, there = _text(indices), _text(values)
        if var in mapped:
            here, there = there, here
        raise BlockKindError(
            f'The iterator "{var.name}" of {place.title} appears in {here}, but not in {there}',
            [place.realize],
            f'a map that uses the iterators in the indices of "{buffer.name}", and no others',
        )
    own = IndexMap(tuple(iter_var.var for iter_var in used), values)
    domains = [iter_var.domain for iter_var in used]
    try:
        own.non_surjective_inverse(domains)
        return values, tuple(own.map_shape([domain.extent for domain in domains]))
    except IndexMapError as error:
        raise BlockKindError(
            f'The copy of "{buffer.name}" cannot be indexed by {index_map!r}: {error.message}',
            [place.realize],
            "a map that gives each element a place of its own",
        ) from None


def _staged(
    state: ScheduleState,
    place: BlockPlace,
    access: str,
    original: Access,
    copy: Access,
    iterators: Mapping[IterVar, Var],
    loops: Mapping[Var, PrimExpr],
    bound: Sequence[PrimExpr],
    name: str,
    location: StageLocation,
) -> tuple[ScheduleState, BlockIdentity]:
    """The program with a block that copies at a location, and the block at `place` on the copy.
    `iterators` gives for iterators of the block those of the copying one, which are `bound` to
    values."""
    renamed = {iter_var.var: var for iter_var, var in iterators.items()}
    ends = [(b, [substitute(index, renamed) for index in i]) for b, i in (original, copy)]
    store = copying_store(*ends, reads=access == "read")
    iter_vars = (IterVar(iter_var.dom, var) for iter_var, var in iterators.items())
    nest = stage(name, loops, zip(iter_vars, bound, strict=True), store)
    container, position = location.container, location.position
    state, (block,) = with_stages(
        state, state.scope_of(place), container, position, [nest], copy[0]
    )
    old, new = original[0], copy[0]
    changed = with_new_regions(with_accesses(place.block, old, new, copy[1]), {old: new})
    return state.replaced(place.function, {place.block: changed}), block


def _text(indices: Sequence[PrimExpr]) -> str:
    return "[" + ", ".join(map(repr, indices)) + "]"
