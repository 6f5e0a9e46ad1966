"""pad_einsum: rounding the domains of a block's iterators up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mlcweb.arith import Analyzer, conjunction
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, rewrite_nodes, walk
from mlcweb.schedule.analysis.effects import is_local, must_write, runs_whole_domain
from mlcweb.schedule.analysis.scopes import (
    check_affine,
    check_binds_loops,
    check_complete_or_reduction,
    scope_around,
)
from mlcweb.schedule.analysis.units import hidden_accesses
from mlcweb.schedule.arguments import Integers
from mlcweb.schedule.errors import BlockKindError, DataflowError, FactorError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import with_new_regions
from mlcweb.schedule.rewriting.nests import copy_of, in_loops, nest_of, stage, with_allocated
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import const, constant_value, floordiv, is_const_int, less
from mlcweb.tir.buffer import Buffer, Range, full_region
from mlcweb.tir.dtype import max_value
from mlcweb.tir.expr import Add, BufferLoad, Cast, IntImm, Mul, PrimExpr, Var
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.stmt import (
    BlockIdentity,
    BlockRealize,
    BufferStore,
    For,
    IterType,
    IterVar,
    Stmt,
    sequence,
)
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@primitive("PadEinsum")
def pad_einsum(state: ScheduleState, block: BlockIdentity, padding: Integers) -> ScheduleState:
    """Round the domains of a block's iterators up to multiples of `padding`.

    Inputs that become larger are read from copies, filled with zeros; the output is written to a
    larger buffer, of which a new block copies the inside back.

    Checked: a factor for each iterator, all positive; the block is complete or a reduction block,
    its loops hold it alone, and its body is one store; all indices are iterators or constants;
    spatial iterators that are padded are indices of the output; where a reduction iterator is
    padded, zeros add nothing to the sum; the block declares all that it accesses.

    rewrite, by [8, 8, 8]:
        for i, j, k in T.grid(12, 20, 17):        for i0, i1 in T.grid(16, 24): (block "A_pad") …
            (block "C") C[vi, vj] = …       -->   for i0, i1 in T.grid(24, 24): (block "B_pad") …
                                                  for i, j, k in T.grid(16, 24, 24): (block "C") …
                                                  for i0, i1 in T.grid(12, 20): (block "C_pad") …
    """
    place = state.block(block)
    iter_vars = place.block.iter_vars
    if len(padding) != len(iter_vars) or any(factor <= 0 for factor in padding):
        raise BlockKindError(
            f"The padding {list(padding)} for the {place.title} is invalid: it should be a list "
            f"of {len(iter_vars)} positive integers, one for each iterator",
            [place.realize],
            "for each iterator the number that its extent is padded to a multiple of",
        )
    check_complete_or_reduction(state, place)
    check_affine(state, place)
    scope_around(state, place).check_links(place)
    check_binds_loops(place, place.loops)
    nest = nest_of(place, "pad_einsum")
    _check_einsum(place)
    _check_declared(place)
    extents = _padded_extents(place, padding)
    grown = {
        iter_var.var: extent
        for iter_var, extent in zip(iter_vars, extents, strict=True)
        if extent is not iter_var.domain.extent
    }
    if not grown:
        return state
    _check_other_elements(place, grown)
    _check_zeros_add_nothing(place, grown)
    copies = {
        region.buffer: copy
        for region in (*place.block.reads, *place.block.writes)
        if (copy := _grown_buffer(place, region.buffer, grown)) is not None
    }
    written = {region.buffer for region in place.block.writes}
    _check_copied_back(state, place, [buffer for buffer in copies if buffer in written])
    before = [
        _filled_copy(old, new, _extents_read(place, old))
        for old, new in copies.items()
        if old not in written
    ]
    after = [
        _elementwise(new.name, old, partial(BufferLoad, new))
        for old, new in copies.items()
        if old in written
    ]
    realize = _grown_realize(place, extents, copies)
    loops = [replace(old, extent=_grown_loop(old, place, grown)) for old in place.loops]
    scope = state.scope_of(place)
    changed = sequence(*before, in_loops(realize, loops), *after)
    state = state.replaced(place.function, {nest: changed})
    return with_allocated(state, scope, *copies.values())


def _check_copied_back(state: ScheduleState, place: BlockPlace, buffers: Sequence[Buffer]) -> None:
    """The block writes all of the buffers that are copied back, in a domain that its loops run
    through, and so their larger copies."""
    if not runs_whole_domain(place):
        raise BlockKindError(
            f"The loops around {place.title} do not run its iterators through their whole "
            "domains, so that these cannot be padded",
            [place.realize],
            "iterators that are bound to a loop each, over the same domain",
        )
    for buffer in buffers:
        whole = full_region(buffer).region
        if not is_local(state.scope_of(place), buffer) and not must_write(
            place, buffer, None, whole
        ):
            raise DataflowError(
                f'The {place.title} is not sure to write all of "{buffer.name}", which would be '
                "copied back as a whole",
                [place.realize],
                "a block that writes the whole buffer",
            )


def _check_declared(place: BlockPlace) -> None:
    for buffer in itertools.chain(*hidden_accesses(place.block)):
        raise BlockKindError(
            f'The {place.title} accesses "{buffer.name}" without declaring it, and would do so '
            "behind its end",
            [place.realize],
            "pad before unsafe_hide_buffer_access or cache_index",
        )


def _check_einsum(place: BlockPlace) -> None:
    name = place.block.name_hint
    stores = [s for s in (place.block.body, place.block.init) if s is not None]
    if not all(isinstance(statement, BufferStore) for statement in stores):
        raise BlockKindError(
            f'The block "{name}" is not a computation of Einsum pattern: its body is not one store',
            [place.realize],
            "a block such as C[i, j] = C[i, j] + A[i, k] * B[k, j]",
        )
    if not is_const_int(place.realize.predicate, 1):
        raise BlockKindError(
            f'The block "{name}" has a predicate, so that its domains are not what runs',
            [place.realize],
            "pad_einsum before splitting loops by factors that do not divide",
        )
    variables = {iter_var.var for iter_var in place.block.iter_vars}
    for node in walk(place.block):
        if not isinstance(node, (BufferLoad, BufferStore)):
            continue
        for index in node.indices:
            if index not in variables and not isinstance(index, IntImm):
                raise BlockKindError(
                    f'The block "{name}" is not a computation of Einsum pattern: '
                    f'"{node.buffer.name}" is accessed at {index!r}, which is neither an iterator '
                    "nor a constant",
                    [place.realize],
                    "reindex the buffer first, so that it is accessed at the iterators",
                )
    by_buffer: dict[Buffer, tuple[PrimExpr, ...]] = {}
    for node in find_nodes(place.block, BufferLoad, BufferStore):
        first = by_buffer.setdefault(node.buffer, node.indices)
        pairs = zip(first, node.indices, strict=True)
        if not all(a is b or constant_value(a) == constant_value(b) is not None for a, b in pairs):
            raise BlockKindError(
                f'The block "{name}" accesses "{node.buffer.name}" at different indices',
                [place.realize],
                "one access per buffer, besides that of the sum itself",
            )


def _padded_extents(place: BlockPlace, padding: Sequence[int]) -> list[PrimExpr]:
    extents: list[PrimExpr] = []
    inside = {*place.domains_around, *place.block.domains}
    for iter_var, factor in zip(place.block.iter_vars, padding, strict=True):
        domain = iter_var.domain
        if factor == 1:
            extents.append(domain.extent)
            continue
        if (
            not is_const_int(domain.min, 0)
            or variables_in(domain.extent) & inside
            or reads_memory(domain.extent)
        ):
            raise BlockKindError(
                f'The domain of iterator "{iter_var.var.name}" does not start at 0, or has another '
                "end in each iteration of a loop, so it cannot be padded",
                [place.realize],
                "extents of constants and sizes of parameters, and domains that start at 0",
            )
        extent, size = domain.extent, const(factor, domain.extent.dtype)
        padded = floordiv(extent + (size - 1), size) * size
        number, limit = constant_value(extent), max_value(extent.dtype)
        if isinstance(number, int) and -(-number // factor) * factor > limit:
            raise FactorError(
                f'The domain of iterator "{iter_var.var.name}", padded to a multiple of {factor}, '
                f"does not fit {extent.dtype}, the type of the iterator",
                [place.realize],
                f"a padded extent of at most {limit}, or iterators of int64",
            )
        extents.append(extent if Analyzer().can_prove_equal(padded, extent) else padded)
    return extents


def _check_other_elements(place: BlockPlace, grown: Mapping[Var, PrimExpr]) -> None:
    """The iterations that a spatial iterator gains store to elements of their own."""
    store = place.block.body
    assert isinstance(store, BufferStore)
    for iter_var in place.block.iter_vars:
        var = iter_var.var
        if (
            iter_var.iter_type == IterType.DATA_PARALLEL
            and var in grown
            and var not in store.indices
        ):
            raise BlockKindError(
                f'The iterator "{var.name}" is no index of "{store.buffer.name}", so that its '
                "padded iterations would store to the same elements again",
                [place.realize],
                "a padding of 1 for iterators that are no index of the output",
            )


def _check_zeros_add_nothing(place: BlockPlace, grown: Mapping[Var, PrimExpr]) -> None:
    reduced = [
        iter_var.var
        for iter_var in place.block.iter_vars
        if iter_var.iter_type == IterType.COMM_REDUCE and iter_var.var in grown
    ]
    store = place.block.body
    assert isinstance(store, BufferStore)
    for var in reduced:
        term = _added_term(store)
        zero = None if term is None else rewrite_nodes(term, PrimExpr, partial(_zero_for, var))
        if zero is None or constant_value(Analyzer().simplify(zero)) != 0:
            raise DataflowError(
                f'Padding the reduction iterator "{var.name}" of {place.title} would change its '
                f"result: with zeros as input, {store.value!r} does not leave "
                f'"{store.buffer.name}" as it is',
                [place.realize],
                "a padding of 1 for the reduction iterators",
            )


def _added_term(store: BufferStore) -> PrimExpr | None:
    """x in a store C[…] = C[…] + x."""
    value = store.value
    if not isinstance(value, Add):
        return None
    for one, other in ((value.a, value.b), (value.b, value.a)):
        if isinstance(one, BufferLoad) and one.buffer is store.buffer:
            return other
    return None


def _zero_for(var: Var, node: PrimExpr) -> PrimExpr:
    """Zero in place of a load that a padded iterator indexes, or of a product with zero. An input
    that is not finite is not considered, as in TVM."""
    is_zero = (
        (isinstance(node, BufferLoad) and var in node.indices)
        or (isinstance(node, Mul) and 0 in (constant_value(node.a), constant_value(node.b)))
        or (isinstance(node, Cast) and constant_value(node.value) == 0)
    )
    return const(0, node.dtype) if is_zero else node


def _grown_buffer(
    place: BlockPlace, buffer: Buffer, grown: Mapping[Var, PrimExpr]
) -> Buffer | None:
    indices = _indices(place, buffer)
    if indices is None:  # It is declared, and not accessed.
        return None
    pairs = list(zip(indices, buffer.shape, strict=True))
    if not any(index in grown for index, _ in pairs):
        return None
    shape = tuple(grown.get(index, extent) for index, extent in pairs)  # type: ignore[call-overload]
    return copy_of(buffer, buffer.scope(), shape, f"{buffer.name}_pad")


def _indices(place: BlockPlace, buffer: Buffer) -> tuple[PrimExpr, ...] | None:
    """Where the block accesses a buffer."""
    accesses = (
        node.indices
        for node in find_nodes(place.block, BufferLoad, BufferStore)
        if node.buffer is buffer
    )
    return next(accesses, None)


def _extents_read(place: BlockPlace, buffer: Buffer) -> list[PrimExpr]:
    """How much of each dimension the block reads from 0 on: as far as the iterator goes, which may
    be less than there is."""
    domains = {v.var: v.domain.extent for v in place.block.iter_vars}
    analyzer = Analyzer()
    extents: list[PrimExpr] = []
    for index, extent in zip(_indices(place, buffer) or (), buffer.shape, strict=True):
        domain = domains.get(index)  # type: ignore[call-overload]
        if domain is None or analyzer.can_prove_equal(domain, extent):
            domain = extent
        extents.append(domain)
    return extents


def _filled_copy(buffer: Buffer, padded: Buffer, extents: Sequence[PrimExpr]) -> Stmt:
    """A block that copies the `extents` of a buffer into a larger one, with zeros around them."""

    def value(iterators: tuple[Var, ...]) -> PrimExpr:
        shapes = zip(iterators, extents, buffer.shape, padded.shape, strict=True)
        inside = conjunction(
            less(var, extent) for var, extent, old, new in shapes if old is not new
        )
        return if_then_else(inside, BufferLoad(buffer, iterators), const(0, buffer.dtype))

    return _elementwise(padded.name, padded, value)


def _elementwise(name: str, target: Buffer, value: Callable[[tuple[Var, ...]], PrimExpr]) -> Stmt:
    """A block that stores a value of its iterators to each element of a buffer."""
    loops = {Var(f"i{n}", extent.dtype): extent for n, extent in enumerate(target.shape)}
    iterators = tuple(Var(f"v{n}", loop.dtype) for n, loop in enumerate(loops))
    iter_vars = [
        IterVar(Range(const(0, extent.dtype), extent), var)
        for extent, var in zip(target.shape, iterators, strict=True)
    ]
    store = BufferStore(target, value(iterators), iterators)
    return stage(name, loops, zip(iter_vars, loops, strict=True), store)


def _grown_realize(
    place: BlockPlace, extents: Sequence[PrimExpr], copies: Mapping[Buffer, Buffer]
) -> BlockRealize:
    iter_vars = tuple(
        iter_var
        if extent is iter_var.domain.extent
        else replace(iter_var, dom=Range(iter_var.domain.min, extent))
        for iter_var, extent in zip(place.block.iter_vars, extents, strict=True)
    )
    block = replace(substitute(replace(place.block, iter_vars=()), {}, copies), iter_vars=iter_vars)
    # What was declared by hand may cover the old extents alone.
    block = with_new_regions(block, {copy: copy for copy in copies.values()})
    return replace(place.realize, block=block)


def _grown_loop(loop: For, place: BlockPlace, grown: Mapping[Var, PrimExpr]) -> PrimExpr:
    for iter_var, value in place.realize.iterators:
        if value is loop.loop_var and iter_var.var in grown:
            return grown[iter_var.var]
    return loop.extent
