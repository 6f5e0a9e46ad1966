"""Steps that change the order of iterations, on nests whose iterations depend on each other.

Random nests of one to three blocks with affine and modular indices run here as plain Python, in any
order of their iterations: an order is legal where each element ends with the same value, built from
the same values before. A step that is accepted has to be legal. One that is legal may be refused,
but not often.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import IRModule
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests import random_schedules as walks
from tests.schedule.case_files import module, outputs, random_inputs
from tests.strategies import examples

SIZE = 64
BUFFERS = ("X", "Y", "Z", "W")
EXTENTS = ((4, 5), (3, 7), (6,), (2, 3, 4), (8, 1), (5, 5))

Point = tuple[int, ...]


@dataclass(frozen=True)
class Access:
    """An element of a buffer: scales of the iterators, an offset, and maybe a modulus."""

    buffer: str
    scales: tuple[int, ...]
    offset: int
    modulus: int

    def text(self, names: Sequence[str]) -> str:
        terms = [f"{n} * {s}" for n, s in zip(names, self.scales, strict=True) if s]
        index = " + ".join([*terms, str(self.offset)])
        return f"{self.buffer}[{f'({index}) % {self.modulus}' if self.modulus else index}]"

    def at(self, point: Point) -> tuple[str, int]:
        index = sum(s * p for s, p in zip(self.scales, point, strict=True)) + self.offset
        return self.buffer, index % self.modulus if self.modulus else index


@dataclass(frozen=True)
class Nest:
    """Loops, and the blocks in them: what each writes, and reads for it. Of the accesses `hidden`
    ("reads", "writes") the blocks declare none."""

    extents: tuple[int, ...]
    blocks: tuple[tuple[Access, tuple[Access, ...]], ...]
    hidden: tuple[str, ...] = ()

    @property
    def loops(self) -> list[str]:
        return [f"i{n}" for n in range(len(self.extents))]

    def lines(self, first: int = 0) -> Iterator[str]:
        """The nest as text; its blocks are numbered from `first` on."""
        names = [f"v{n}" for n in range(len(self.extents))]
        for n, (loop, extent) in enumerate(zip(self.loops, self.extents, strict=True)):
            yield "    " * n + f"for {loop} in range({extent}):"
        pad = "    " * len(self.extents)
        for n, (write, reads) in enumerate(self.blocks):
            yield f'{pad}with T.block("B{first + n}"):'
            for v, extent, loop in zip(names, self.extents, self.loops, strict=True):
                yield f"{pad}    {v} = T.axis.spatial({extent}, {loop})"
            yield from (f"{pad}    T.{kind}()" for kind in self.hidden)
            values = [f"{r.text(names)} * T.float32({2.0**-k})" for k, r in enumerate(reads, 1)]
            number = " + ".join(f"{v} * {k}" for k, v in enumerate(names, 5))
            value = " + ".join([*values, f'T.Cast("float32", {number})'])
            yield f"{pad}    {write.text(names)} = {value}"

    def result(self, order: Iterator[tuple[Point, int]]) -> dict[tuple[str, int], object]:
        """What each element is made of, once blocks have run in an order of (iteration, block)."""
        memory: dict[tuple[str, int], object] = {}
        for point, n in order:
            write, reads = self.blocks[n]
            values = tuple(memory.get(read.at(point), read.at(point)) for read in reads)
            memory[write.at(point)] = hash((n, point, values))
        return memory

    def in_order(self, order: Sequence[int]) -> Iterator[tuple[Point, int]]:
        """The iterations with the loops in an order."""
        for point in product(*(range(self.extents[n]) for n in order)):
            at = dict(zip(order, point, strict=True))
            for n in range(len(self.blocks)):
                yield tuple(at[k] for k in range(len(order))), n

    def at_once(self, loop: int, shuffle: Callable[[list], object]) -> Iterator[tuple[Point, int]]:
        """The iterations with those of one loop in an order in which they may run at once: each by
        itself in its own order."""
        around = [range(extent) for extent in self.extents[:loop]]
        inside = [range(extent) for extent in self.extents[loop + 1 :]]
        for outer in product(*around):
            waiting = {
                i: [((*outer, i, *p), n) for p in product(*inside) for n in range(len(self.blocks))]
                for i in range(self.extents[loop])
            }
            turns = [i for i, steps in waiting.items() for _ in steps]
            shuffle(turns)
            for i in turns:
                yield waiting[i].pop(0)


def program(nests: Sequence[Nest], allocated: Sequence[str] = ()) -> str:
    """A function of nests, which allocates some of the buffers."""
    lines = [f'{b} = T.alloc_buffer(({SIZE},), "float32")' for b in allocated]
    for n, nest in enumerate(nests):
        lines += nest.lines(sum(len(earlier.blocks) for earlier in nests[:n]))
    parameters = [f'{b}: T.Buffer(({SIZE},), "float32")' for b in BUFFERS if b not in allocated]
    body = textwrap.indent("\n".join(lines), "    ")
    return f"@T.prim_func\ndef main({', '.join(parameters)}):\n{body}"


def random_nest(random: Random, extents: tuple[int, ...] | None = None) -> Nest:
    extents = extents or random.choice(EXTENTS)
    strides = [prod(extents[n + 1 :]) for n in range(len(extents))]

    def access(plain: float) -> Access:
        scales = list(strides)
        offset, modulus = random.choice((0, 0, 0, 1, 2, strides[0], strides[0] + 1, 4)), 0
        if random.random() > plain:
            n = random.randrange(len(scales))
            scales[n] = random.choice((0, 1, 2, -strides[n], strides[n] + 1))
        if random.random() > plain:
            modulus = random.choice((0, 2, 3, 7))
        corner = [s * (e - 1) for s, e in zip(scales, extents, strict=True)]
        offset -= sum(min(end, 0) for end in corner)
        if sum(max(end, 0) for end in corner) + offset >= SIZE:
            return (
                access(1.0) if plain < 1 else Access(random.choice(BUFFERS), tuple(strides), 0, 0)
            )
        return Access(random.choice(BUFFERS), tuple(scales), offset, modulus)

    blocks = [
        (access(0.8), tuple(access(0.6) for _ in range(random.choice((1, 1, 2)))))
        for _ in range(random.choice((1, 2, 2, 3)))
    ]
    return Nest(extents, tuple(blocks))


def is_accepted(mod: IRModule, step: Callable[[Schedule, list], object]) -> bool:
    sch = Schedule(mod, error_render_level="none")
    try:
        step(sch, sch.get_loops("B0"))
    except ScheduleError:
        return False
    return True


def reorders(nest: Nest, mod: IRModule) -> Iterator[tuple[bool, bool]]:
    """Whether each new order of the loops is legal, and accepted."""
    wanted = nest.result(nest.in_order(range(len(nest.extents))))
    for order in permutations(range(len(nest.extents))):
        legal = nest.result(nest.in_order(order)) == wanted
        yield (
            legal,
            is_accepted(mod, lambda sch, loops, o=order: sch.reorder(*(loops[n] for n in o))),
        )


def parallels(nest: Nest, mod: IRModule, random: Random) -> Iterator[tuple[bool, bool]]:
    """Whether the iterations of each loop may run at once, as far as some tries tell, and may for
    the schedule."""
    wanted = nest.result(nest.in_order(range(len(nest.extents))))
    for loop in range(len(nest.extents)):
        tries = [list.reverse, *[random.shuffle] * 4]
        legal = all(nest.result(nest.at_once(loop, shuffle)) == wanted for shuffle in tries)
        yield legal, is_accepted(mod, lambda sch, loops, n=loop: sch.parallel(loops[n]))


@examples(80, 750)
@given(
    seed=st.integers(0, 2**30),
    hidden=st.sampled_from([(), ("reads",), ("writes",), ("reads", "writes")]),
)
def test_accepted_orders_are_legal(seed, hidden):
    random = Random(seed)
    nest = replace(random_nest(random), hidden=hidden)
    mod = module(program([nest]))
    for legal, accepted in (*reorders(nest, mod), *parallels(nest, mod, random)):
        assert legal or not accepted, mod.script()


def test_what_blocks_declare_decides_no_order():
    """But what they do: as many orders are accepted where they declare nothing."""
    random = Random(3)
    for nest in (random_nest(random) for _ in range(12)):
        hiding = replace(nest, hidden=("reads", "writes"))
        orders, hidden = ([*reorders(n, module(program([n])))] for n in (nest, hiding))
        assert hidden == orders, program([nest])


MOVES = [
    walks.split, walks.fuse, walks.reorder, walks.annotate_loop, walks.compute_at,
    walks.compute_under_consumer, walks.compute_under_consumer, walks.reverse_compute_at,
    walks.compute_under_producer, walks.compute_under_producer, walks.inline, walks.merge,
    walks.merge, walks.partition,
]  # fmt: skip


def random_chain(random: Random) -> tuple[list[Nest], list[str]]:
    """Nests that write one buffer after the other, from what is there already; the buffers between
    the first and the last are allocated. Now and then two blocks share a nest, or one overwrites
    an input."""
    allocated = random.choice((["Y"], ["Y"], ["Y", "Z"]))
    order = [*allocated, "X" if random.random() < 0.1 else "W"]
    if random.random() < 0.2:
        order.insert(random.randrange(len(order)), random.choice(("X", *allocated)))
    extent = 6
    nests: list[Nest] = []
    for n, buffer in reversed(list(enumerate(order))):
        known = ["X", *order[:n]]
        reads = []
        for _ in range(random.choice((1, 1, 2))):
            scale, offset = random.choice(((1, 0), (1, 0), (1, 1), (1, 3), (-1, extent), (0, 2)))
            reads.append(Access(random.choice((known[-1], *known)), (scale,), offset, 0))
        block = (Access(buffer, (1,), 0, 0), tuple(reads))
        if nests and random.random() < 0.35:
            nests[0] = Nest(nests[0].extents, (block, *nests[0].blocks))
        else:
            nests.insert(0, Nest((extent,), (block,)))
        extent += 4
    return nests, allocated


@pytest.mark.parametrize("half", range(2))
@examples(30, 500)
@given(seed=st.integers(0, 2**29))
def test_moves_keep_what_a_chain_of_nests_computes(half, seed):
    seed = 2 * seed + half
    random = Random(seed)
    nests, allocated = random_chain(random)
    mod = module(program(nests, allocated))
    arrays = random_inputs(mod)
    assert arrays is not None
    wanted = outputs(mod, arrays)
    sch = Schedule(mod, seed=seed + 1, error_render_level="none")
    accepted = 0
    for _ in range(30):
        accepted += walks.random_step(sch, random.choice, MOVES)
        if accepted == 5:
            break
    try:
        results = outputs(sch.mod, arrays)
    except ThreadError:  # Whether loops can be bound to threads together is known at last.
        return
    for want, got in zip(wanted, results, strict=True):
        known = ~np.isnan(want)  # The rest was read from memory that nobody has written.
        np.testing.assert_array_equal(want[known], got[known], f"{mod.script()}\n{sch.trace}")


CARRIED = """
for i, j in T.grid(6, 6):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi + 1, vj + 1] = A[vi, vj] * 2
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = READ
"""
LAST_WRITER = """
for i, j in T.grid(4, 4):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[0, (vi * 4 + vj) % 3] = A[vi, vj]
"""
HALO = """
T_ = T.alloc_buffer((8, 8), "int32")
for i in range(6):
    for ax, j in T.grid(3, 8):
        with T.block("B"):
            vi, vj = T.axis.spatial(8, i + ax), T.axis.spatial(8, j)
            T_[vi, vj] = A[vi, vj] * 2
    for j in range(6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T_[vi, vj] + T_[vi + 2, vj + 1]
"""
REDUCTION_MODULO = """
for i, k in T.grid(6, 6):
    with T.block("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[0, vi % 4] = 0
        B[0, vi % 4] = B[0, vi % 4] + A[vi, vk]
"""
BACKWARDS = """
T_ = T.alloc_buffer((8, 8), "int32")
for i in range(8):
    with T.block("W"):
        vi = T.axis.spatial(8, i)
        C[0, vi] = A[0, vi]
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        T_[0, vi] = C[0, 7 - vi]
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[0, vi] = T_[0, 7 - vi]
"""
REORDER = 'i, j = sch.get_loops("B"); sch.reorder(j, i)'
STEPS = {
    "the next row, further left": (CARRIED, "B[vi, vj + 2]", REORDER, "(1, -1)"),
    "the next row, further right": (CARRIED, "B[vi, vj]", REORDER, ""),
    "the same row, before it is written": (CARRIED, "B[vi + 1, vj + 2]", REORDER, ""),
    "the row before, before it is written": (CARRIED, "B[vi + 2, vj]", REORDER, "(-1, 1)"),
    "split and tiled": (
        CARRIED,
        "B[vi, vj + 2]",
        'i, j = sch.get_loops("B"); a, b = sch.split(j, [2, 3]); sch.reorder(a, i, b)',
        "(1, -1, 2)",
    ),
    "fused": (CARRIED, "B[vi, vj + 2]", 'sch.fuse(*sch.get_loops("B"))', ""),
    "parallel rows": (CARRIED, "B[vi, vj]", 'sch.parallel(sch.get_loops("B")[0])', "(1)"),
    "parallel columns": (CARRIED, "B[vi, vj + 1]", 'sch.parallel(sch.get_loops("B")[1])', ""),
    "bound rows": (CARRIED, "B[vi, vj]", 'sch.bind(sch.get_loops("B")[0], "blockIdx.x")', "(1)"),
    "vectors": (CARRIED, "B[vi + 1, vj]", 'sch.vectorize(sch.get_loops("B")[1])', "(1)"),
    "vectors of one element": (
        CARRIED, "B[vi + 1, vj + 1]", 'sch.vectorize(sch.fuse(*sch.get_loops("B")))', ""
    ),
    "a parallel loop moves inside of what orders it": (
        CARRIED,
        "B[vi, vj]",
        'i, j = sch.get_loops("B"); sch.parallel(j); sch.reorder(j, i)',
        "(1, 1)",
    ),
    "the last writer": (LAST_WRITER, "", REORDER, "that it writes in another iteration"),
    "the last writer of each thread": (
        LAST_WRITER, "", 'sch.parallel(sch.get_loops("B")[1])', "that it writes in another"
    ),
    "the last sum": (
        REDUCTION_MODULO, "", 'sch.parallel(sch.get_loops("B")[0])', "that it writes in another"
    ),
    "inlined where its input has changed": (
        BACKWARDS, "", 'sch.compute_inline("P")', '"P" reads elements of "C" that its producer "W"'
    ),
    "computed anew": (HALO, "", 'sch.parallel(sch.get_loops("C")[0])', ""),
    "computed anew, tiled": (
        HALO,
        "",
        'a, b = sch.split(sch.get_loops("C")[0], [2, 3]); sch.reorder(b, a)',
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_step(name):
    body, read, step, reason = STEPS[name]
    parameters = ", ".join(f'{b}: T.Buffer((8, 8), "int32")' for b in "ABC")
    body = textwrap.indent(body.replace("READ", read), "    ")
    before = module(f"@T.prim_func\ndef main({parameters}):{body}")
    sch = Schedule(before)
    if reason:
        with pytest.raises(ScheduleError, match=re.escape(reason)):
            exec(step, {"sch": sch})
        return
    exec(step, {"sch": sch})
    arrays = random_inputs(before)
    assert arrays is not None
    for target in ("interpreter", "wasm"):
        for got, want in zip(
            outputs(sch.mod, arrays, target), outputs(before, arrays), strict=True
        ):
            np.testing.assert_array_equal(got, want)


HALVED_INDEX = """
@T.prim_func
def main(A: T.Buffer((6,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((6,), "float32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] * T.float32(2)
    for i, r in T.grid(8, 4):
        with T.block("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[(vi + vr) // 2]
"""


def test_what_an_iteration_makes_for_itself_is_found_in_halves():
    """compute_at makes (r % 2 + 3) // 2 + 1 elements from r // 2 on, which are all that is read."""
    before = module(HALVED_INDEX)
    sch = Schedule(before)
    i, r = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 4])
    sch.reorder(outer, r, inner)
    sch.compute_at("B", r)
    sch.parallel(outer)
    arrays = [np.arange(6, dtype="float32"), np.zeros(8, "float32")]
    np.testing.assert_array_equal(outputs(sch.mod, arrays)[1], outputs(before, arrays)[1])


TILES = """
@T.prim_func
def main(A: T.Buffer((256, 128), "int32"), B: T.Buffer((256, 128), "int32")):
    for x, f in T.grid(2, 16384):
        with T.block("B"):
            v0 = T.axis.spatial(8, f // 2048)
            v1 = T.axis.spatial(2, f % 2048 // 1024)
            v2 = T.axis.spatial(2, x)
            v3 = T.axis.spatial(4, f % 1024 // 256)
            v4 = T.axis.spatial(16, f % 256 // 16)
            v5 = T.axis.spatial(16, f % 16)
            B[v4 + v2 * 16 + v0 * 32, v5 + v3 * 16 + v1 * 64] = (
                A[v4 + v2 * 16 + v0 * 32, v5 + v3 * 16 + v1 * 64] + 1)
"""


def test_indices_that_tell_all_iterators_apart_leave_nothing_to_order():
    """Tiles of tiles that threads take in turn, as products on tensor cores write them."""
    before = module(TILES)
    sch = Schedule(before)
    _, among, lanes = sch.split(sch.get_loops("B")[1], [32, 128, 4])
    sch.parallel(among)
    sch.vectorize(lanes)
    a = np.arange(256 * 128, dtype="int32").reshape(256, 128)
    [_, b] = outputs(sch.mod, [a, np.zeros_like(a)], "wasm")
    np.testing.assert_array_equal(b, a + 1)


TRIANGLES = """
@T.prim_func
def main(A: T.Buffer((4, 7), "int32"), C: T.Buffer((4, 7), "int32")):
    for i, j in T.grid(4, 3):
        n: T.let = j + 1
        for k in range(n):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.spatial(n, k)
                C[0, vi * n + vk] = A[0, vi] + n
"""


def test_sizes_that_change_between_iterations_tell_no_indices_apart():
    sch = Schedule(module(TRIANGLES))
    with pytest.raises(ScheduleError, match="parallel"):
        sch.parallel(sch.get_loops("C")[0])
