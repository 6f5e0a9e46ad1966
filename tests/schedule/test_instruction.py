"""Instructions and traces that a program makes itself, as TVM documents them."""

from __future__ import annotations

import pytest

from mlcweb.schedule import BlockRV, Instruction, InstructionKind, LoopRV, Schedule, Trace
from tests.lower.test_tvm_names import computed_at


def get_block(output: BlockRV, name: str = "B") -> Instruction:
    kind = InstructionKind.get("GetBlock")
    return Instruction(kind=kind, inputs=[], attrs=[name, "main"], outputs=[output])


def test_kinds_by_name() -> None:
    assert (
        repr(InstructionKind.get("GetBlock"))
        == "tir.InstructionKind(name='GetBlock', is_pure=True)"
    )
    assert InstructionKind.get("EnterPostproc").is_postproc
    assert not InstructionKind.get("GetLoops").is_postproc
    assert InstructionKind.get("GetSBlock").name == "GetSBlock"
    assert InstructionKind.get("GetSBlock").function is InstructionKind.get("GetBlock").function
    with pytest.raises(AttributeError, match="NoSuch"):
        InstructionKind.get("NoSuch")


def test_pure_kinds() -> None:
    # As TVM 0.27 has them.
    pure = ["GetBlock", "GetLoops", "GetConsumers", "SampleCategorical", "SamplePerfectTile"]
    assert all(InstructionKind.get(name).is_pure for name in pure)
    assert not any(InstructionKind.get(name).is_pure for name in ("Fuse", "EnterPostproc"))


def test_an_instruction_prints_without_names() -> None:
    # The text is TVM 0.27's, where get_block is called get_sblock.
    assert str(get_block(BlockRV(), "block")) == "_ = sch.get_block(name=block, func_name=main)"


def test_a_trace_is_made_step_by_step_and_applied() -> None:
    block = BlockRV()
    trace = Trace([get_block(block)], {})
    loops = InstructionKind.get("GetLoops")
    trace.append(Instruction(loops, [block], [], [LoopRV(), LoopRV()]))
    assert trace.as_python() == [
        'b0 = sch.get_block(name="B", func_name="main")',
        "l1, l2 = sch.get_loops(block=b0)",
    ]
    last = trace.pop()
    assert last is not None
    assert last.kind.name == "GetLoops"
    inline = InstructionKind.get("ComputeInline")
    trace.append(Instruction(inline, [block], [], []))
    sch = Schedule(computed_at)
    trace.apply_to_schedule(sch, remove_postproc=False, decision_provider=None)
    assert 'T.block("B")' not in sch.mod.script()
    assert sch.state.mod is sch.mod


def test_steps_are_spelled_as_the_program_spells_them() -> None:
    old, new = Schedule(computed_at), Schedule(computed_at)
    old.get_loops(old.get_block("B"))
    new.get_loops(new.get_sblock("B"))
    lines = ['b0 = sch.get_block(name="B", func_name="main")', "l1, l2 = sch.get_loops(block=b0)"]
    newer = [lines[0].replace("get_block", "get_sblock"), lines[1]]
    assert old.trace.as_python() == lines
    assert new.trace.as_python() == newer
    assert str(old.trace).startswith("# from tvm import tir\n")
    assert str(new.trace).startswith("# from tvm import s_tir\n")
    assert old.trace.as_json()[0][0][0] == "GetBlock"
    assert new.trace.as_json()[0][0][0] == "GetSBlock"
    # What a dialect is asked for is in that dialect.
    assert new.trace.as_python(dialect="tir") == lines
    assert old.trace.as_python(dialect="s_tir") == newer
    assert new.trace.as_json(dialect="tir") == old.trace.as_json()
    # Steps that are carried out again keep their spelling.
    again = Schedule(computed_at)
    new.trace.apply_to_schedule(again)
    assert again.trace.as_python() == newer
    assert "get_sblock" in str(new.trace.insts[0])


def test_what_schedules_of_tensor_expressions_had_names_what_takes_its_place():
    sch = Schedule(computed_at)
    with pytest.raises(AttributeError, match="has no tile: split both loops, and reorder"):
        sch.tile
    with pytest.raises(AttributeError, match="has no vectorise; did you mean vectorize"):
        sch.vectorise
    with pytest.raises(TypeError, match=r"no stages: sch.get_block\(\"B\"\) finds a block"):
        sch["C"]
    assert not hasattr(sch, "nothing_like_it")
