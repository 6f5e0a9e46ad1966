"""Scheduled functions of TensorIR that write over an argument which dies there."""

from __future__ import annotations

from mlcweb.arith.iter_map import BIJECTIVE, is_iter_map
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.inplace import call_tir_inplace
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.dead_code import called, called_by_graphs
from mlcweb.relax.transform.inplace_calls import Target, over_parameter, targets
from mlcweb.relax.transform.registration import called_tir, rewritten_by
from mlcweb.schedule.analysis.scopes import loop_ranges
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, SeqStmt
from mlcweb.tir.substitute import substitute


def write_over_arguments(mod: IRModule) -> IRModule:
    """The module with calls of private functions in dataflow blocks that write over an argument, as
    that of an addition to a product: one that has the shape and type of the result, that the block
    has made, that nothing reads later, and of which the function reads no element but the one that
    it writes next. What is written then is in the caches already."""
    new = rewritten_by(mod, _Overwriting(mod))
    if new is mod:
        return mod
    used = {var for func in new.functions.values() for var in called(func)}
    dropped = called_by_graphs(mod) - used
    return new.with_functions({v: func for v, func in new.functions.items() if v not in dropped})


@mutator
class _Overwriting(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.targets: dict[E.Var, Target] = {}
        self.overwritable: dict[tuple[GlobalVar, int], PrimFunc | None] = {}

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> E.BindingBlock:
        self.targets |= targets(self.mod, block, self.candidates)
        return super().visit_dataflow_block_(block)

    def candidates(self, value: E.RelaxExpr) -> list[E.Expr]:
        """The arguments of a call that its function may write over."""
        func = called_tir(self.mod, value)
        if func is None or "global_symbol" in func.attrs or not isinstance(value, E.Call):
            return []
        callee, arguments, *_ = value.args
        if not isinstance(callee, GlobalVar) or not isinstance(arguments, E.Tuple):
            return []
        if not isinstance(value.sinfo_args[0], TensorStructInfo):
            return []
        return [
            field
            for place, field in enumerate(arguments.fields)
            if isinstance(field, E.Var) and self.over(callee, func, place) is not None
        ]

    def over(self, callee: GlobalVar, func: PrimFunc, place: int) -> PrimFunc | None:
        """The function that writes over a parameter; None where it would compute
        something else."""
        key = callee, place
        if key not in self.overwritable:
            may = may_write_over(func, place)
            self.overwritable[key] = over_parameter(func, place) if may else None
        return self.overwritable[key]

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        target, call = self.targets.get(binding.var), binding.value
        if target is None or not target.alone or not isinstance(call, E.Call):
            super().visit_var_binding_(binding)
            return
        callee, arguments, *sizes = call.args
        assert isinstance(callee, GlobalVar) and isinstance(arguments, E.Tuple)
        place = arguments.fields.index(target.var)
        func = self.overwritable[callee, place]
        assert func is not None
        own = self.builder_.add_func(func, f"{callee.name_hint}_inplace")
        extents = [size for size in sizes if isinstance(size, E.Expr)]
        fields = self.visit_expr(arguments)
        new = call_tir_inplace(own, fields, place, call.sinfo_args[0], *extents)
        self.emit_rebound(binding.var, binding.var, self.builder_.normalize(new))


def may_write_over(func: PrimFunc, place: int) -> bool:
    """Whether a function computes the same where its last parameter, the result, is in the memory
    of the one in a place: one block writes the result, each element once, and that alone reads the
    parameter, each element just before it writes the same of the result."""
    argument, result = (func.buffer_map.get(func.params[n]) for n in (place, -1))
    if argument is None or result is None or not _lies_alike(argument, result):
        return False
    stores = [node for node in find_nodes(func.body, BufferStore) if node.buffer is result]
    blocks = [node for node in find_nodes(func.body, Block) if node.body in stores]
    if len(stores) != 1 or len(blocks) != 1 or _is_seen_otherwise(func, argument, result):
        return False
    [store], [block] = stores, blocks
    reads = [node for node in find_nodes(func.body, BufferLoad) if node.buffer is argument]
    inside = [node for node in find_nodes(store.value, BufferLoad) if node.buffer is argument]
    return (
        0 < len(reads) == len(inside)
        and all(structural_equal(read.indices, store.indices) for read in inside)
        and block.init is None
        and _writes_once(func, block, store)
    )


def _lies_alike(one: Buffer, other: Buffer) -> bool:
    """Whether equal indices are the same place in two buffers from where these begin."""
    return (
        one.dtype == other.dtype
        and structural_equal((one.shape, one.strides), (other.shape, other.strides))
        and all(is_const_int(buffer.elem_offset, 0) for buffer in (one, other))
    )


def _is_seen_otherwise(func: PrimFunc, argument: Buffer, result: Buffer) -> bool:
    """Whether a function reads its result, or reaches one of the buffers by another name."""
    pointers = {argument.data, result.data}
    for node in walk(func.body):
        if isinstance(node, BufferLoad) and node.buffer is result:
            return True
        if isinstance(node, BufferStore) and node.buffer is argument:
            return True
        if isinstance(node, Var) and node in pointers:
            return True
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data in pointers:
            if node.buffer not in (argument, result):
                return True
        if isinstance(node, Block) and node.match_buffers:
            return True
        if operator_name(node) == "address_of":
            return True
    return False


def _writes_once(func: PrimFunc, block: Block, store: BufferStore) -> bool:
    """Whether the loops around a block, with nothing around them but the root block, write each
    element at most once."""
    place = ScheduleState(IRModule({"main": func})).block(block.identity)
    around = [parent for parent in place.parents if not isinstance(parent, (SeqStmt, BlockRealize))]
    if around != [parent for parent in around[:1] if isinstance(parent, Block)] + [*place.loops]:
        return False
    realize = place.realize
    indices = [substitute(index, realize.bindings) for index in store.indices]
    return is_iter_map(indices, loop_ranges(place.loops), realize.predicate, BIJECTIVE)
