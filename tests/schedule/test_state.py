"""States that a program makes itself: replacing statements, and what references refer to then."""

from __future__ import annotations

import pickle

import pytest

from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.schedule import Schedule, ScheduleState
from mlcweb.schedule.state import StmtSRef
from mlcweb.script import from_source
from mlcweb.tir import Block, BlockRealize, Evaluate, For, ForKind, PrimFunc, Var, const

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi, 0]
"""


@pytest.fixture
def func() -> PrimFunc:
    parsed = from_source(PROGRAM)
    assert isinstance(parsed, PrimFunc)
    return parsed


def references(state: ScheduleState) -> dict[str, StmtSRef]:
    """References to the loops and blocks of the program."""
    outer = state.mod["main"].body.block.body
    inner, c = outer.body.seq
    nodes = {"i": outer, "j": inner, "B": inner.body.block, "C": c.block}
    return {name: state.get_sref(node) for name, node in nodes.items()}


def test_what_is_replaced_is_gone_and_what_is_around_it_lives_on(func: PrimFunc) -> None:
    state = ScheduleState(func)
    known = references(state)
    assert known["B"].parent is known["j"]
    c = state.mod["main"].body.block.body.body.seq[1]
    copy = BlockRealize((), const(True), Block((), (), (), "copy", c))
    state.replace(known["j"], copy)
    assert state.mod["main"] is not func
    body = state.mod["main"].body.block.body
    assert body.body.seq[0] is copy
    assert known["j"].stmt is None
    assert known["B"].stmt is None
    assert known["i"].stmt is body
    assert state.get_sref(body) is known["i"]
    # The function that the state was made of is what it was.
    assert_structural_equal(func, from_source(PROGRAM))


def test_references_to_a_block_go_over_to_another(func: PrimFunc) -> None:
    state = ScheduleState(IRModule({"main": func, "other": from_source(PROGRAM)}))
    known = references(state)
    old = known["B"].stmt
    assert isinstance(old, Block)
    new = Block(old.iter_vars, (), (), "new", Evaluate(const(0)))
    other = state.mod["other"]
    state.replace(known["B"], new, {old: new})
    assert known["B"].stmt is new
    assert state.get_sref(new) is known["B"]
    assert known["B"].parent is known["j"]
    assert known["j"].stmt is not None
    assert state.mod["other"] is other


def test_what_cannot_be_replaced(func: PrimFunc) -> None:
    state = ScheduleState(func)
    known = references(state)
    loop = For(Var("k", "int32"), const(0), const(2), ForKind.SERIAL, Evaluate(const(0)))
    with pytest.raises(TypeError, match="A For cannot stand in the place of a Block"):
        state.replace(known["B"], loop)
    block = known["B"].stmt
    assert isinstance(block, Block)
    with pytest.raises(TypeError, match="A Block cannot stand in the place of a For"):
        state.replace(known["j"], block)
    state.replace(known["j"], loop)
    with pytest.raises(ValueError, match="no longer in the program"):
        state.replace(known["j"], loop)
    sch = Schedule(func)
    reference = sch.get_sref(sch.get_loops("B")[1])
    with pytest.raises(ValueError, match="changes by its primitives alone"):
        sch.state.replace(reference, loop)
    with pytest.raises(ValueError, match="no longer in the program"):
        sch.get(known["j"])


def test_the_fields_of_a_node_can_be_taken_and_set(func: PrimFunc) -> None:
    loop = func.body.block.body
    loop.__setstate__(loop.__getstate__())
    assert_structural_equal(func, from_source(PROGRAM))
    assert_structural_equal(pickle.loads(pickle.dumps(func)), func)


def test_a_state_says_what_it_was_asked_to_verify(func: PrimFunc) -> None:
    state = ScheduleState(func, debug_mask="all", enable_check=False)
    assert (state.debug_mask, state.enable_check) == (3, False)
    sch = Schedule(func, debug_mask=1)
    sch.split(sch.get_loops("C")[0], [2, 2])
    assert (sch.state.debug_mask, sch.copy().state.debug_mask) == (1, 1)
    for made in (Schedule, ScheduleState):
        with pytest.raises(ValueError, match="'some', and not"):
            made(func, debug_mask="some")


def test_one_function_under_two_names_is_two(func: PrimFunc) -> None:
    """The blocks of both are there, and a step in one leaves the other as it is."""
    sch = Schedule(IRModule({"main": func, "other": func}))
    assert sch.mod["main"] is func
    for name, loops in (("other", 3), ("main", 2)):
        block = sch.get_block("B", func_name=name)
        if name == "other":
            sch.split(sch.get_loops(block)[1], [2, 4])
        assert len(sch.get_loops(block)) == loops
    assert_structural_equal(sch.mod["main"].body, func.body)
