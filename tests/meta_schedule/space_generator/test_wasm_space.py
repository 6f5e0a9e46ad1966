"""The default space of compiled targets: whatever is decided, programs stay what they were and are
made of vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.space_generator import PostOrderApply, SpaceGeneratorUnion
from mlcweb.tir.stmt import For, ForKind
from tests.meta_schedule.schedule_rule.small import PROGRAMS, check, drawn, module
from tests.strategies import examples

AVX2 = "llvm -mcpu=x86-64-v3"
"""Has vectors of eight lanes; of the sizes of the programs some have room for four alone."""

CASES = [
    *((name, "wasm") for name in PROGRAMS),
    ("conv", AVX2),
    ("linear", AVX2),
    ("softmax", AVX2),
]
GENERATORS = {}
for _case in CASES:
    _generator = PostOrderApply()
    TuneContext(module(_case[0]), target=_case[1], space_generator=_generator, rand_state=1)
    GENERATORS[_case] = (_generator, _generator.generate_design_space(module(_case[0])))


@examples(40)
@given(
    case=st.sampled_from(CASES),
    seed=st.integers(1, 2**31 - 2),
    which=st.integers(0, 7),
)
def test_any_decisions_are_right(case, seed, which):
    name = case[0]
    generator, spaces = GENERATORS[case]
    sch = drawn(name, spaces[which % len(spaces)], seed)
    sch.enter_postproc()
    if all(each.apply(sch) for each in generator.postprocs):
        check(name, sch.mod)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "sum"])
def test_there_are_vectors(case):
    name = case[0]
    generator, spaces = GENERATORS[case]
    for space in spaces:
        drawings = (drawn(name, space, seed) for seed in range(1, 30))
        sch = next(one for one in drawings if all(each.apply(one) for each in generator.postprocs))
        kinds = {node.kind for node in walk(sch.mod["main"].body) if isinstance(node, For)}
        assert ForKind.VECTORIZED in kinds


def test_the_same_seed_gives_the_same_spaces():
    again = PostOrderApply()
    TuneContext(module("matmul"), target="wasm", space_generator=again, rand_state=1)
    texts = [str(sch.trace) for sch in again.generate_design_space(module("matmul"))]
    assert texts == [str(sch.trace) for sch in GENERATORS["matmul", "wasm"][1]]


def test_a_filter_leaves_blocks_out():
    generator = PostOrderApply(f_block_filter=lambda block: block.name_hint == "root")
    (sch,) = generator.generate_design_space(module("matmul"))
    assert [inst.kind.method for inst in sch.trace.insts][:1] == ["get_block"]
    assert "split" not in str(sch.trace)


def test_a_union_has_the_spaces_of_all():
    parts = [PostOrderApply(sch_rules="wasm"), PostOrderApply(sch_rules="llvm")]
    union = SpaceGeneratorUnion(parts)
    TuneContext(module("matmul"), target="wasm", space_generator=union, rand_state=1)
    assert len(union.generate_design_space(module("matmul"))) == 2 + 3
    assert len(union.clone().space_generators) == 2
