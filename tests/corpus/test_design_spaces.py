"""What a search makes of programs that TVM prints computes the same: design spaces for three kinds
of targets, with decisions at random."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.schedule import ScheduleError, Trace
from mlcweb.tir import PrimFunc, Schedule
from mlcweb.tir.stmt import (
    Block,
    BufferStore,
    Evaluate,
    For,
    While,
    find_statements,
    statements_in,
)
from tests.corpus.running import computed, count, functions_in, interpreted, iterations, sized
from tests.corpus.test_printed import printed_programs
from tests.corpus.test_schedules import MAX_ITERATIONS, compare

TARGETS = {"wasm": "wasm", "llvm": "llvm -num-cores 4", "cuda": "nvidia/nvidia-t4"}
"""What a kind is built for; programs for CUDA run on the simulated GPU."""

UNSUITED = ("the description of", "s_tir.", "tirx.", "design")
"""Instructions are described by updates that nothing initializes; others were lowered by a pass of
TVM, or are scheduled already."""


def suited() -> list[tuple[str, str]]:
    programs = printed_programs("0.27")
    return [(origin, text) for origin, text in programs if not any(p in origin for p in UNSUITED)]


def check(programs: Iterable[tuple[str, str]], least: int) -> None:
    """All candidates compute what the programs do, and there are at least so many."""
    suitable = (
        (name, func)
        for name, func in functions_in(programs)
        if iterations(func.body) <= MAX_ITERATIONS and has_loops_in_blocks(func)
    )
    assert count(suitable, explored) >= least


def has_loops_in_blocks(func: PrimFunc) -> bool:
    """Whether all of a function can be bound to threads: no statements are beside its blocks, and
    none has loops of its own."""
    if func.root_block is None:
        return False
    blocks = list(find_statements(func.root_block.body, Block))
    inside = {part for block in blocks for part in statements_in(block.body)}
    others = set(statements_in(func.root_block.body)) - inside
    return not any(isinstance(part, (For, While)) for part in inside) and not any(
        isinstance(part, (BufferStore, Evaluate)) for part in others
    )


def explored(func: PrimFunc, seed: int) -> int:
    """How many candidates for all kinds of targets were built and ran."""
    return sum(explored_for(kind, func, seed) for kind in TARGETS)


def explored_for(kind: str, func: PrimFunc, seed: int) -> int:
    """How many candidates of a design space were built and ran.

    Raises:
        CannotRun: the program is not one that can be run.
    """
    arrays, expected = interpreted(func)
    mod = IRModule({"main": sized(func).with_attr("global_symbol", "main")})
    rules = "cuda" if kind == "cuda" else "from-target"
    space = PostOrderApply(sch_rules=rules, postprocs=rules, mutator_probs=rules)
    context = TuneContext(
        mod, target=Target(TARGETS[kind]), space_generator=space, search_strategy="replay-trace",
        task_name="main", rand_state=seed + 1,
    )  # fmt: skip
    random, candidates = Random(seed), 0
    for design in context.generate_design_space()[:3]:
        sch = Schedule(context.mod, seed=random.randrange(1, 1 << 30))
        Trace(design.trace.insts, {}).apply_to_schedule(sch, remove_postproc=True)
        try:
            if not all(each.apply(sch) for each in space.postprocs or ()):
                continue
        except ScheduleError:  # which a search takes for a candidate that is no good
            continue
        scheduled = sch.mod["main"]
        assert isinstance(scheduled, PrimFunc)
        if iterations(scheduled.body) > 10 * MAX_ITERATIONS:
            continue
        try:
            target = "simulated" if kind == "cuda" else kind
            compare(computed(scheduled, target, arrays), expected)
        except Exception as error:
            error.add_note(f"{kind}: {sch.trace}")
            raise
        candidates += 1
    return candidates


def test_a_sample_computes_the_same() -> None:
    check(suited()[9::90], 20)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(2))
def test_a_share_computes_the_same(first: int) -> None:
    check(suited()[first::10], 150)
