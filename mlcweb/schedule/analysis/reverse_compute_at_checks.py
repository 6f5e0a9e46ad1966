"""What must hold of a consumer that moves under a loop of its producers.

`realize` is the consumer in its new place, `loops` are its new loops under the loop `target`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith import Analyzer, conjuncts
from mlcweb.arith.iter_map import BIJECTIVE, detect_iter_map
from mlcweb.schedule.analysis.effects import have_run, reads_only_written
from mlcweb.schedule.analysis.regions import regions_of, touched
from mlcweb.schedule.analysis.scopes import loop_ranges
from mlcweb.schedule.errors import BindingError, DataflowError, LoopError
from mlcweb.schedule.state import BlockPlace, LoopPlace
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import BlockRealize, ForKind, IterType
from mlcweb.tir.substitute import substitute, variables_in


def check_written_before(
    target: LoopPlace,
    producers: Sequence[BlockPlace],
    realize: BlockRealize,
    loops: Mapping[Var, Range],
    analyzer: Analyzer,
) -> None:
    """The iterations of producers that make what the moved consumer reads in an iteration of the
    loop all run in that iteration."""
    for producer in producers:
        for buffer in dict.fromkeys(region.buffer for region in producer.block.writes):
            reads = regions_of(realize.block.reads, buffer)
            boxes = [touched(realize, read, loops, analyzer) for read in reads]
            if boxes and not have_run(producer, buffer, boxes, target.loop, analyzer):
                raise DataflowError(
                    f'In an iteration of the loop "{target.loop.loop_var.name}" the block '
                    f'"{realize.block.name_hint}" would read elements of "{buffer.name}" '
                    "that are written in another iteration",
                    [target.loop, realize],
                    "choose a loop further outside, whose iterations write all that is read",
                )
            if boxes and buffer.scope() != "global" and _is_left_out(producer, target):
                raise DataflowError(
                    f'In some iterations of the loops around "{target.loop.loop_var.name}" the '
                    f'{producer.title} writes nothing to "{buffer.name}", which threads of an '
                    "earlier iteration do not leave to those of a later one",
                    [target.loop, producer.realize, realize],
                    "move it before the split of a loop that the elements do not depend on",
                )


def _is_left_out(producer: BlockPlace, target: LoopPlace) -> bool:
    """Whether there are launches of threads in which a block does not run: a part of its predicate
    is about loops alone that tell nothing of its iterators."""
    outer = (*target.loops, target.loop)
    if not any(loop.thread_binding for loop in outer):
        return False
    driving = variables_in(*producer.realize.iter_values)
    around = {loop.loop_var for loop in outer}
    return any(
        (used := variables_in(part)) & around and used.isdisjoint(driving)
        for part in conjuncts(producer.realize.predicate)
    )


def check_all_executed(
    target: LoopPlace, producers: Sequence[BlockPlace], place: BlockPlace
) -> None:
    """Each iteration of the moved consumer reads something that a producer writes, and so runs
    under the loop."""
    shared = [
        (producer, region.buffer)
        for producer in producers
        for region in producer.block.writes
        if regions_of(place.block.reads, region.buffer)
    ]
    if shared and not any(reads_only_written(place, p, buffer) for p, buffer in shared):
        name = place.block.name_hint
        raise DataflowError(
            f'Some iterations of the block "{name}" read nothing that its producers write, and '
            f'would not run under the loop "{target.loop.loop_var.name}"',
            [place.realize, target.loop],
            "move the producer with compute_at instead",
        )


def check_reduction_order(
    target: LoopPlace, realize: BlockRealize, loops: Mapping[Var, Range]
) -> None:
    """A moved reduction adds each element once, and not in parallel.

    Where all reduction iterators run in the new loops, each time starts with the init. Where they
    are spread over the loops outside, the whole binding must be one to one.
    """
    outer = (*target.loops, target.loop)
    variables = {loop.loop_var for loop in outer}
    spread: set[Var] = set()
    for iter_var, value in realize.iterators:
        if iter_var.iter_type == IterType.COMM_REDUCE:
            spread |= variables_in(value) & variables
    if not spread:
        return
    parallel = [
        loop for loop in outer
        if loop.loop_var in spread and loop.kind in (ForKind.PARALLEL, ForKind.VECTORIZED)
    ]  # fmt: skip
    name = realize.block.name_hint
    if parallel:
        raise LoopError(
            f'The reduction of block "{name}" would run over the loop '
            f'"{parallel[0].loop_var.name}", whose iterations run at the same time',
            [parallel[0], realize],
            "move it under a serial loop, or bind and parallelize afterwards",
        )
    result = detect_iter_map(
        realize.iter_values, {**loop_ranges(outer), **loops}, realize.predicate, BIJECTIVE
    )
    if result.indices is None:
        raise BindingError(
            f'Under the loop "{target.loop.loop_var.name}" the block "{name}" would add some '
            "elements to its reduction more than once",
            [target.loop, realize],
            "choose a loop around the whole reduction",
        )
    _check_init_first(target, realize, spread, {**loop_ranges(outer), **loops})


def _check_init_first(
    target: LoopPlace, realize: BlockRealize, spread: set[Var], ranges: Mapping[Var, Range]
) -> None:
    """The loops outside run each reduction iterator upwards, or start where it does: the iteration
    in which all are at their start, which the init belongs to, comes first."""
    if realize.block.init is None:
        return
    analyzer = Analyzer(ranges)
    starts = {loop: domain.min for loop, domain in ranges.items()}
    for iter_var, value in realize.iterators:
        if iter_var.iter_type != IterType.COMM_REDUCE:
            continue
        upwards = all(
            analyzer.can_prove(substitute(value, {loop: loop + 1}) >= value) for loop in spread
        )
        first = substitute(value, starts)
        if not upwards and not analyzer.can_prove_equal(first, iter_var.domain.min):
            raise LoopError(
                f'Under the loop "{target.loop.loop_var.name}" the reduction iterator '
                f'"{iter_var.var.name}" of block "{realize.block.name_hint}" would not start where '
                "its domain does, so that the init would run after some of the updates",
                [target.loop, realize],
                "decompose_reduction first",
            )
