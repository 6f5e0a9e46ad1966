"""Random walks through the schedule primitives, for property tests.

`random_step` applies one randomly chosen primitive with random arguments. A refusal is part of the
walk; whatever is accepted must keep what the program computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlcweb.schedule import BlockRV, LoopRV, ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import IntImm, PrimFunc, Schedule, TensorIntrin

Choose = Callable[[Sequence[Any]], Any]

MAX_ITERATIONS = 20_000
"""Splits that do not divide add iterations; beyond this many the interpreter is too slow."""
MAX_LOOPS = 10
"""Loops around a block that are still split. Python allows 20 nested loops."""


def _all_blocks(sch: Schedule, choose: Choose) -> list[BlockRV]:
    root = sch.get_block("root")
    return sch.get_child_blocks(root)


def _some_block(sch: Schedule, choose: Choose) -> BlockRV:
    return choose(_all_blocks(sch, choose))


def _some_loop(sch: Schedule, choose: Choose) -> LoopRV:
    loops = sch.get_loops(_some_block(sch, choose))
    if not loops:
        raise ScheduleError("no loops")
    return choose(loops)


def _loop_to_split(sch: Schedule, choose: Choose) -> LoopRV:
    """Of a nest that is not too deep for the Python code that targets make, even when moved."""
    loops = sch.get_loops(_some_block(sch, choose))
    if len(loops) > MAX_LOOPS:
        raise ScheduleError("too many loops for a test")
    return choose(loops)


def split(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    loops = sch.get_loops(block)
    loop = choose(loops if len(loops) <= MAX_LOOPS else [None])
    factors = choose([[None, 2], [None, 3], [4, None], [2, None, 2], [None, 8], [None, 1], [5, 7]])
    if loop is None or _iterations(sch, loops) * prod(f or 1 for f in factors) > MAX_ITERATIONS:
        raise ScheduleError("too many iterations for a test")
    sch.split(loop, factors, preserve_unit_iters=choose([True, False]))


def _iterations(sch: Schedule, loops: Sequence[LoopRV]) -> int:
    return prod(_extent(sch, loop) for loop in loops)


def _extent(sch: Schedule, loop: LoopRV) -> int:
    """The number of iterations; a guess where it is not the same each time."""
    extent = sch.get(loop).extent
    return extent.value if isinstance(extent, IntImm) else 16


def split_perfectly(sch: Schedule, choose: Choose) -> None:
    loop = _loop_to_split(sch, choose)
    sch.split(loop, sch.sample_perfect_tile(loop, n=choose([2, 3])))


def fuse(sch: Schedule, choose: Choose) -> None:
    loops = sch.get_loops(_some_block(sch, choose))
    start = choose(range(len(loops)))
    sch.fuse(*loops[start : start + choose([1, 2, 3])], preserve_unit_iters=choose([True, False]))


def reorder(sch: Schedule, choose: Choose) -> None:
    loops = sch.get_loops(_some_block(sch, choose))
    order = []
    while loops and len(order) < 4:
        order.append(loops.pop(choose(range(len(loops)))))
    sch.reorder(*order)


def annotate_loop(sch: Schedule, choose: Choose) -> None:
    loop = _some_loop(sch, choose)
    choose([sch.parallel, sch.vectorize, sch.unroll, lambda x: sch.bind(x, "threadIdx.x")])(loop)


def _some_reduction(sch: Schedule, choose: Choose) -> BlockRV:
    blocks = _all_blocks(sch, choose)
    return choose([block for block in blocks if sch.get(block).init is not None] or blocks)


def decompose(sch: Schedule, choose: Choose) -> None:
    block = _some_reduction(sch, choose)
    sch.decompose_reduction(block, choose(sch.get_loops(block)))


def compute_under_consumer(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    consumers = sch.get_consumers(block)
    if not consumers:
        raise ScheduleError("no consumer")
    loop = choose(sch.get_loops(choose(consumers)))
    sch.compute_at(block, loop, preserve_unit_loops=choose([True, False]), index=choose([-1, -2]))


def compute_under_producer(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    producers = sch.get_producers(block)
    if not producers:
        raise ScheduleError("no producer")
    loop = choose(sch.get_loops(choose(producers)))
    sch.reverse_compute_at(block, loop, choose([True, False]), choose([-1, -2]))


def compute_at(sch: Schedule, choose: Choose) -> None:
    sch.compute_at(
        _some_block(sch, choose),
        _some_loop(sch, choose),
        preserve_unit_loops=choose([True, False]),
        index=choose([-1, -2]),
    )


def reverse_compute_at(sch: Schedule, choose: Choose) -> None:
    sch.reverse_compute_at(
        _some_block(sch, choose),
        _some_loop(sch, choose),
        preserve_unit_loops=choose([True, False]),
        index=choose([-1, -2]),
    )


def cache(sch: Schedule, choose: Choose) -> None:
    primitive = choose([sch.cache_read, sch.cache_write])
    primitive(_some_block(sch, choose), choose([0, 1]), choose(["global", "local"]))


def inline(sch: Schedule, choose: Choose) -> None:
    choose([sch.compute_inline, sch.reverse_compute_inline])(_some_block(sch, choose))


def rfactor(sch: Schedule, choose: Choose) -> None:
    sch.rfactor(choose(sch.get_loops(_some_reduction(sch, choose))), choose([0, 1, -1]))


def add_unit_loop(sch: Schedule, choose: Choose) -> None:
    sch.add_unit_loop(choose([_some_loop, _some_block])(sch, choose))


def merge(sch: Schedule, choose: Choose) -> None:
    blocks = _all_blocks(sch, choose)
    depth = choose([0, 0, 1, 2])
    loops = [sch.get_loops(block) for block in blocks]
    alike: dict[int, list[LoopRV]] = {}
    for nest in loops:
        if len(nest) > depth:
            alike.setdefault(_extent(sch, nest[depth]), []).append(nest[depth])
    sch.merge(*choose(list(alike.values()) or [[]])[: choose([2, 3])])


def sample_location(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    location = sch.sample_compute_location(block)
    choose([sch.compute_at, sch.reverse_compute_at])(block, location)


def reorder_iterators(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    order = list(range(len(sch.get(block).iter_vars)))
    sch.reorder_block_iter_var(block, choose([order[::-1], order[1:] + order[:1]]))


def sample_split(sch: Schedule, choose: Choose) -> None:
    loop = _loop_to_split(sch, choose)
    extent = _extent(sch, loop)
    divisors = [n for n in range(1, extent + 1) if extent % n == 0]
    inner = sch.sample_categorical(divisors, [1 / len(divisors)] * len(divisors))
    sch.split(loop, [None, inner])


def annotate(sch: Schedule, choose: Choose) -> None:
    target = choose([_some_loop, _some_block])(sch, choose)
    key = choose(["note", "pragma_note"])
    if choose([True, True, False]):
        sch.annotate(target, key, choose([1, "text", [1, 2], sch.sample_categorical([3], [1.0])]))
    else:
        sch.unannotate(target, key)


def set_scope(sch: Schedule, choose: Choose) -> None:
    sch.set_scope(_some_block(sch, choose), 0, choose(["global", "local", "shared"]))


def storage_align(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    sch.storage_align(block, 0, choose([0, -2]), choose([4, 8]), choose([0, 1]))


def unsafe_set_dtype(sch: Schedule, choose: Choose) -> None:
    """To a wider type, which keeps the numbers."""
    block = _some_block(sch, choose)
    buffer = sch.get(block).writes[0].buffer
    wider = {"float32": "float64", "int32": "int64"}.get(buffer.dtype)
    if wider is None:
        raise ScheduleError("wide already")
    sch.unsafe_set_dtype(block, 0, wider)


def blockize(sch: Schedule, choose: Choose) -> None:
    sch.blockize(_some_loop(sch, choose), preserve_unit_iters=choose([True, False]))


def schedule_inside(sch: Schedule, choose: Choose) -> None:
    """Split or reorder the loops of a block inside a block."""
    inside = [child for block in _all_blocks(sch, choose) for child in sch.get_child_blocks(block)]
    if not inside:
        raise ScheduleError("no nested block")
    loops = sch.get_loops(choose(inside))
    loop = choose(loops)
    if choose([True, False]):
        sch.split(loop, [None, choose([2, 3])])
    else:
        sch.reorder(*reversed(loops))


def reindex(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    access = choose(["read", "write"])
    sch.reindex(block, (access, choose([0, 1])))


def reindex_cache(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    access = choose([sch.reindex_cache_read, sch.reindex_cache_write])
    order = choose([1, -1])
    access(block, choose([0, 1]), choose(["global", "local"]), lambda *axes: axes[::order])


def _rearranged(choose: Choose) -> Callable[..., Any]:
    """A random one-to-one map of indices: a rotation or the last index in two parts."""
    parts = choose([0, 0, 2, 4])

    def index_map(*axes: Any) -> list[Any]:
        if parts:
            return [*axes[:-1], axes[-1] // parts, axes[-1] % parts]
        return [*axes[1:], axes[0]]

    return index_map


def transform_layout(sch: Schedule, choose: Choose) -> None:
    """Of an intermediate buffer; a parameter's layout is part of what the function is."""
    block = _some_block(sch, choose)
    buffer = sch.get(block).writes[0].buffer
    if buffer in sch.mod["main"].parameter_buffers:
        raise ScheduleError("a parameter")
    pad = choose([None, 0])
    sch.transform_layout(block, ("write", 0), _rearranged(choose), pad_value=pad)


