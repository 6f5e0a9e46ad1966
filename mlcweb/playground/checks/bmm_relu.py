"""Chapter 2, exercise 3: transforming a batched product with ReLU into a given program."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mlcweb.ir import IRModule, structural_equal
from mlcweb.playground.checks.common import blocks_of, loop_text, variable
from mlcweb.playground.checks.programs import bmm_relu_target
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule
from mlcweb.tir.stmt import Block, For


def check(variables: Mapping[str, Any]) -> str:
    module = variable(variables, "sch", Schedule, "a Schedule").mod
    expected = bmm_relu_target()
    if structural_equal(module, expected):
        return "sch.mod is the target program, statement for statement."
    yours, target = _nests(module), _nests(expected)
    if missing := [name for name in target if name not in yours]:
        raise Wrong(_about_blocks(list(yours), missing))
    if _shared(yours)["Y_update", "C"] == 0:
        raise Wrong(
            "Block C is still in loops of its own, after all of Y. In the target it is where its "
            "tile has just been made: sch.reverse_compute_at(C, loop)."
        )
    for name, (block, loops) in target.items():
        _compare_loops(name, yours[name][1], loops)
        if not structural_equal(yours[name][0].body, block.body, map_free_vars=True):
            raise Wrong(f"Block {name} computes something else than in the target program.")
    mine, theirs = _shared(yours), _shared(target)
    for pair, count in theirs.items():
        if mine[pair] != count:
            first, second = pair
            raise Wrong(
                f"Blocks {first} and {second} share {mine[pair]} loop(s); in the target they share "
                f"{count}. Which loop does decompose_reduction or reverse_compute_at name?"
            )
    raise Wrong(
        f"The loops are those of the target, but not all else:\n{_first_line(module, expected)}"
    )


Nests = dict[str, tuple[Block, tuple[For, ...]]]


def _nests(module: IRModule) -> Nests:
    [function] = module.functions.values()
    return {block.name_hint: (block, loops) for block, loops in blocks_of(function)}


def _about_blocks(names: list[str], missing: list[str]) -> str:
    if "Y" in names and "Y_init" in missing:
        return (
            "Block Y still has its initial value inside. The target sets it in a block of its own, "
            "Y_init: sch.decompose_reduction(Y, loop) does that, before the loop that it names."
        )
    return f"The target has a block {missing[0]}; yours are {', '.join(names)}."


def _compare_loops(name: str, yours: tuple[For, ...], target: tuple[For, ...]) -> None:
    mine, theirs = [[loop_text(loop) for loop in loops] for loops in (yours, target)]
    if mine == theirs:
        return
    nest = f"\nyours:  {' → '.join(mine)}\ntarget: {' → '.join(theirs)}"
    for position, (have, want) in enumerate(zip(mine, theirs, strict=False), 1):
        if have != want:
            raise Wrong(
                f"First difference: loop {position} around block {name} is {have}, "
                f"the target has {want}.{nest}"
            )
    raise Wrong(
        f"First difference: block {name} is inside {len(mine)} loops, "
        f"in the target inside {len(theirs)}.{nest}"
    )


def _shared(nests: Nests) -> dict[tuple[str, str], int]:
    """For pairs of blocks that follow each other, how many loops are around both."""
    names = ["Y_init", "Y_update", "C"]
    return {
        (one, two): sum(loop in nests[two][1] for loop in nests[one][1])
        for one, two in pairwise(names)
    }


def _first_line(module: IRModule, expected: IRModule) -> str:
    texts = module.script().splitlines(), expected.script().splitlines()
    for mine, theirs in zip(*texts, strict=False):
        if mine != theirs:
            return f"yours:  {mine.strip()}\ntarget: {theirs.strip()}"
    return ""
