"""What a trace tells of the tiles that `RegisterTiling` makes, before it is replayed.

Whether the sums of a tile fit the registers is decided by a few of the trace's steps. To replay it
takes thousands of times as long as to multiply what they decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlcweb.meta_schedule.schedule_rule.block_facts import TILING_STRUCTURE
from mlcweb.meta_schedule.schedule_rule.lanes import MIN_VECTORS
from mlcweb.schedule import BlockRV, Instruction, Trace
from mlcweb.tir.arithmetic import constant_value

STRUCTURE = "SSRRS"
"""The tiling structure of `RegisterTiling`."""

_SPATIAL_LEVELS = STRUCTURE.count("S")


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """The sums of a block that are made at a time.

    Attributes:
        least: the fewest vectors of sums that are worth making together.
        constant: the extents of the loops in it that are not sampled, multiplied.
        tilings: the steps whose innermost factors are the extents of the others.
    """

    least: int
    constant: int
    tilings: tuple[Instruction, ...]

    def sums(self, decisions: Mapping[Instruction, Any]) -> int | None:
        """How many sums the tile holds; None where a step has not decided."""
        sums = self.constant
        for inst in self.tilings:
            factors = decisions.get(inst)
            if factors is None:
                return None
            sums *= int(factors[-1])
        return sums


def register_tiles(trace: Trace) -> list[RegisterTile]:
    """The tiles that a trace makes in registers. Those that other rules make are not found."""
    blocks: dict[BlockRV, dict[str, Any]] = {}
    for inst in trace.insts:
        if inst.kind.name == "Annotate" and isinstance(inst.inputs[0], BlockRV):
            blocks.setdefault(inst.inputs[0], {})[inst.attrs[0]] = inst.inputs[1]
    return [
        _tile(trace.insts, block, int(constant_value(notes[MIN_VECTORS]) or 0))
        for block, notes in blocks.items()
        if notes.get(TILING_STRUCTURE) == STRUCTURE and MIN_VECTORS in notes
    ]


def _tile(insts: Sequence[Instruction], block: BlockRV, least: int) -> RegisterTile:
    # Of each loop below the block's own: what its extent is, as far as it is known.
    extents: dict[Any, tuple[Any, ...]] = {}
    innermost: dict[Any, Instruction] = {}
    held: list[Any] = []
    for inst in insts:
        name, inputs = inst.kind.name, inst.inputs
        if name == "GetLoops" and inputs[0] is block:
            extents.update((loop, ()) for loop in inst.outputs)
        elif name == "SamplePerfectTile" and len(inst.outputs) == _SPATIAL_LEVELS:
            innermost[inst.outputs[-1]] = inst
        elif name == "Split" and inputs[0] in extents:
            extents.update((loop, (f,)) for loop, f in zip(inst.outputs, inputs[1:], strict=True))
        elif name == "Fuse" and all(loop in extents for loop in inputs):
            extents[inst.outputs[0]] = tuple(f for loop in inputs for f in extents[loop])
        elif name in ("Unroll", "Vectorize"):
            held += extents.get(inputs[0], ())
    # The factors of a reduction are not among the spatial ones: its loops are cut into fewer.
    constants = [constant_value(factor) for factor in held]
    return RegisterTile(
        least,
        prod(int(constant) for constant in constants if constant is not None),
        tuple(innermost[factor] for factor in held if factor in innermost),
    )
