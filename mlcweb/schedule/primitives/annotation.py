"""How loops run, what is annotated on loops and blocks, and what blocks declare to read and write:
parallel, vectorize, unroll, bind, annotate, unannotate, annotate_buffer_access,
unsafe_hide_buffer_access.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlcweb.analysis import block_access_regions
from mlcweb.analysis.threads import is_thread_tag, thread_tag, uses_barriers, uses_warp
from mlcweb.arith import Analyzer
from mlcweb.ir.visitor import walk
from mlcweb.schedule.accessed_buffer import ACCESSES, accessed_buffer
from mlcweb.schedule.analysis.iteration_order import check_compact_dataflow
from mlcweb.schedule.analysis.regions import regions_of
from mlcweb.schedule.analysis.scopes import driven_iterators
from mlcweb.schedule.arguments import Access, AnnotationValue, Integers, Region
from mlcweb.schedule.errors import (
    ArgumentError,
    BindingError,
    DataflowError,
    NotFoundError,
    UnsupportedError,
)
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, LoopPlace, Place, ScheduleState, block_realizes_below
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.stmt import BlockIdentity, For, ForKind, IterType, IterVar, statements_in

_IMPORTING_PRAGMAS = {"pragma_import_c": "C source code", "pragma_import_llvm": "LLVM code"}
_THREAD_TAG = re.compile(r"(blockIdx|threadIdx)\.[xyz]|vthread(\.[xyz])?|cthread")


@primitive("Parallel")
def parallel(state: ScheduleState, loop: Var) -> ScheduleState:
    """Run the iterations of a loop in any order, possibly at once.

    Checked: the blocks below form a compact dataflow; the loop binds spatial iterators only, is not
    over threads that exchange data, and its iterations do not depend on each other.

    rewrite:
        for i in range(8): ...             -->    for i in T.parallel(8): ...
    """
    return _with_kind(state, loop, ForKind.PARALLEL, "parallel")


@primitive("Vectorize")
def vectorize(state: ScheduleState, loop: Var) -> ScheduleState:
    """Run the iterations of a loop as lanes of vectors.

    Checked: the blocks below form a compact dataflow; the loop binds spatial iterators only, is not
    over threads that exchange data, and its iterations do not depend on each other.

    rewrite:
        for i in range(8): ...             -->    for i in T.vectorized(8): ...
    """
    return _with_kind(state, loop, ForKind.VECTORIZED, "vectorize")


@primitive("Unroll")
def unroll(state: ScheduleState, loop: Var) -> ScheduleState:
    """Repeat the body of a loop once per iteration in the code.

    Checked: the loop is not over threads that exchange data.

    rewrite:
        for i in range(8): ...             -->    for i in T.unroll(8): ...
    """
    place = state.loop(loop)
    _check_needs_no_threads(place, "unroll")
    return state.with_fields(place, kind=ForKind.UNROLLED, thread_binding=None)


@primitive("Bind")
def bind(state: ScheduleState, loop: Var, thread_axis: str) -> ScheduleState:
    """Run the iterations of a loop on a thread axis such as "blockIdx.x" or "threadIdx.y".

    Checked: as for `parallel`; an axis of threads inside a thread block (threadIdx) may also bind
    reduction iterators. Threads that exchange data stay in one block. Loops inside each other on
    one axis have the same extent. An unknown axis is an InternalError, too, as in TVM.

    rewrite:
        for i in range(8): ...   -->   for i in T.thread_binding(8, thread="blockIdx.x"): ...
    """
    place = state.loop(loop)
    if not _THREAD_TAG.fullmatch(thread_axis):
        raise ArgumentError(
            f'Unknown thread axis "{thread_axis}"',
            [place.loop],
            "blockIdx, threadIdx or vthread, each with .x, .y or .z",
        )
    across_threads = thread_axis.startswith("threadIdx")
    _check_needs_no_threads(place, "bind", thread_axis)
    at_once = thread_tag(place.loop) != "" and is_thread_tag(thread_axis)
    _check_parallelizable(state, place, "bind", across_threads, at_once)
    _check_one_extent(place, thread_axis)
    axis = IterVar(None, Var(thread_axis, loop.dtype), IterType.THREAD_INDEX, thread_axis)
    return state.with_fields(place, kind=ForKind.THREAD_BINDING, thread_binding=axis)


@primitive("Annotate", inputs=("ann_val",))
def annotate(
    state: ScheduleState, block_or_loop: Place, ann_key: str, ann_val: AnnotationValue
) -> ScheduleState:
    """Annotate a block or loop with a value; a key that is there already keeps its value.

    Refused: pragmas that import C or LLVM code, which no target here can link.
    """
    place, key, value = block_or_loop, ann_key, ann_val
    if key in _IMPORTING_PRAGMAS:
        raise UnsupportedError(
            f'The pragma "{key}" asks to link {_IMPORTING_PRAGMAS[key]}, and there is no compiler '
            "for it here",
            [place.statement],
            "tvm.register_func(name) of a Python function, or TensorIntrin.register(name, desc, "
            "impl) with a PrimFunc as the micro-kernel, and T.call_extern(name, …) calls it",
        )
    if key in place.node.annotations:
        return state
    return state.with_fields(place, annotations={**place.node.annotations, key: value})


@primitive("Unannotate")
def unannotate(state: ScheduleState, block_or_loop: Place, ann_key: str) -> ScheduleState:
    """Remove the annotation `ann_key` from a block or loop; an IndexError where there is none."""
    annotations = block_or_loop.node.annotations
    if ann_key not in annotations:
        there = ", ".join(map(repr, annotations)) or "none"
        raise IndexError(f"Cannot find annotation key: {ann_key} (annotations there: {there})")
    remaining = {k: v for k, v in annotations.items() if k != ann_key}
    return state.with_fields(block_or_loop, annotations=remaining)


@primitive("EnterPostproc")
def enter_postproc(state: ScheduleState) -> ScheduleState:
    """Mark in the trace that what follows is post-processing. The program stays the same."""
    return state


def _with_kind(state: ScheduleState, loop: Var, kind: ForKind, primitive: str) -> ScheduleState:
    place = state.loop(loop)
    _check_needs_no_threads(place, primitive)
    _check_parallelizable(state, place, primitive, across_threads=False)
    return state.with_fields(place, kind=kind, thread_binding=None)


def _check_needs_no_threads(place: LoopPlace, primitive: str, new_axis: str = "") -> None:
    """Raise BindingError where the iterations of a loop are threads that exchange data, and would
    no longer be: all threads come to a barrier before one goes on, other iterations do not."""
    loop, tag = place.loop, thread_tag(place.loop)
    if not tag or new_axis == tag or (is_thread_tag(new_axis) and not uses_warp(loop)):
        return
    if uses_barriers(loop):
        raise BindingError(
            f'The "{primitive}" cannot be applied to loop "{loop.loop_var.name}": its iterations '
            f'are threads of "{tag}" that exchange data, and would no longer wait for each other',
            [loop],
            f'"{primitive}" before the loop is bound to threads',
        )


def _check_one_extent(place: LoopPlace, axis: str) -> None:
    """Raise BindingError where a loop around or inside runs on the same axis, but not so often."""
    loop = place.loop
    for other in (*place.parents, *statements_in(loop.body)):
        if (
            isinstance(other, For)
            and other.thread_binding is not None
            and other.thread_binding.thread_tag == axis
            and not Analyzer().can_prove_equal(other.extent, loop.extent)
        ):
            raise BindingError(
                f'The loop "{loop.loop_var.name}" has {loop.extent} iterations, and the loop '
                f'"{other.loop_var.name}", on "{axis}" already, has {other.extent}: a thread has '
                "one index on an axis",
                [loop, other],
                "loops of one extent, or another axis",
            )


def _check_parallelizable(
    state: ScheduleState,
    place: LoopPlace,
    primitive: str,
    across_threads: bool,
    at_once: bool = False,
) -> None:
    """Check that the iterations of a loop may run at once, unless they are known to: threads, with
    barriers between what they do, that go to another axis."""
    if not at_once:
        check_compact_dataflow(state, place)
    loop, allowed = place.loop.loop_var, {IterType.DATA_PARALLEL}
    if across_threads:
        allowed.add(IterType.COMM_REDUCE)
    for realize in block_realizes_below(place.loop):
        for var, kind in driven_iterators(realize, loop).items():
            if kind in allowed:
                continue
            meaning = "a reduction" if kind == IterType.COMM_REDUCE else "not spatial"
            raise BindingError(
                f'The "{primitive}" cannot be applied to loop "{loop.name}": it binds the iterator '
                f'"{var.name}" of block "{realize.block.name_hint}", which is {meaning}, so its '
                "iterations depend on each other",
                [place.loop, realize],
                f'"{primitive}" of a loop that binds spatial iterators only'
                + ("" if primitive == "bind" else ", or rfactor of the reduction first"),
            )


@primitive("AnnotateBufferAccess", inputs=("buffer_index", "buf_type", "gen_new_ranges"))
def annotate_buffer_access(
    state: ScheduleState,
    block: BlockIdentity,
    buffer_index: int,
    buf_type: Access,
    gen_new_ranges: Region,
) -> ScheduleState:
    """Declare which region of a buffer a block reads or writes, where it is not what the accesses
    in the block say: accesses that depend on data, or on conditions.

    `gen_new_ranges` gets the block's iterators and returns for each dimension (begin, end), or one
    index. A ValueError where it returns another number of them than there are iterators (which is
    what TVM counts), or `buf_type` is neither "read" nor "write". An annotation notes which regions
    were declared in this way.

    Checked: the block accesses such a buffer, of as many dimensions; the region is arithmetic of
    the block's iterators, which is what a record holds; no side of it is known to leave out an
    element that the block accesses.

    rewrite:
        with T.block("B"):                         with T.block("B"):
            T.reads(A[vi])                   -->       T.reads(A[vi:vi + 4])
                                                       T.block_attr({"explicit_read_region": [0]})
    """
    place = state.block(block)
    region = gen_new_ranges
    buffer = accessed_buffer(place, buffer_index, buf_type)
    if len(region) != buffer.ndim:
        raise DataflowError(
            f'The region given for "{buffer.name}" has {len(region)} dimension(s), the buffer '
            f"{buffer.ndim}",
            [place.realize],
            "a region with a begin and an end for each dimension of the buffer",
        )
    declared = BufferRegion(buffer, tuple(region))
    _check_of_iterators(place, declared)
    _check_holds(place, declared, buf_type)
    key = f"explicit_{buf_type}_region"
    explicit = list(place.block.annotations.get(key, ()))
    numbers = explicit if buffer_index in explicit else [*explicit, buffer_index]
    regions = list(place.block.reads if buf_type == "read" else place.block.writes)
    regions[buffer_index] = declared
    return _with_regions(state, place, buf_type, regions, {key: numbers})


@primitive(
    "UnsafeHideBufferAccess", inputs=("buf_type", "buf_index_array"), title="hide-buffer-access"
)
def unsafe_hide_buffer_access(
    state: ScheduleState, block: BlockIdentity, buf_type: str, buf_index_array: Integers
) -> ScheduleState:
    """Take buffers out of what a block declares to read or write, so that a description of an
    intrinsic, which does not know them, matches the block.

    The schedule sees such accesses still, and refuses steps that they could make wrong.

    Checked: `buf_type` is "read" or "write", and the block declares so many such regions.

    rewrite:
        with T.block("B"):                         with T.block("B"):
            T.reads(A[I[vi]], I[vi])         -->       T.reads(A[I[vi]])
    """
    place = state.block(block)
    if buf_type not in ACCESSES:
        raise NotFoundError(
            f'The kind of access is "{buf_type}", which is neither "read" nor "write"',
            [place.realize],
            '"read" or "write"',
        )
    regions = place.block.reads if buf_type == "read" else place.block.writes
    for index in buf_index_array:
        accessed_buffer(place, index, buf_type)
    kept = [region for n, region in enumerate(regions) if n not in buf_index_array]
    return _with_regions(state, place, buf_type, kept, {})


def _check_of_iterators(place: BlockPlace, declared: BufferRegion) -> None:
    iterators = {iter_var.var for iter_var in place.block.iter_vars}
    for side in declared.region:
        for node in (*walk(side.min), *walk(side.extent)):
            if isinstance(node, BufferLoad) or (isinstance(node, Var) and node not in iterators):
                raise DataflowError(
                    f'The region given for "{declared.buffer.name}" uses {node!r}, which is no '
                    f"iterator of the {place.title}",
                    [place.realize],
                    "a region that is known from the iterators, such as the whole buffer",
                )


def _check_holds(place: BlockPlace, declared: BufferRegion, access: str) -> None:
    """Raise DataflowError where the region is known to leave out what the block accesses."""
    accessed = block_access_regions(place.block)
    analyzer = Analyzer(place.block.domains)
    for actual in regions_of(
        accessed.reads if access == "read" else accessed.writes, declared.buffer
    ):
        for side, needed in zip(declared.region, actual.region, strict=True):
            is_below = analyzer.can_disprove(side.min <= needed.min)
            end = needed.min + needed.extent
            if is_below or analyzer.can_disprove(end <= side.min + side.extent):
                raise DataflowError(
                    f'The {place.title} {access}s elements of "{declared.buffer.name}" outside of '
                    "the region given for it",
                    [place.realize],
                    f"a region that holds {actual!r}",
                )


def _with_regions(
    state: ScheduleState,
    place: BlockPlace,
    access: str,
    regions: Sequence[BufferRegion],
    notes: dict[str, list[int]],
) -> ScheduleState:
    fields = {"reads" if access == "read" else "writes": tuple(regions)}
    return state.with_fields(place, annotations={**place.block.annotations, **notes}, **fields)