def transform_block_layout(sch: Schedule, choose: Choose) -> None:
    sch.transform_block_layout(_some_block(sch, choose), _rearranged(choose))


def set_axis_separator(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    separators = choose([[1], []])
    if list(sch.get(block).writes[0].buffer.axis_separators) == separators:
        raise ScheduleError("nothing would change")
    sch.set_axis_separator(block, ("write", 0), separators)


def pad_einsum(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    axes = len(sch.get(block).iter_vars)
    if _iterations(sch, sch.get_loops(block)) > MAX_ITERATIONS // 8:
        raise ScheduleError("too many iterations for a test")
    sch.pad_einsum(block, [choose([1, 1, 2, 4]) for _ in range(axes)])


def decompose_padding(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    sch.decompose_padding(block, choose(sch.get_loops(block)))


def cache_update(sch: Schedule, choose: Choose) -> None:
    """Of a block that reads what it writes, if there is one."""
    blocks = _all_blocks(sch, choose)
    found = [(block, n) for block in blocks for n in _updated(sch, block)]
    sch.cache_inplace(*choose(found or [(choose(blocks), 0)]), choose(["global", "local"]))


def _updated(sch: Schedule, block: BlockRV) -> list[int]:
    written = [region.buffer for region in sch.get(block).writes]
    return [n for n, region in enumerate(sch.get(block).reads) if region.buffer in written]


def copy_at(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    loop = choose(sch.get_loops(block))
    choose([sch.read_at, sch.write_at])(loop, block, choose([0, 1]), choose(["shared", "local"]))


def partition(sch: Schedule, choose: Choose) -> None:
    sch.loop_partition(_some_loop(sch, choose), choose([[None, 2], [1, None], [2, None, 1]]))


def fuse_epilogue(sch: Schedule, choose: Choose) -> None:
    block = _some_reduction(sch, choose)
    sch.fuse_reduction_epilogue(block, choose(sch.get_consumers(block)))


def roll(sch: Schedule, choose: Choose) -> None:
    """Mostly after the move under a consumer, without which there is nothing to roll."""
    block = _some_block(sch, choose)
    consumers = sch.get_consumers(block)
    if consumers and choose([True, True, False]):
        sch.compute_at(block, choose(sch.get_loops(choose(consumers))))
    sch.rolling_buffer(block, 0)


def cache_index(sch: Schedule, choose: Choose) -> None:
    sch.cache_index(_some_block(sch, choose), "global", choose([0, 1, 2]))


def sample_partitioned(sch: Schedule, choose: Choose) -> None:
    loop = _loop_to_split(sch, choose)
    parts = choose([2, 3])
    factors = sch.sample_partitioned_tile(loop, parts, choose(range(1, parts)), choose([1, 2]))
    sch.split(loop, factors)


def widen_reads(sch: Schedule, choose: Choose) -> None:
    """Declare that a block may read all of a buffer."""
    block = _some_block(sch, choose)
    index = choose(range(len(sch.get(block).reads)))
    shape = sch.get(block).reads[index].buffer.shape
    _declare(sch, block, index, "read", [(0, extent) for extent in shape])


def declare_again(sch: Schedule, choose: Choose) -> None:
    """Declare that a block accesses what it does."""
    block = _some_block(sch, choose)
    access = choose(["read", "write"])
    regions = sch.get(block).reads if access == "read" else sch.get(block).writes
    index = choose(range(len(regions)))
    sides = [(side.min, side.min + side.extent) for side in regions[index].region]
    _declare(sch, block, index, access, sides)


def _declare(sch: Schedule, block: BlockRV, index: int, access: str, sides: list[Any]) -> None:
    if len(sch.get(block).iter_vars) != len(sides):
        raise ScheduleError("TVM asks for as many sides as there are iterators")
    sch.annotate_buffer_access(block, index, access, lambda *_: sides)


def hide_access(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    sch.unsafe_hide_buffer_access(block, choose(["read", "read", "write"]), [choose([0, 1])])


PRODUCT = "random_schedules.product"
PRODUCT_OF_TRANSPOSED = "random_schedules.product_of_transposed"


def product_of_tiles(second: str) -> list[PrimFunc]:
    """An intrinsic that adds the product of two 2x2 tiles: description and implementation, which
    has k outermost. `second` are the indices of the second tile."""
    head = """
@T.prim_func
def tile(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (2, 2), "float32", offset_factor=1, strides=[T.int32(), T.int32()])
    B = T.match_buffer(b, (2, 2), "float32", offset_factor=1, strides=[T.int32(), T.int32()])
    C = T.match_buffer(c, (2, 2), "float32", offset_factor=1, strides=[T.int32(), T.int32()])
    with T.block("root"):
        T.reads(C[0:2, 0:2], A[0:2, 0:2], B[0:2, 0:2])
        T.writes(C[0:2, 0:2])
        for {loops} in T.grid(2, 2, 2):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[{second}]
"""
    versions = [head.format(loops=loops, second=second) for loops in ("i, j, k", "k, i, j")]
    functions = [from_source(text) for text in versions]
    return [function for function in functions if isinstance(function, PrimFunc)]


TensorIntrin.register(PRODUCT, *product_of_tiles("vk, vj"), override=True)
TensorIntrin.register(PRODUCT_OF_TRANSPOSED, *product_of_tiles("vj, vk"), override=True)


def tensorize(sch: Schedule, choose: Choose) -> None:
    """Tile the three innermost loops of a reduction, and compute the tiles by an intrinsic."""
    block = _some_reduction(sch, choose)
    intrin = choose([PRODUCT, PRODUCT_OF_TRANSPOSED])
    loops = sch.get_loops(block)
    if sch.get(block).init is not None:
        sch.decompose_reduction(block, loops[0])
    inner = sch.get_loops(block)[-3:]
    if len(loops) > MAX_LOOPS:
        raise ScheduleError("too many loops for a test")
    pairs = [sch.split(loop, [None, 2]) for loop in inner]
    sch.reorder(*[outer for outer, _ in pairs], *[inner for _, inner in pairs])
    sch.tensorize(pairs[0][1], intrin)


def mark(sch: Schedule, choose: Choose) -> None:
    if any(inst.kind.is_postproc for inst in sch.trace.insts):
        raise ScheduleError("marked already")
    sch.enter_postproc()


STEPS = [
    split, split, split_perfectly, fuse, reorder, annotate_loop, decompose, compute_at,
    reverse_compute_at, cache, inline,
    rfactor, add_unit_loop, merge, sample_location, reorder_iterators,
]  # fmt: skip


EVERY_STEP = [
    *STEPS, compute_under_consumer, compute_under_consumer, compute_under_producer,
    compute_under_producer, inline, decompose, rfactor, transform_layout,
    sample_split, annotate, set_scope, storage_align, unsafe_set_dtype, blockize, schedule_inside,
    reindex, reindex_cache, transform_layout, transform_block_layout, set_axis_separator,
    pad_einsum, decompose_padding, cache_update, copy_at, partition, fuse_epilogue, mark,
    roll, cache_index, sample_partitioned, widen_reads, declare_again, hide_access, tensorize,
]  # fmt: skip
"""Also the steps after which blocks nest, buffers have another layout, or nothing changes."""


RARE_STEPS = [cache_update, fuse_epilogue, inline, merge, rfactor, roll, tensorize]
"""What is hardly ever possible after other steps."""


def random_step(
    sch: Schedule, choose: Choose, steps: Sequence[Callable[[Schedule, Choose], None]] = STEPS
) -> bool:
    """Try one random step; whether it was accepted."""
    step = choose(steps)
    try:
        step(sch, choose)
    except (ScheduleError, IndexError):
        return False
    return True
