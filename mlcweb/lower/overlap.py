"""Where lowering makes software pipelines and double buffers: in loops without blocks, where each
buffer is allocated where it is used, and as large as it has to be.
"""

from __future__ import annotations

from mlcweb.lower.async_copies import copies_at_once
from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import BlockConversion
from mlcweb.lower.double_buffer import inject_double_buffer, is_double_buffer
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.pipeline_annotations import has_pipelines
from mlcweb.lower.place_allocations import place_outside_of_threads
from mlcweb.lower.software_pipeline import inject_software_pipeline
from mlcweb.lower.storage_align import align_shared_storage
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


@lowering_pass("InjectSoftwarePipeline")
def overlap(func: PrimFunc) -> PrimFunc:
    """Software pipelines and double buffers, of a function without blocks; what comes out has none
    either. Asynchronous copies are done when the next statement begins."""
    return copies_at_once(_overlapped(func))


@lowering_pass("InjectSoftwarePipeline")
def overlap_asynchronously(func: PrimFunc) -> PrimFunc:
    """The same with asynchronous copies as they are marked."""
    return _overlapped(func)


def _overlapped(func: PrimFunc) -> PrimFunc:
    doubled = any(map(is_double_buffer, S.statements_in(func.body)))
    if not (doubled or has_pipelines(func)):
        return func
    for run in (
        place_outside_of_threads,
        compact_buffers,
        align_shared_storage,
        inject_software_pipeline,
        BlockConversion().run,
        inject_double_buffer,
    ):
        func = run(func)
    return func
