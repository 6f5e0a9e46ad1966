"""The schedule primitives, one file per family. Importing this registers all of them, in the order
in which `Schedule` lists its methods."""

from mlcweb.schedule.primitives import (
    queries,
    sampling,
    loops,
    loop_partition,
    loop_structure,
    annotation,
    cache,
    cache_index,
    copy_at,
    compute_location,
    inline,
    reduction,
    rfactor,
    layout,
    block_layout,
    reindex,
    padding,
    decompose_padding,
    storage,
    rolling_buffer,
    blockize,
)
