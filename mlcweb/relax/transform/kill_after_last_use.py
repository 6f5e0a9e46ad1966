"""KillAfterLastUse: says where values end."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.op.memory import kill_storage, kill_tensor
from mlcweb.relax.op.vm import kill_object
from mlcweb.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.canonicalize import canonicalize
from mlcweb.relax.transform.registration import map_unfused, pass_of


def KillAfterLastUse() -> Pass:
    """After the last use of each value that is bound in a function, say that it ends:
    `R.memory.kill_tensor`, `kill_storage`, `R.vm.kill_object`. Names that only rename others go
    away first. Dataflow blocks stay as they are; run ToNonDataflow before."""

    return pass_of("KillAfterLastUse", lambda mod: map_unfused(canonicalize(mod), _with_ends))


def _with_ends(func: E.Function) -> E.Function:
    results = set(used_vars(func.body.body))
    values: dict[E.Var, E.Value] = {}
    last: dict[E.Var, E.Binding] = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            values[binding.var] = binding.value
            for var in used_vars(binding.value):
                last[var] = binding
    ends: dict[E.Binding, list[E.Call]] = {}
    for var, value in values.items():  # in the order of their definitions
        end = None if var in results or var not in last else _end(var, value)
        if end is not None:
            ends.setdefault(last[var], []).append(end)
    blocks: list[E.BindingBlock] = []
    for block in func.body.blocks:
        new: list[E.Binding] = []
        for binding in block.bindings:
            new.append(binding)
            if not isinstance(block, E.DataflowBlock):
                new += [
                    E.VarBinding(E.Var("_", TupleStructInfo(())), end)
                    for end in ends.get(binding, ())
                ]
        blocks.append(
            replace(block, bindings=tuple(new)) if len(new) > len(block.bindings) else block
        )
    return replace(func, body=replace(func.body, blocks=tuple(blocks)))


def _end(var: E.Var, value: E.Value) -> E.Call | None:
    """What ends a value; shapes and numbers need no end."""
    if E.called_operator(value) == "relax.memory.alloc_storage":
        return kill_storage(var)
    if isinstance(var.struct_info, TensorStructInfo):
        return kill_tensor(var)
    if isinstance(var.struct_info, (ObjectStructInfo, TupleStructInfo)):
        return kill_object(var)
    return None
