"""The default space: whatever is decided, programs stay what they were and are made of vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.space_generator import PostOrderApply, SpaceGeneratorUnion
from mlcweb.tir.stmt import For, ForKind
from tests.meta_schedule.schedule_rule.small import PROGRAMS, check, drawn, module
from tests.strategies import examples

GENERATORS = {}
for _name in PROGRAMS:
    _made = PostOrderApply()
    TuneContext(module(_name), target="llvm", space_generator=_made, rand_state=1)
    GENERATORS[_name] = (_made, _made.generate_design_space(module(_name)))


@examples(40)
@given(
    name=st.sampled_from(list(PROGRAMS)),
    seed=st.integers(1, 2**31 - 2),
    which=st.integers(0, 7),
)
def test_any_decisions_are_right(name, seed, which):
    made, spaces = GENERATORS[name]
    sch = drawn(name, spaces[which % len(spaces)], seed)
    sch.enter_postproc()
    if all(each.apply(sch) for each in made.postprocs):
        check(name, sch.mod)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "sum"])
def test_there_are_vectors(name):
    made, spaces = GENERATORS[name]
    for space in spaces:
        drawings = (drawn(name, space, seed) for seed in range(1, 30))
        sch = next(one for one in drawings if all(each.apply(one) for each in made.postprocs))
        kinds = {node.kind for node in walk(sch.mod["main"].body) if isinstance(node, For)}
        assert ForKind.VECTORIZED in kinds


def test_the_same_seed_gives_the_same_spaces():
    again = PostOrderApply()
    TuneContext(module("matmul"), target="llvm", space_generator=again, rand_state=1)
    texts = [str(sch.trace) for sch in again.generate_design_space(module("matmul"))]
    assert texts == [str(sch.trace) for sch in GENERATORS["matmul"][1]]


def test_a_filter_leaves_blocks_out():
    made = PostOrderApply(f_block_filter=lambda block: block.name_hint == "root")
    (sch,) = made.generate_design_space(module("matmul"))
    assert [inst.kind.method for inst in sch.trace.insts][:1] == ["get_block"]
    assert "split" not in str(sch.trace)


def test_a_union_has_the_spaces_of_all():
    parts = [PostOrderApply(sch_rules="wasm"), PostOrderApply(sch_rules="llvm")]
    union = SpaceGeneratorUnion(parts)
    TuneContext(module("matmul"), target="llvm", space_generator=union, rand_state=1)
    assert len(union.generate_design_space(module("matmul"))) == 2 + 3
    assert len(union.clone().space_generators) == 2
