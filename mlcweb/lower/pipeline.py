"""The lowering of a function from TensorIR to flat loops: which passes run, and in which order.

Each target has a list of passes that begins with one of those here. Whoever makes code (a build, a
search, a model, the page) has `run_pipeline` run that list: under the `PassContext`, whose
instruments hear of each pass, with the passes that the program added, and with an observer for
those who want to see the function before and after each pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from mlcweb.analysis.threads import exchanges_data
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassContext, register_option
from mlcweb.lower.async_copies import copies_at_once
from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops, instructions_in_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.loop_exits import has_loop_exits, lower_loop_exits
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.lowering_pass import PREFIX, LoweringPass, lowering_pass
from mlcweb.lower.named_passes import SkipAssert
from mlcweb.lower.options import DISABLE_ASSERT
from mlcweb.lower.overlap import overlap
from mlcweb.lower.place_allocations import place_allocations
from mlcweb.lower.serialize_threads import serialize_threads
from mlcweb.lower.simplify import simplify
from mlcweb.tir.function import PrimFunc

TO_SERIAL_LOOPS: tuple[LoweringPass, ...] = (
    lower_init_block,
    convert_blocks_to_loops,
    overlap,
    serialize_threads,
)

TO_FLAT_LOOPS: tuple[LoweringPass, ...] = (
    place_allocations,
    compact_buffers,
    flatten_buffers,
    simplify,
)

PASSES = (*TO_SERIAL_LOOPS, *TO_FLAT_LOOPS)
"""The passes to flat loops."""


@lowering_pass("SerializeExchangingThreads", needed=True)
def without_threads(func: PrimFunc) -> PrimFunc:
    """The function, with serial loops and no blocks if its threads exchange data: for those who
    else take TensorIR as it is, and run loops over threads as any other."""
    func = instructions_in_loops(func)
    if not exchanges_data(func):
        return copies_at_once(func)
    for run in (*TO_SERIAL_LOOPS, simplify):
        func = run(func)
    return func


@lowering_pass("SkipAssert")
def skip_assertions(func: PrimFunc) -> PrimFunc:
    """The function without its assertions."""
    return func.with_body(SkipAssert().rewrite(func.body))


ADDED_PASSES = register_option(PREFIX + "add_lower_pass", list)
"""Passes of a program's own: pairs of a phase and a pass. Those of phase 0 run before a function is
lowered, the others after it."""


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did, and how many seconds it took."""

    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float

    @property
    def changed(self) -> bool:
        return self.after is not self.before


Observer = Callable[[PassRecord], None]


@nesting_limit("lowered")
def run_pipeline(
    func: PrimFunc,
    lowering: Sequence[LoweringPass] = PASSES,
    generation: Sequence[LoweringPass] = (),
    observe: Observer | None = None,
) -> PrimFunc:
    """The function after passes, those that the current `PassContext` adds among them.

    Args:
        lowering: those after which the passes of phase 1 and later run. A list that leaves blocks
            is not enough for these; the passes to flat loops then run in its place.
        generation: those that follow.
        observe: hears of each pass, what it has made of what.
    """
    context = PassContext.current()
    added = sorted(context.config.get(ADDED_PASSES, ()), key=itemgetter(0))
    first = [run for phase, run in added if phase == 0]
    last = [run for phase, run in added if phase != 0]
    if context.config.get(DISABLE_ASSERT):
        first.append(skip_assertions)
    if has_loop_exits(func):
        first.append(lower_loop_exits)
    if last and convert_blocks_to_loops not in lowering:
        lowering = PASSES
    for run in (*first, *lowering, *last, *generation):
        own = isinstance(run, LoweringPass)
        if not (run.is_enabled(context) if own else context.pass_enabled(run.info)):
            continue
        start = time.perf_counter()
        # A module is made for those who want to see one.
        bare = own and not context.instruments
        after = run(func) if bare else run(IRModule({"main": func}))["main"]
        if observe is not None:
            seconds = time.perf_counter() - start
            observe(PassRecord(run.name.removeprefix(PREFIX), func, after, seconds))
        func = after
    return func


def record_lowering(func: PrimFunc) -> list[PassRecord]:
    """Lower a function and keep what each pass started from and made."""
    records: list[PassRecord] = []
    run_pipeline(func, observe=records.append)
    return records


def lower(func: PrimFunc) -> PrimFunc:
    """The function as flat loops: no blocks, buffers of one dimension, allocations in place.

    The kinds and annotations of loops are kept.
    """
    return run_pipeline(func)
