"""Instructions and traces that a program makes itself, as TVM documents them."""

from __future__ import annotations

import pytest

from mlcweb.schedule import BlockRV, Instruction, InstructionKind, LoopRV, Schedule, Trace
from tests.lower.test_tvm_names import computed_at


def get_block(output: BlockRV, name: str = "B") -> Instruction:
    kind = InstructionKind.get("GetBlock")
    return Instruction(kind=kind, inputs=[], attrs=[name, "main"], outputs=[output])


def test_kinds_by_name() -> None:
    assert InstructionKind.get("EnterPostproc").is_postproc
    assert not InstructionKind.get("GetLoops").is_postproc
    assert InstructionKind.get("GetSBlock") is InstructionKind.get("GetBlock")
    with pytest.raises(ValueError, match="NoSuch"):
        InstructionKind.get("NoSuch")


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
