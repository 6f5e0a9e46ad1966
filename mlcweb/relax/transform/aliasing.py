"""Which values of a dataflow block are in the same memory."""

from __future__ import annotations

from itertools import count
from typing import TypeAlias

from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.reshape_pattern import has_reshape_pattern
from mlcweb.relax.analysis.variables import free_vars
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.relax.transform.legalize_ops import is_whole
from mlcweb.relax.transform.registration import called_tir

Memory: TypeAlias = "frozenset[int] | tuple[Memory, ...]"
"""Where a value may be: numbers of allocations; for a tuple, where each of its fields is."""

OUTSIDE = -1
"""The allocation of all that a block does not make itself."""


def allocations(memory: Memory) -> frozenset[int]:
    """All allocations of a value."""
    if isinstance(memory, frozenset):
        return memory
    return frozenset().union(*map(allocations, memory))


class Aliasing:
    """The memory of the variables that a dataflow block binds."""

    def __init__(self, mod: IRModule, block: E.DataflowBlock) -> None:
        self.mod = mod
        self.memory: dict[E.Var, Memory] = {}
        self._numbers = count()
        for binding in block.bindings:
            self.memory[binding.var] = self._of(binding)

    def of(self, value: object) -> Memory:
        """The memory of a variable, or of a tuple of such."""
        if isinstance(value, E.Tuple):
            return tuple(self.of(field) for field in value.fields)
        if isinstance(value, E.Var):
            return self.memory.get(value, frozenset([OUTSIDE]))
        return frozenset([OUTSIDE]) if isinstance(value, E.Constant) else frozenset()

    def _of(self, binding: E.Binding) -> Memory:
        value = binding.value
        if isinstance(value, E.TupleGetItem):
            whole = self.of(value.tuple_value)
            return whole[value.index] if isinstance(whole, tuple) else whole
        if isinstance(value, E.Call):
            return self._of_call(value, binding.var.struct_info)
        if isinstance(value, E.Function):
            captured = [self.of(var) for var in free_vars(value)]
            return allocations(tuple(captured)) | {OUTSIDE}
        return self.of(value)

    def _of_call(self, call: E.Call, info: StructInfo) -> Memory:
        if isinstance(call.op, Op):
            if call.op.name in ("relax.call_tir", "relax.call_dps_packed"):
                func = called_tir(self.mod, call)
                shares = func is not None and has_reshape_pattern(func)
            else:
                shares = _may_share(call, info)
            if not shares:
                return self._new(info)
        memory = allocations(tuple(map(self.of, (call.op, *call.args))))
        inside = isinstance(call.op, Op) and call.op.get_attr("FLegalize") is not None
        return memory if inside and not _calls_code(call) else memory | {OUTSIDE}

    def _new(self, info: StructInfo) -> Memory:
        """New memory for each tensor of a value."""
        if isinstance(info, TupleStructInfo):
            return tuple(map(self._new, info.fields))
        return frozenset([next(self._numbers)])


def _calls_code(call: E.Call) -> bool:
    """Whether a call is of code that we do not see."""
    return any(isinstance(arg, E.ExternFunc) for arg in call.args)


def _may_share(call: E.Call, info: StructInfo) -> bool:
    """Whether what an operator gives may be in the memory of an argument: where it computes by no
    function of TensorIR, or by one that RewriteDataflowReshape takes for a reshape."""
    legalize = call.op.get_attr("FLegalize") if isinstance(call.op, Op) else None
    arguments = [arg.struct_info for arg in call.args if isinstance(arg, E.Expr)]
    if legalize is None or not all(map(is_whole, (info, *arguments))):
        return True
    builder = BlockBuilder()
    with builder.testing_scope([]):
        lowered = legalize(builder, call)
    func = called_tir(builder.get(), lowered)
    return func is None or has_reshape_pattern(func)
