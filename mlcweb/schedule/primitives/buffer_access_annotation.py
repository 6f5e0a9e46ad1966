"""What a block declares to read and write: annotate_buffer_access, unsafe_hide_buffer_access."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.analysis import block_access_regions
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.arguments import ACCESSES, Access, Integers, Region, accessed_buffer
from mlcweb.schedule.errors import DataflowError, NotFoundError
from mlcweb.schedule.regions import iterator_domains, regions_of
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.stmt import BlockIdentity


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
    known = list(place.block.annotations.get(key, ()))
    numbers = known if buffer_index in known else [*known, buffer_index]
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
        if not 0 <= index < len(regions):
            raise NotFoundError(
                f'The block "{place.block.name_hint}" has {len(regions)} {buf_type} region(s), and '
                f"the buffer index {index} is not in [0, {len(regions)})",
                [place.realize],
                "the buffers are, in order: "
                + (", ".join(f'"{region.buffer.name}"' for region in regions) or "none"),
            )
    kept = [region for n, region in enumerate(regions) if n not in buf_index_array]
    return _with_regions(state, place, buf_type, kept, {})


def _check_of_iterators(place: BlockPlace, declared: BufferRegion) -> None:
    known = {iter_var.var for iter_var in place.block.iter_vars}
    for side in declared.region:
        for node in (*walk(side.min), *walk(side.extent)):
            if isinstance(node, BufferLoad) or (isinstance(node, Var) and node not in known):
                raise DataflowError(
                    f'The region given for "{declared.buffer.name}" uses {node!r}, which is no '
                    f'iterator of the block "{place.block.name_hint}"',
                    [place.realize],
                    "a region that is known from the iterators, such as the whole buffer",
                )


def _check_holds(place: BlockPlace, declared: BufferRegion, access: str) -> None:
    """Raise DataflowError where the region is known to leave out what the block accesses."""
    found = block_access_regions(place.block)
    analyzer = Analyzer(iterator_domains(place.block))
    for actual in regions_of(found.reads if access == "read" else found.writes, declared.buffer):
        for given, needed in zip(declared.region, actual.region, strict=True):
            is_below = analyzer.can_disprove(given.min <= needed.min)
            end = needed.min + needed.extent
            if is_below or analyzer.can_disprove(end <= given.min + given.extent):
                raise DataflowError(
                    f'The block "{place.block.name_hint}" {access}s elements of '
                    f'"{declared.buffer.name}" outside of the region given for it',
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
    block = place.block
    fields = {"reads" if access == "read" else "writes": tuple(regions)}
    new = replace(block, annotations={**block.annotations, **notes}, **fields)
    return state.replaced(place.function, {block: new})
