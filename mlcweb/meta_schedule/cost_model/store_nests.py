"""The loops around each store of a scheduled program, as TVM's features of stores count them.

The program is lowered as far as that takes: threads that reduce together do so in registers of
their own first, buffers are allocated where they are used and have the size of what is used, and
the threads of a kernel are launched at once. Loops and blocks stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcweb.arith import conjunction, conjuncts
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import BlockConversion
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.named_passes import plan_buffer_allocation
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import NOTHING, in_sequence
from mlcweb.schedule.analysis.scopes import is_trivially_true
from mlcweb.schedule.rewriting.nests import in_loops
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, MatchBufferRegion, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


def lowered_for_features(func: PrimFunc) -> PrimFunc:
    """A function without blocks, whose loops are those that TVM counts."""
    func = func.with_body(_PlainLoops().rewrite(func.body))
    func = func.with_body(_CrossThreadReductions().whole(func.body))
    func = plan_buffer_allocation(lower_init_block(func))
    func = compact_buffers(func.with_body(_BlockConversion().rewrite(func.body)))
    return func.with_body(_Simplification().rewrite(_Launches().rewrite(func.body)))


class _PlainLoops(Mutator):
    """Leaves out serial loops of one iteration, and choices between values that are not read."""

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        is_plain = loop.kind == S.ForKind.SERIAL and not loop.annotations
        if is_plain and is_const_int(loop.extent, 1) and is_const_int(loop.min, 0):
            return self.rewrite(substitute(loop.body, {loop.loop_var: loop.min}))
        return self.rewrite_children(loop)

    @on(E.Select)
    def select(self, select: E.Select) -> E.PrimExpr:
        return select if reads_memory(select) else const(1, select.dtype)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A block that threads reduce in together: what initialises registers of their own, and what
    writes the result back."""

    init: S.Stmt
    write_back: S.Stmt
    loops: Sequence[S.For]


class _CrossThreadReductions(Mutator):
    """Has threads that reduce to one element together reduce in registers of their own; the first
    of them then writes the result back."""

    def __init__(self) -> None:
        self.loops: list[S.For] = []
        self.reductions: dict[E.Var, _Reduction] = {}
        self.launched: set[E.Var] = set()
        self.registers: list[Buffer] = []

    def whole(self, body: S.Stmt) -> S.Stmt:
        """The body of a function, whose root block allocates the registers."""
        new = self.rewrite(body)
        if not (self.registers and isinstance(new, S.BlockRealize)):
            return new
        buffers = (*new.block.alloc_buffers, *self.registers)
        return replace(new, block=replace(new.block, alloc_buffers=buffers))

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.loops.append(loop)
        new = self.rewrite_children(loop)
        self.loops.pop()
        new = new.body if loop.loop_var in self.launched else new
        reduction = self.reductions.pop(loop.loop_var, None)
        if reduction is None:
            return new
        threads = [each for each in reduction.loops if each.loop_var in self.launched]
        steps = in_sequence((reduction.init, new, reduction.write_back))
        return in_loops(steps, threads)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        block = realize.block
        over = {
            var
            for axis, value in realize.iterators
            if axis.iter_type == S.IterType.COMM_REDUCE
            for var in variables_in(value)
        }
        loops = [loop for loop in self.loops if loop.loop_var in over]
        threads = {loop.loop_var for loop in loops if loop.thread_binding is not None}
        if block.init is None or not threads:
            return self.rewrite_children(realize)
        stores = [part for part in walk(block.init) if isinstance(part, S.BufferStore)]
        own = {each.buffer: _register(f"in_thread_{each.buffer.name}", each) for each in stores}
        init = [S.BufferStore(own[each.buffer], each.value, (_ZERO,)) for each in stores]
        result = [_register(f"cross_thread_{each.buffer.name}", each) for each in stores]
        write_back = [
            S.BufferStore(each.buffer, E.BufferLoad(register, (_ZERO,)), each.indices)
            for each, register in zip(stores, result, strict=True)
        ]
        values = dict(zip((axis.var for axis in block.iter_vars), realize.iter_values, strict=True))
        holds = (each for each in conjuncts(realize.predicate) if not over & variables_in(each))
        written = S.IfThenElse(conjunction(holds), S.sequence(*write_back))
        in_registers = len(threads) < len(loops) or not is_trivially_true(realize.predicate)
        self.launched |= threads
        self.registers += [*own.values(), *result] if in_registers else result
        self.reductions[loops[0].loop_var] = _Reduction(
            S.sequence(*init) if in_registers else NOTHING, substitute(written, values), loops
        )
        if not in_registers:
            return NOTHING
        body = _Replacement(own).rewrite(block.body)
        return replace(realize, block=replace(block, init=None, body=body))


_ZERO = const(0, "int32")


def _register(name: str, store: S.BufferStore) -> Buffer:
    return decl_buffer((1,), store.buffer.dtype, name, scope="local")


class _Replacement(Mutator):
    """Puts accesses of registers where those of other buffers are."""

    def __init__(self, registers: Mapping[Buffer, Buffer]) -> None:
        self.registers = registers

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        register = self.registers.get(node.buffer)
        return new if register is None else replace(new, buffer=register, indices=(_ZERO,))


class _Launches(Mutator):
    """Puts the loops over threads of a kernel around all of it, one for each axis."""

    def __init__(self) -> None:
        self.launched: dict[str, S.For] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        outermost = not self.launched
        launched = self.launched.setdefault(loop.thread_binding.thread_tag, loop)
        body = self.rewrite(loop.body)
        if launched is not loop:
            body = substitute(body, {loop.loop_var: launched.loop_var})
        if outermost:
            first, *others = self.launched.values()
            self.launched = {}
            loops = [first, *(replace(each, annotations={}) for each in others)]
            return in_loops(body, loops)
        if not loop.annotations:
            return body
        once = E.Var("var", loop.loop_var.dtype)
        return S.For(
            once, loop.min, const(1, once.dtype), S.ForKind.SERIAL, body, None, loop.annotations
        )


class _BlockConversion(BlockConversion):
    """Describes programs, too, that nothing makes code of."""

    def check_view(self, node: E.BufferLoad | S.BufferStore, match: MatchBufferRegion) -> None:
        pass


class _Simplification(Simplification):
    """Keeps loops of one iteration: a bound of unrolling may be at them."""

    def once(self, loop: S.For, low: E.PrimExpr) -> S.Stmt:
        self.enter(loop.loop_var, low, loop.extent)
        return self.finished_loop(loop, self.rewrite(loop.body))
