"""Programs that allocate themselves, as TVM's lowering writes them: `R.builtin.alloc_tensor`,
`R.memory.…`, `R.vm.…`, and calls of functions of TensorIR that write into what was allocated.

A tensor in a storage gets memory of its own: two that share a storage are not in use at the same
time. Where a storage or tensor ends needs no instruction, since memory goes with its last use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from mlcweb.relax import expr as E
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax_vm import instructions as vm

if TYPE_CHECKING:
    from mlcweb.relax_vm.compiler import FunctionCompiler

MemoryCall: TypeAlias = "Callable[[FunctionCompiler, E.Call], vm.Register]"
"""What compiles a call, and says which register holds its value."""


def _nothing(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    return compiler.constant(())


def _alloc_tensor(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    info = call.struct_info
    if not isinstance(info, TensorStructInfo) or info.values is None:
        raise compiler.error("The shape of what is allocated is R.shape([...])")
    return compiler.emit_to(vm.Alloc, info.values, info.dtype)


def _same(compiler: FunctionCompiler, call: E.Call) -> vm.Register:
    return compiler.operand(call.args[0])


MEMORY_CALLS: dict[str, MemoryCall] = {
    "relax.builtin.alloc_tensor": _alloc_tensor,
    "relax.memory.alloc_storage": _nothing,
    "relax.memory.alloc_tensor": _alloc_tensor,
    "relax.memory.kill_storage": _nothing,
    "relax.memory.kill_tensor": _nothing,
    "relax.memory.ensure_zero_offset": _same,
    "relax.vm.alloc_storage": _nothing,
    "relax.vm.alloc_tensor": _alloc_tensor,
    "relax.vm.kill_object": _nothing,
}
"""What the calls of these operators become, by their names."""
