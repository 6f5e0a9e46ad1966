"""Programs for GPUs, bound to threads by hand: products, a convolution, softmax, a reduction, and a
network of two layers."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.matmul import MATMUL
from benchmarks.kernels.softmax import SOFTMAX
from benchmarks.kernels.softmax import reference as softmax_reference
from benchmarks.kernels.workload import Array, Workload, program, scheduled, uniform
from mlcweb.schedule import BlockRV, LoopRV
from mlcweb.tir import Schedule

BATCH, INPUTS, HIDDEN, OUTPUTS = 128, 784, 128, 10

MLP = f"""
@T.prim_func
def main(X: T.Buffer(({BATCH}, {INPUTS}), "float32"), W0: T.Buffer(({HIDDEN}, {INPUTS}), "float32"),
         B0: T.Buffer(({HIDDEN},), "float32"), W1: T.Buffer(({OUTPUTS}, {HIDDEN}), "float32"),
         B1: T.Buffer(({OUTPUTS},), "float32"), Z: T.Buffer(({BATCH}, {OUTPUTS}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    Y0 = T.alloc_buffer(({BATCH}, {HIDDEN}))
    H = T.alloc_buffer(({BATCH}, {HIDDEN}))
    Y1 = T.alloc_buffer(({BATCH}, {OUTPUTS}))
    for i, j, k in T.grid({BATCH}, {HIDDEN}, {INPUTS}):
        with T.block("Y0"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y0[vi, vj] = T.float32(0)
            Y0[vi, vj] = Y0[vi, vj] + X[vi, vk] * W0[vj, vk]
    for i, j in T.grid({BATCH}, {HIDDEN}):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = T.max(Y0[vi, vj] + B0[vj], T.float32(0))
    for i, j, k in T.grid({BATCH}, {OUTPUTS}, {HIDDEN}):
        with T.block("Y1"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y1[vi, vj] = T.float32(0)
            Y1[vi, vj] = Y1[vi, vj] + H[vi, vk] * W1[vj, vk]
    for i, j in T.grid({BATCH}, {OUTPUTS}):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Y1[vi, vj] + B1[vj]
"""

CHANNELS, SIDE, FILTERS = 32, 56, 64

CONVOLUTION = f"""
@T.prim_func
def main(A: T.Buffer((1, {CHANNELS}, {SIDE + 2}, {SIDE + 2}), "float32"),
         W: T.Buffer(({FILTERS}, {CHANNELS}, 3, 3), "float32"),
         B: T.Buffer((1, {FILTERS}, {SIDE}, {SIDE}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for n, f, y, x, c, p, q in T.grid(1, {FILTERS}, {SIDE}, {SIDE}, {CHANNELS}, 3, 3):
        with T.block("B"):
            vn, vf, vy, vx, vc, vp, vq = T.axis.remap("SSSSRRR", [n, f, y, x, c, p, q])
            with T.init():
                B[vn, vf, vy, vx] = T.float32(0)
            B[vn, vf, vy, vx] = (
                B[vn, vf, vy, vx] + A[vn, vc, vy + vp, vx + vq] * W[vf, vc, vp, vq])
"""

ROWS, COLUMNS = 1024, 1024

MEAN = f"""
@T.prim_func
def main(A: T.Buffer(({ROWS}, {COLUMNS}), "float32"), B: T.Buffer(({ROWS},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    total = T.alloc_buffer(({ROWS},))
    for i, k in T.grid({ROWS}, {COLUMNS}):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vk]
    for i in range({ROWS}):
        with T.block("B"):
            vi = T.axis.spatial({ROWS}, i)
            B[vi] = total[vi] * T.float32({1 / COLUMNS})
"""


def fetch_together(
    sch: Schedule,
    block: BlockRV,
    operand: int,
    loop: LoopRV,
    threads: int,
    rank: int,
    lanes: int = 1,
) -> BlockRV:
    """The threads of a block bring what they need of an operand into shared memory, neighbours side
    by side, each `lanes` numbers at once."""
    copy = sch.cache_read(block, operand, "shared")
    sch.compute_at(copy, loop, preserve_unit_loops=True)
    together = sch.fuse(*sch.get_loops(copy)[-rank:])
    _, thread, lane = sch.split(together, [None, threads, lanes])
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(lane)
    return copy


def tiles(
    sch: Schedule,
    name: str = "C",
    tile: tuple[int, int] = (4, 4),
    threads: tuple[int, int] = (16, 16),
    depth: int = 16,
    columns_of_b: bool = False,
) -> None:
    """Each thread sums a tile in registers, and a block of threads fetches stripes of both
    operands."""
    block = sch.get_block(name)
    _, k0, _ = tile_of_each_thread(sch, block, tile, threads, depth)
    count = threads[0] * threads[1]
    fetch_together(sch, block, 0, k0, count, 2)
    # Rows of a product's first operand lie along k: one word more, and they begin in other banks.
    pad_rows(sch, block, 0)
    fetch_together(sch, block, 1, k0, count, 2)
    if columns_of_b:
        pad_rows(sch, block, 1)
    sch.decompose_reduction(block, k0)


def tile_of_each_thread(
    sch: Schedule,
    block: BlockRV,
    tile: tuple[int, int],
    threads: tuple[int, int],
    depth: int,
) -> tuple[BlockRV, LoopRV, LoopRV]:
    """Each thread of a block sums a tile of a product in registers, in steps of `depth`: the block
    that stores the sums, the loop over steps and that over each of them."""
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, threads[0], tile[0]])
    j0, j1, j2 = sch.split(j, [None, threads[1], tile[1]])
    k0, k1 = sch.split(k, [None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    thread = sch.fuse(i1, j1)
    sch.reverse_compute_at(result, thread)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (thread, "threadIdx.x")):
        sch.bind(loop, axis)
    unroll_tile(sch, block)
    return result, k0, k1


def registers(
    sch: Schedule, tile: tuple[int, int] = (8, 8), threads: tuple[int, int] = (8, 8)
) -> None:
    """Each thread sums a tile in registers, and reads both operands from where they are: quick on
    adapters whose shared memory is memory as any other."""
    block = sch.get_block("C")
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, threads[0], tile[0]])
    j0, j1, j2 = sch.split(j, [None, threads[1], tile[1]])
    sch.reorder(i0, j0, i1, j1, k, i2, j2)
    sch.reverse_compute_at(result, j1)
    axes = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, axis in zip((i0, j0, i1, j1), axes, strict=True):
        sch.bind(loop, axis)
    unroll_tile(sch, block)
    sch.decompose_reduction(block, k)


def unroll_tile(sch: Schedule, block: BlockRV) -> None:
    """The loops over the tile of a thread, so that it lies in registers."""
    for loop in sch.get_loops(block)[-2:]:
        sch.unroll(loop)


def pad_rows(sch: Schedule, block: BlockRV, operand: int) -> None:
    """Rows in shared memory are one word longer than a multiple of the banks."""
    copy = sch.get_producers(block)[operand]
    sch.storage_align(copy, 0, axis=-2, factor=32, offset=1)


def layers(sch: Schedule) -> None:
    """Both layers by tiles, what is added to them in the same kernel."""
    for product, rest, threads in (("Y0", "H", (16, 16)), ("Y1", "Z", (16, 5))):
        tiles(sch, product, (2, 2), threads, 16, columns_of_b=True)
        sch.reverse_compute_inline(rest)


def filters(sch: Schedule, per_thread: int = 4, pixels: int = 4, channels: int = 4) -> None:
    """A block computes a row of pixels of all filters, and each thread some of both."""
    block = sch.get_block("B")
    result = sch.cache_write(block, 0, "local")
    n, f, y, x, c, p, q = sch.get_loops(block)
    f1, f2 = sch.split(f, [None, per_thread])
    x1, x2 = sch.split(x, [None, pixels])
    c0, c1 = sch.split(c, [None, channels])
    sch.reorder(n, y, f1, x1, c0, c1, p, q, f2, x2)
    thread = sch.fuse(f1, x1)
    sch.reverse_compute_at(result, thread)
    sch.bind(y, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    threads = (FILTERS // per_thread) * (SIDE // pixels)
    for operand in (0, 1):
        fetch_together(sch, block, operand, c0, threads, 4)
    unroll_tile(sch, block)
    sch.decompose_reduction(block, c0)


def filters_in_registers(sch: Schedule, per_thread: int = 8, pixels: int = 4) -> None:
    """Each thread sums some pixels of some filters in registers, and reads both operands from where
    they are."""
    block = sch.get_block("B")
    result = sch.cache_write(block, 0, "local")
    n, f, y, x, c, p, q = sch.get_loops(block)
    f1, f2 = sch.split(f, [None, per_thread])
    x1, x2 = sch.split(x, [None, pixels])
    sch.reorder(n, y, f1, x1, c, p, q, f2, x2)
    thread = sch.fuse(f1, x1)
    sch.reverse_compute_at(result, thread)
    sch.bind(y, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    unroll_tile(sch, block)
    sch.decompose_reduction(block, c)


def rows_together(sch: Schedule, names: tuple[str, ...], threads: int = 128) -> None:
    """A block of threads for each row: `names` from the last to the first, of which all but the
    last stay in shared memory."""
    last, *earlier = names
    row, *inner = sch.get_loops(last)
    sch.bind(row, "blockIdx.x")
    for name in earlier:
        sch.compute_at(name, row)
        sch.set_scope(name, 0, "shared")
    for name in names if inner else earlier:
        _, thread = sch.split(sch.get_loops(name)[-1], [None, threads])
        sch.bind(thread, "threadIdx.x")


def row_each(sch: Schedule, names: tuple[str, ...], threads: int) -> None:
    """A row for each thread, which keeps to itself all but the last of `names`: no thread waits for
    another, which is dear on adapters that run the threads of a block one after the other."""
    last, *earlier = names
    row = sch.get_loops(last)[0]
    block, thread = sch.split(row, [None, threads])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    for name in earlier:
        sch.compute_at(name, thread)
        sch.set_scope(name, 0, "local")


def mean_each(sch: Schedule, threads: int = 64, lanes: int = 4) -> None:
    """A row for each thread, which sums it in the lanes of a vector."""
    _, inner = sch.split(sch.get_loops("total")[-1], [None, lanes])
    sums = sch.rfactor(inner, 0)
    row_each(sch, ("B", "total", "total_rf"), threads)
    lane, steps = sch.get_loops(sums)[-2:]
    sch.reorder(steps, lane)
    sch.vectorize(lane)
    sch.vectorize(sch.get_loops(sch.decompose_reduction(sums, steps))[-1])
    sch.decompose_reduction("total", sch.get_loops("total")[-1])


def softmax_each(sch: Schedule, threads: int = 32) -> None:
    """A row for each thread, which computes powers again rather than keep them."""
    sch.compute_inline("power")
    row_each(sch, ("B", "total", "largest"), threads)


def layers_in_registers(sch: Schedule) -> None:
    """Both layers by tiles in registers, which read operands from where they are."""
    for product, rest, tile, threads in (
        ("Y0", "H", (4, 4), (8, 8)),
        ("Y1", "Z", (2, 2), (8, 5)),
    ):
        sch.set_scope(product, 0, "local")
        i, j = sch.get_loops(rest)
        i0, i1, i2 = sch.split(i, [None, threads[0], tile[0]])
        j0, j1, j2 = sch.split(j, [None, threads[1], tile[1]])
        sch.reorder(i0, j0, i1, j1, i2, j2)
        axes = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
        for loop, axis in zip((i0, j0, i1, j1), axes, strict=True):
            sch.bind(loop, axis)
        sch.compute_at(product, j1)
        rows, columns, k = sch.get_loops(product)[-3:]
        sch.reorder(k, rows, columns)
        unroll_tile(sch, sch.get_block(product))
        sch.decompose_reduction(product, k)


def _network(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


def _convolution(a: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), (2, 3))
    return np.einsum("ncyxpq,fcpq->nfyx", windows, w, optimize=True).astype("float32")


_KEPT = ("B", "total", "power", "largest")

ON_GPU: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *(
            Workload(
                name=f"matmul{n}",
                operator="matmul",
                inputs=uniform((n, n), (n, n)),
                reference=np.matmul,
                programs={
                    "tiles": partial(scheduled, MATMUL, tiles, n=n),
                    "registers": partial(scheduled, MATMUL, registers, n=n),
                },
                source=partial(program, MATMUL, n=n),
                flops=2 * n**3,
                tolerance=1e-3,
            )
            for n in (512, 1024, 2048)
        ),
        Workload(
            name="conv2d",
            operator="conv2d",
            inputs=uniform((1, CHANNELS, SIDE + 2, SIDE + 2), (FILTERS, CHANNELS, 3, 3)),
            reference=_convolution,
            programs={
                "tiles": partial(scheduled, CONVOLUTION, filters),
                "registers": partial(scheduled, CONVOLUTION, filters_in_registers),
            },
            source=partial(program, CONVOLUTION),
            flops=2 * 9 * CHANNELS * FILTERS * SIDE**2,
            tolerance=1e-3,
        ),
        Workload(
            name="softmax",
            operator="softmax",
            inputs=uniform((128, 1000)),
            reference=softmax_reference,
            programs={
                "rows": partial(scheduled, SOFTMAX, partial(rows_together, names=_KEPT)),
                "few": partial(scheduled, SOFTMAX, partial(rows_together, names=_KEPT, threads=16)),
                "each": partial(scheduled, SOFTMAX, softmax_each),
            },
            source=partial(program, SOFTMAX),
        ),
        Workload(
            name="mean",
            operator="mean",
            inputs=uniform((ROWS, COLUMNS)),
            reference=lambda a: a.mean(1),
            programs={
                "rows": partial(scheduled, MEAN, partial(rows_together, names=("B", "total"))),
                "each": partial(scheduled, MEAN, mean_each),
            },
            source=partial(program, MEAN),
        ),
        Workload(
            name="mlp",
            operator="mlp",
            inputs=uniform(
                (BATCH, INPUTS), (HIDDEN, INPUTS), (HIDDEN,), (OUTPUTS, HIDDEN), (OUTPUTS,)
            ),
            reference=_network,
            programs={
                "tiles": partial(scheduled, MLP, layers),
                "registers": partial(scheduled, MLP, layers_in_registers),
            },
            source=partial(program, MLP),
            flops=2 * BATCH * (INPUTS * HIDDEN + HIDDEN * OUTPUTS),
            tolerance=1e-3,
        ),
    )
}
"""By name."""
