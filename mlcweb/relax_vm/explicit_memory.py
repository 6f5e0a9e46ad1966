"""Programs that allocate themselves, as TVM's lowering writes them: `R.builtin.alloc_tensor`,
`R.memory.…`, `R.vm.…`, and calls of functions of TensorIR that write into what was allocated.

A tensor in a storage gets memory of its own: two that share a storage are not in use at the same
time. Where a storage or tensor ends needs no instruction, since memory goes with its last use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op, register_op_attr
from mlcweb.relax import expr as E
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax_vm import instructions as vm

if TYPE_CHECKING:
    from mlcweb.relax_vm.compiler import FunctionCompiler

COMPILE = "FVMCompile"
"""The attribute of an operator that holds what compiles a call of it, which gives its value."""


@register_op_attr("relax.memory.alloc_storage", COMPILE)
@register_op_attr("relax.memory.kill_storage", COMPILE)
@register_op_attr("relax.memory.kill_tensor", COMPILE)
@register_op_attr("relax.vm.alloc_storage", COMPILE)
@register_op_attr("relax.vm.kill_object", COMPILE)
def _nothing(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    return compiler.constant(())


@register_op_attr("relax.builtin.alloc_tensor", COMPILE)
@register_op_attr("relax.memory.alloc_tensor", COMPILE)
@register_op_attr("relax.vm.alloc_tensor", COMPILE)
def _alloc_tensor(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    info = call.struct_info
    if not isinstance(info, TensorStructInfo) or info.values is None:
        raise compiler.error("The shape of what is allocated is R.shape([...])")
    return compiler.emit_to(vm.Alloc, info.values, info.dtype)


@register_op_attr("relax.vm.call_tir_dyn", COMPILE)
def _call_tir_dyn(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    callee, args = call.args
    kernel = compiler.resolver.kernel(callee.name_hint) if isinstance(callee, GlobalVar) else None
    if kernel is None or not isinstance(args, E.Tuple) or not args.fields:
        raise compiler.error(
            "R.vm.call_tir_dyn takes a function of TensorIR of the module, and a tuple of tensors "
            "and a shape"
        )
    *tensors, extents = args.fields
    operands = (*compiler.operands(tensors), *compiler.numbers(extents))
    compiler.emit(vm.CallKernel, kernel, operands)
    return compiler.constant(())


@register_op_attr("relax.memory.ensure_zero_offset", COMPILE)
def _same(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    return compiler.operand(call.args[0])


@register_op_attr("relax.memory.view", COMPILE)
def _view(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    """What the call leaves out is as the tensor has it."""
    data, shape, dtype, offset = call.args
    operands = (
        compiler.operand(data),
        compiler.operand(E.Call(_SHAPE_OF, [data]) if _is_left_out(shape) else shape),
        compiler.constant(None) if _is_left_out(dtype) else compiler.operand(dtype),
        compiler.constant(0) if _is_left_out(offset) else compiler.operand(offset),
    )
    return compiler.emit_to(vm.CallPacked, "runtime.TVMTensorCreateView", operands)


def _is_left_out(argument: E.RelaxExpr) -> bool:
    return isinstance(argument, E.Tuple) and not argument.fields


_SHAPE_OF = Op.get("relax.shape_of")
