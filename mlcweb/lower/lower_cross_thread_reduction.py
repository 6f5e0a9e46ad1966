"""The pass `tvm.s_tir.transform.LowerCrossThreadReduction`: of a block that reduces over threads
it makes at most four.

    B_in_thread_init      each thread begins with the identity element,
    B_in_thread           reduces in its own loops,
    B_cross_thread        gets by T.tvm_thread_allreduce what all have together,
    B_write_back          and the first thread stores that; all do so in memory of their own.

Where each thread has one value, the first two are not there. A block that uses such a result of a
thread outside of its loops over threads, and stores it for all to see, is run by the first thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.arith import Analyzer, conjunction, conjuncts
from mlcweb.arith.iter_map import BIJECTIVE, is_iter_map
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, Visitor, find_nodes, on, walk
from mlcweb.lower.thread_allreduce import REDUCE_SCOPE
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.schedule.analysis.reducers import Reduction, reduction_of
from mlcweb.schedule.analysis.scopes import loop_ranges
from mlcweb.schedule.errors import BlockKindError
from mlcweb.schedule.rewriting.buffer_rewriting import with_accesses
from mlcweb.schedule.rewriting.nests import in_loops, part_of_block
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, equal, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import max_value
from mlcweb.tir.reduction import CommReducer
from mlcweb.tir.substitute import substitute, uses_any, variables_in


class ReductionError(ThreadError, ValueError):
    """A reduction across threads that cannot be put together from what each thread reduces."""


def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """The function with a `T.tvm_thread_allreduce` for each block that reduces over threads.

    Raises:
        ReductionError: the block is no reduction that can be taken apart, or is not alone in its
            loops.
    """
    plan = _Plan()
    plan.visit(func.body)
    if not plan.reductions:
        return func
    return func.with_body(_Lowering(plan).rewrite(func.body))


@dataclass(frozen=True, slots=True)
class _CrossThread:
    """A block that reduces over `loops`, outermost first, into elements of `results`. Threads
    reduce in `partials` of their own first, if there are any."""

    realize: S.BlockRealize
    loops: list[S.For]
    reduction: Reduction
    results: list[Buffer]
    partials: list[Buffer]

    @property
    def bound(self) -> list[S.For]:
        return [loop for loop in self.loops if loop.thread_binding is not None]


class _Plan(Visitor):
    """Finds the reductions by the outermost of their loops, the buffers that are new in blocks, and
    the loops over threads that blocks get around them."""

    def __init__(self) -> None:
        self.reductions: dict[S.For, _CrossThread] = {}
        self.allocated: dict[S.BlockIdentity, list[Buffer]] = {}
        self.broadcasts: dict[S.BlockRealize, list[S.For]] = {}
        self.around: list[S.Stmt] = []
        self.reduced: dict[Buffer, list[S.For]] = {}

    def visit(self, node: Node) -> None:
        if not isinstance(node, S.Stmt):
            return
        self.around.append(node)
        super().visit(node)
        self.around.pop()

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> None:
        place = BlockPlace("main", realize, tuple(self.around[:-1]))
        loops = _reduction_loops(place)
        if any(loop.thread_binding is not None for loop in loops):
            self.reduce(place, loops)
        else:
            self.broadcast(realize)
            self.visit_children(realize)

    def reduce(self, place: BlockPlace, loops: list[S.For]) -> None:
        scopes = [part for part in place.parents if isinstance(part, S.Block)]
        _check_loops(place, loops)
        if not scopes:
            raise _refusal(place, "there is no block around it to allocate memory in")
        reduction = _reduction(place)
        _check_iterations(place, loops)
        _check_alone(place, loops[0], reduction)
        threads = [loop for loop in loops if loop.thread_binding is not None]
        needs_partials = threads != loops or not is_const_int(place.realize.predicate, 1)
        results = [_scratchpad("cross_thread", buffer) for buffer in reduction.buffers]
        partials = [_scratchpad("in_thread", buffer) for buffer in reduction.buffers]
        partials = partials if needs_partials else []
        self.reductions[loops[0]] = _CrossThread(place.realize, loops, reduction, results, partials)
        self.allocated.setdefault(scopes[-1].identity, []).extend((*results, *partials))
        for buffer in reduction.buffers:
            self.reduced[buffer] = threads

    def broadcast(self, realize: S.BlockRealize) -> None:
        """Plan loops over the threads that have what a block uses, if it is outside of theirs."""
        block = realize.block
        tags = {_tag(part) for part in (*self.around, *walk(block)) if isinstance(part, S.For)}
        loops = {
            _tag(loop): loop
            for region in block.reads
            for loop in self.reduced.get(region.buffer, ())
            if _tag(loop) not in tags
        }
        if loops and not any(_is_own(region.buffer) for region in block.writes):
            self.broadcasts[realize] = list(loops.values())


def _reduction_loops(place: BlockPlace) -> list[S.For]:
    """The loops in the scope of a block that has an init on which its reduction depends."""
    if place.block.init is None:
        return []
    used = variables_in(*_reduction_values(place.realize))
    return [loop for loop in place.loops if loop.loop_var in used]


def _reduction_values(realize: S.BlockRealize) -> list[E.PrimExpr]:
    return [v for axis, v in realize.iterators if axis.iter_type == S.IterType.COMM_REDUCE]


def _check_loops(place: BlockPlace, loops: Sequence[S.For]) -> None:
    for loop in loops:
        if loop.thread_binding is not None and not _tag(loop).startswith("threadIdx."):
            raise _refusal(
                place,
                f'its loop "{loop.loop_var.name}" is bound to "{_tag(loop)}", and only threads of '
                "one block can reduce together",
            )
    for part in place.parents[place.parents.index(loops[0]) :]:
        if part not in loops and not isinstance(part, S.SeqStmt):
            loop = f'The loop "{part.loop_var.name}"' if isinstance(part, S.For) else "A statement"
            raise ReductionError(
                f"{loop} stands between the {place.title} and the loops that it reduces over by "
                "threads; reorder the loops so that these are the innermost",
                part.span,
            )


def _reduction(place: BlockPlace) -> Reduction:
    try:
        return reduction_of(place)
    except BlockKindError as error:
        text = "; ".join(filter(None, (error.reason, error.advice)))
        raise ReductionError(text, place.block.span) from None


def _check_iterations(place: BlockPlace, loops: Sequence[S.For]) -> None:
    """Refuse a reduction that does not begin with its init in the first iteration of its loops, or
    goes through some values twice, or of which the element depends on its loops. Parameters count
    as positive, as extents are."""
    realize, values = place.realize, _reduction_values(place.realize)
    ranges = loop_ranges(loops)
    outer = {var for var in place.domains_around if var not in ranges}
    for axis, value in realize.iterators:
        if axis.iter_type != S.IterType.COMM_REDUCE and uses_any(value, ranges):
            raise _refusal(place, f'"{axis.var.name}" = {value} depends on its reduction, too')
    own = [part for part in conjuncts(realize.predicate) if uses_any(part, ranges)]
    if any(uses_any(part, outer) for part in own):
        raise _refusal(
            place,
            f"its predicate {realize.predicate} is about its reduction and other loops at once",
        )
    if uses_any(S.sequence(*map(S.Evaluate, values)), outer):
        raise _refusal(place, "the block around it reduces over the same values, too")
    one_to_one = (
        is_iter_map(values, ranges, condition, BIJECTIVE) for condition in (True, conjunction(own))
    )
    first = {loop.loop_var: loop.min for loop in loops}
    symbols = variables_in(*values, *own).difference(ranges)
    analyzer = Analyzer({var: Range(const(1, var.dtype), max_value(var.dtype)) for var in symbols})
    starts = (
        equal(substitute(value, first), axis.dom.min)
        for axis, value in realize.iterators
        if axis.iter_type == S.IterType.COMM_REDUCE and axis.dom is not None
    )
    begins = (*starts, *(substitute(condition, first) for condition in own))
    if not any(one_to_one) or not all(map(analyzer.can_prove, begins)):
        raise _refusal(
            place, "its loops do not go through its values once each, beginning with its init"
        )


def _check_alone(place: BlockPlace, loop: S.For, reduction: Reduction) -> None:
    """Refuse a reduction that is not the last in its loops, or whose results others use there."""
    realizes = list(find_nodes(loop, S.BlockRealize))
    last = next(part for part in reversed(realizes) if not _is_inside(part, place.realize))
    if last is not place.realize:
        raise _refusal(
            place,
            f'block "{last.block.name_hint}" comes after it in its loop "{loop.loop_var.name}"; '
            "move that out of the loop",
        )
    inside = {*walk(place.realize)}
    for node in find_nodes(loop, E.BufferLoad, S.BufferStore):
        if node.buffer in reduction.buffers and node not in inside:
            raise _refusal(
                place, f'its result "{node.buffer.name}" is used before the reduction is done'
            )


def _is_inside(part: S.BlockRealize, realize: S.BlockRealize) -> bool:
    return part is not realize and any(node is part for node in walk(realize))


def _refusal(place: BlockPlace, reason: str) -> ReductionError:
    return ReductionError(
        f"The threads of {place.title} cannot reduce together: {reason}", place.block.span
    )


_GONE = S.Evaluate(const(0))
"""What is left of a block that becomes others."""


class _Lowering(Mutator):
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.inside: _CrossThread | None = None

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        reduction = self.plan.reductions.get(loop)
        if reduction is None:
            return self.own_loop(loop)
        self.inside = reduction
        own = self.own_loop(loop)
        self.inside = None
        steps = [_start(reduction)] if reduction.partials else []
        steps += [] if own is _GONE else [own]
        steps += [_together(reduction), _write_back(reduction)]
        return in_loops(S.sequence(*steps), reduction.bound)

    def own_loop(self, loop: S.For) -> S.Stmt:
        """What a thread does in a loop, which goes where it is one over the threads that reduce."""
        body = self.rewrite(loop.body)
        is_bound = self.inside is not None and loop in self.inside.bound
        return body if is_bound or body is _GONE else replace(loop, body=body)

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        kept = [part for part in new.seq if part is not _GONE]
        return new if len(kept) == len(new.seq) else S.sequence(*kept)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        if self.inside is not None and realize is self.inside.realize:
            return _in_thread(self.inside) if self.inside.partials else _GONE
        new = self.rewrite_children(realize)
        axes = [_axis(loop) for loop in self.plan.broadcasts.get(realize, ())]
        if not axes:
            return new
        first = [equal(axis.loop_var, axis.min) for axis in axes]
        predicate = conjunction((*first, new.predicate))
        return in_loops(replace(new, predicate=predicate), axes)

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        new = self.rewrite_children(block)
        buffers = self.plan.allocated.get(block.identity, ())
        return replace(new, alloc_buffers=(*new.alloc_buffers, *buffers)) if buffers else new


def _start(reduction: _CrossThread) -> S.Stmt:
    stores = map(S.store_to, _elements(reduction.partials), reduction.reduction.identity)
    return _realize(reduction, "in_thread_init", S.sequence(*stores))


def _in_thread(reduction: _CrossThread) -> S.Stmt:
    block, body = reduction.realize.block, reduction.realize.block.body
    for old, new in zip(reduction.reduction.buffers, reduction.partials, strict=True):
        body = with_accesses(body, old, new, (const(0),))
    own = replace(
        block,
        name_hint=f"{block.name_hint}_in_thread",
        reads=_other_reads(reduction),
        writes=_regions(reduction.partials),
        init=None,
        body=body,
        identity=S.BlockIdentity(),
    )
    return replace(reduction.realize, block=own)


def _together(reduction: _CrossThread) -> S.Stmt:
    """The block in which all threads get what they reduce to."""
    combined, count = reduction.reduction, len(reduction.results)
    left, right = (
        tuple(E.Var(f"{side}{n}", buffer.dtype) for n, buffer in enumerate(reduction.results))
        for side in "xy"
    )
    results = combined.reducer.combine(left, right)
    reducer = CommReducer(left, right, tuple(results), tuple(combined.identity))
    values = _elements(reduction.partials) or combined.contributions
    threads = [loop.loop_var for loop in reduction.bound]
    elements = _elements(reduction.results)
    arguments = (const(count, "uint32"), *values, const(True), *elements, *threads)
    call = S.Evaluate(E.Call("void", OPS["tvm_thread_allreduce"], arguments))
    body = S.AttrStmt(reducer, REDUCE_SCOPE, const(0), call)
    return _realize(reduction, "cross_thread", body, shares_iterators=not reduction.partials)


def _write_back(reduction: _CrossThread) -> S.Stmt:
    realize, block = reduction.realize, reduction.realize.block
    indices = reduction.reduction.indices
    stores = (
        S.BufferStore(buffer, element, indices)
        for buffer, element in zip(
            reduction.reduction.buffers, _elements(reduction.results), strict=True
        )
    )
    spatial = [
        (axis, value)
        for axis, value in realize.iterators
        if axis.iter_type != S.IterType.COMM_REDUCE
    ]
    order = reduction.reduction.buffers.index
    block = replace(block, writes=tuple(sorted(block.writes, key=lambda w: order(w.buffer))))
    name, axes = f"{block.name_hint}_write_back", [axis for axis, _ in spatial]
    part = part_of_block(block, axes, name, S.sequence(*stores))
    over = {loop.loop_var for loop in reduction.loops}
    conditions = [c for c in conjuncts(realize.predicate) if not uses_any(c, over)]
    if not all(map(_is_own, reduction.reduction.buffers)):
        conditions += [equal(loop.loop_var, loop.min) for loop in reduction.bound]
    return S.BlockRealize(tuple(value for _, value in spatial), conjunction(conditions), part)


def _realize(
    reduction: _CrossThread, suffix: str, body: S.Stmt, shares_iterators: bool = False
) -> S.BlockRealize:
    """A block of threads for themselves, with the iterators of the reduction or without any."""
    block = reduction.realize.block
    iter_vars = block.iter_vars if shares_iterators else ()
    values = reduction.realize.iter_values if shares_iterators else ()
    is_start = suffix == "in_thread_init"
    reads = _other_reads(reduction) if shares_iterators else _regions(reduction.partials)
    writes = _regions(reduction.partials if is_start else reduction.results)
    name = f"{block.name_hint}_{suffix}"
    new = S.Block(iter_vars, () if is_start else reads, writes, name, body, span=block.span)
    return S.BlockRealize(values, const(True), new)


def _elements(buffers: Sequence[Buffer]) -> list[E.BufferLoad]:
    return [E.BufferLoad(buffer, (const(0),)) for buffer in buffers]


def _regions(buffers: Sequence[Buffer]) -> tuple[BufferRegion, ...]:
    return tuple(BufferRegion(buffer, (Range(const(0), const(1)),)) for buffer in buffers)


def _other_reads(reduction: _CrossThread) -> tuple[BufferRegion, ...]:
    reads = reduction.realize.block.reads
    return tuple(region for region in reads if region.buffer not in reduction.reduction.buffers)


def _scratchpad(kind: str, buffer: Buffer) -> Buffer:
    return decl_buffer((1,), buffer.dtype, f"{kind}_{buffer.name}", strides=(1,), scope="local")


def _axis(loop: S.For) -> S.For:
    """A loop of its own over the same threads."""
    axis = E.Var(f"t{_tag(loop)[-1]}", loop.loop_var.dtype)
    return replace(loop, loop_var=axis, annotations={})


def _tag(loop: S.For) -> str:
    return "" if loop.thread_binding is None else loop.thread_binding.thread_tag


def _is_own(buffer: Buffer) -> bool:
    return buffer.scope() == "local"
