"""Every refusal names its primitive, shows the program with the place marked, says why, and says
what would work: one wrong use per precondition, family by family.

More of them, which need programs of their own, are in cases/refusals.txt; and each of the other
files of cases has those of its primitive.
"""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.schedule.errors import UnsupportedError
from mlcweb.script import parse
from mlcweb.tir import Schedule
from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.case_files import cases, check, module


def loop(sch, block, position=0):
    return sch.get_loops(block)[position]


WRONG_USES = {
    "split: two unknown factors": (
        lambda s: s.split(loop(s, "B"), [None, None]),
        "Only one factor",
    ),
    "split: too little": (lambda s: s.split(loop(s, "B"), [2, 4]), "does not cover the extent"),
    "split: a factor of 0": (lambda s: s.split(loop(s, "B"), [0, None]), "is not positive"),
    "split: no factors": (lambda s: s.split(loop(s, "B"), []), "no factors"),
    "split: annotated": (
        lambda s: (s.annotate(loop(s, "B"), "x", 1), s.split(loop(s, "B"), [2, None])),
        "has an annotation",
    ),
    "fuse: two nests": (lambda s: s.fuse(loop(s, "B"), loop(s, "D")), "is not around the loop"),
    "fuse: inside out": (lambda s: s.fuse(*s.get_loops("B")[::-1]), "is not around the loop"),
    "reorder: twice": (lambda s: s.reorder(*[loop(s, "B")] * 2), "appears twice"),
    "reorder: two nests": (lambda s: s.reorder(loop(s, "B"), loop(s, "D")), "not in a chain"),
    "parallel: a reduction": (lambda s: s.parallel(loop(s, "E", 1)), "which is a reduction"),
    "vectorize: a reduction": (lambda s: s.vectorize(loop(s, "E", 1)), "which is a reduction"),
    "bind: a reduction": (lambda s: s.bind(loop(s, "E", 1), "blockIdx.x"), "which is a reduction"),
    "merge: one loop": (lambda s: s.merge(loop(s, "B")), "at least two different loops"),
    "add_unit_loop: the root": (lambda s: s.add_unit_loop("root"), "root block"),
    "annotate: C code": (
        lambda s: s.annotate(loop(s, "B"), "pragma_import_c", "int f() {}"),
        "C source code",
    ),
    "annotate: LLVM code": (
        lambda s: s.annotate("B", "pragma_import_llvm", "define void @f()"),
        "LLVM code",
    ),
    "compute_at: an output": (lambda s: s.compute_at("D", loop(s, "E")), "is an output block"),
    "compute_at: one of two consumers": (
        lambda s: s.compute_at("B", loop(s, "D")),
        "E",
    ),
    "reverse_compute_at: no producer there": (
        lambda s: s.reverse_compute_at("D", loop(s, "E")),
        "B",
    ),
    "compute_inline: an output": (lambda s: s.compute_inline("D"), "is an output block"),
    "compute_inline: a reduction": (lambda s: s.compute_inline("E"), "init"),
    "reverse_compute_inline: two consumers": (
        lambda s: s.reverse_compute_inline("D"),
        "has other consumers",
    ),
    "cache_read: index": (lambda s: s.cache_read("B", 1, "local"), "is not in"),
    "cache_read: name": (lambda s: s.cache_read("B", "D", "local"), 'does not read "D"'),
    "cache_read: scope": (lambda s: s.cache_read("B", 0, "nowhere"), "storage scope"),
    "cache_write: index": (lambda s: s.cache_write("B", 1, "local"), "is not in"),
    "read_at: another nest": (
        lambda s: s.read_at(loop(s, "B"), "D", 0, "local"),
        "is not around the block",
    ),
    "decompose_reduction: not one": (
        lambda s: s.decompose_reduction("D", loop(s, "D")),
        "is not a reduction block",
    ),
    "decompose_reduction: another loop": (
        lambda s: s.decompose_reduction("E", loop(s, "D")),
        "is not around the block",
    ),
    "rfactor: a spatial loop": (lambda s: s.rfactor(loop(s, "E"), 0), "spatial"),
    "rfactor: axis": (lambda s: s.rfactor(loop(s, "E", 1), 3), "factor_axis must be in"),
    "set_scope: a parameter": (lambda s: s.set_scope("D", 0, "local"), "is not allocated"),
    "storage_align: axis": (lambda s: s.storage_align("B", 0, 2, 8, 0), "so the axis 2 is not in"),
    "storage_align: factor": (lambda s: s.storage_align("B", 0, 0, 0, 0), "is not positive"),
    "unsafe_set_dtype: no type": (lambda s: s.unsafe_set_dtype("B", 0, "handle"), "single numbers"),
    "transform_layout: rank": (
        lambda s: s.transform_layout("B", ("write", 0), lambda i: [i]),
        "takes 1 indices",
    ),
    "transform_block_layout: rank": (
        lambda s: s.transform_block_layout("B", lambda i: [i]),
        "takes 1 indices",
    ),
    "pad_einsum: length": (lambda s: s.pad_einsum("E", [1]), "is invalid"),
    "rolling_buffer: no common loop": (lambda s: s.rolling_buffer("B", 0), "common loop"),
    "loop_partition: a reduction": (
        lambda s: s.loop_partition(loop(s, "E", 1), [4, None]),
        "would run again in each part",
    ),
    "cache_inplace: reads alone": (lambda s: s.cache_inplace("B", 0, "local"), "does not write it"),
    "fuse_reduction_epilogue: an output": (
        lambda s: s.fuse_reduction_epilogue("E", "D"),
        "is an output block",
    ),
    "get_block: no such block": (lambda s: s.get_block("X"), "Cannot find a block"),
}
UNMARKED = {"get_block: no such block", "cache_read: scope"}
"""There is no place in the program that these are about."""


@pytest.mark.parametrize("case", cases("refusals.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


@pytest.mark.parametrize("use", WRONG_USES)
def test_the_message_marks_explains_and_advises(use):
    attempt, part = WRONG_USES[use]
    sch = Schedule(module(PROGRAM))
    with pytest.raises(ScheduleError) as refusal:
        attempt(sch)
    error = refusal.value
    assert part in error.reason
    text = str(error)
    assert text.startswith(f"An error occurred in the schedule primitive '{error.primitive}'.")
    assert f"Error message: {error.reason}" in text
    assert error.advice and text.endswith(f"What would work: {error.advice}")
    if use not in UNMARKED:
        assert error.marked and "^" in text


WRONG_TYPES = {
    "bind: an axis": (lambda s: s.bind(loop(s, "B"), 3), "3 is not a string"),
    "set_scope: a scope": (lambda s: s.set_scope("B", 0, 3), "3 is not a string"),
    "set_scope: no buffer": (lambda s: s.set_scope("B", None, "local"), "string or a buffer"),
    "cache_read: half a buffer": (lambda s: s.cache_read("B", 0.5, "local"), "string or a buffer"),
    "cache_read: one consumer": (lambda s: s.cache_read("B", 0, "local", 3), "3 is not a list"),
    "transform_layout: a number": (
        lambda s: s.transform_layout("B", 3, lambda i, j: [j, i]),
        '"read", 0',
    ),
    "reindex: no buffer": (lambda s: s.reindex("B", None), "string or a buffer"),
    "sample_perfect_tile: n": (
        lambda s: s.sample_perfect_tile(loop(s, "B"), n=1.5),
        "1.5 is not an integer",
    ),
    "split: one factor": (lambda s: s.split(loop(s, "B"), 4), "4 is not a list"),
    "pad_einsum: one factor": (lambda s: s.pad_einsum("B", 3), "3 is not a list"),
    "get_loops: no block": (lambda s: s.get_loops(None), "None is not a block"),
    "split: no loop": (lambda s: s.split(None, [2, None]), "None is not a loop"),
    "parallel: a name": (lambda s: s.parallel("i"), "'i' is not a loop"),
}


@pytest.mark.parametrize("use", WRONG_TYPES)
def test_an_argument_of_a_wrong_type_is_named(use):
    attempt, message = WRONG_TYPES[use]
    with pytest.raises((TypeError, ValueError), match=message):
        attempt(Schedule(module(PROGRAM)))


@pytest.mark.parametrize("leave", ["break", "continue", "T.evaluate(T.ret(0))"])
def test_what_leaves_a_loop_is_not_scheduled(leave: str) -> None:
    program = parse(f"""@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if A[i] < 0:
            {leave}
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
""")
    sch = Schedule(program)
    (loop,) = sch.get_loops(sch.get_block("B"))
    with pytest.raises(UnsupportedError, match="may leave a loop before its end"):
        sch.split(loop, [4, 4])
    assert_structural_equal(sch.mod["main"], program)


def test_what_is_at_fault_is_numbered_in_a_program_with_all_its_loops() -> None:
    """As TVM shows it: each loop on a line of its own, the statements by class and number."""
    program = parse("""@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 2):
        for k in range(4):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j * 4 + k)
                B[vi, vj] = A[vi, vj]
        for k in range(1):
            with T.block("nothing"):
                T.evaluate(0)
""")
    sch = Schedule(program)
    i, _, k = sch.get_loops(sch.get_block("B"))
    with pytest.raises(ScheduleError) as caught:
        sch.reorder(k, i)
    assert (
        "            for i in range(8):\n"
        "                # tir.For#0\n"
        "                for j in range(2):\n"
        "                ^^^^^^^^^^^^^^^^^^\n"
        "                    for k in range(4):\n"
    ) in str(caught.value)
    with pytest.raises(ScheduleError) as caught:
        sch.compute_inline("root")
    assert (
        '        # tir.Block#0\n        with T.block("root"):\n        ^^^^^^^^^^^^^^^^^^^^^\n'
    ) in str(caught.value)
