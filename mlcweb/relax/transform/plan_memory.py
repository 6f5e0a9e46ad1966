"""StaticPlanBlockMemory: tensors that are not in use at the same time share memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.expr import constant_int
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.memory import alloc_storage, alloc_tensor
from mlcweb.relax.transform.registration import unfused_pass
from mlcweb.tir.dtype import size_in_bytes
from mlcweb.tir.function import PrimFunc

_ALLOC = "relax.builtin.alloc_tensor"
_RANGE = 16
"""A storage serves tensors of at most so many times its size, and the other way round."""


def StaticPlanBlockMemory() -> Pass:
    """Place what `R.builtin.alloc_tensor` allocates in storages (`R.memory.alloc_storage`), one
    after the other in the same where its size and type of elements allow.

    What a function gives, and tensors of symbolic shapes, stay as they are. Run it after
    CallTIRRewrite. What a registered function gives back may be what it was given, so that stays in
    memory as long.
    """

    def change(func: E.Function, mod: IRModule) -> E.Function:
        plan = _Plan(mod, func)
        return _Placing(mod, plan.storages).visit_expr(func) if plan.storages else func

    return unfused_pass("StaticPlanBlockMemory", change)


@dataclass(eq=False)
class _Storage:
    size: int
    dtype: str
    scope: str


@dataclass(eq=False)
class _Tensor:
    """An allocated tensor, and where it is used last."""

    var: E.Var
    size: int
    dtype: str
    scope: str
    last_use: int = field(default=-1)


Held: TypeAlias = "frozenset[_Tensor] | list[Held]"
"""The tensors that a value may be, by field where it is a tuple in sight."""


def _all(held: Held) -> frozenset[_Tensor]:
    if isinstance(held, list):
        return frozenset().union(*map(_all, held))
    return held


class _Plan:
    """Which storage each tensor of a function is in, by the variable of its allocation."""

    def __init__(self, mod: IRModule, func: E.Function) -> None:
        self.mod = mod
        self.held: dict[E.Var, Held] = {}
        self.storages: dict[E.Var, _Storage] = {}
        bindings = [binding for block in func.body.blocks for binding in block.bindings]
        for place, binding in enumerate(bindings):
            value = binding.value
            for var in used_vars(value):
                for tensor in _all(self.held.get(var, frozenset())):
                    tensor.last_use = place
            allocated = _allocated(binding.var, value)
            self.held[binding.var] = frozenset((allocated,)) if allocated else self.of_value(value)
        results = _all(self.of_value(func.body.body))
        self.place(bindings, results)

    def of_value(self, value: E.RelaxExpr) -> Held:
        if isinstance(value, E.Tuple):
            return [self.of_value(part) for part in value.fields]
        if isinstance(value, E.Var):
            return self.held.get(value, frozenset())
        if isinstance(value, E.TupleGetItem):
            whole = self.of_value(value.tuple_value)
            return whole[value.index] if isinstance(whole, list) else whole
        if isinstance(value, E.Call) and isinstance(value.op, GlobalVar):
            if isinstance(self.mod.functions.get(value.op), PrimFunc):
                return frozenset()
        inside = used_vars(value) if isinstance(value, E.Expr) else ()
        return frozenset().union(*(_all(self.of_value(var)) for var in inside))

    def place(self, bindings: Sequence[E.Binding], results: frozenset[_Tensor]) -> None:
        """Give storages in the order of the text; they are free after the last use."""
        free: list[_Storage] = []
        ends: dict[int, list[_Tensor]] = {}
        for place, binding in enumerate(bindings):
            held = self.held[binding.var]
            own = next(iter(held)) if isinstance(held, frozenset) and len(held) == 1 else None
            if own is not None and own.var is binding.var and own not in results:
                storage = _fitting(free, own) or _Storage(own.size, own.dtype, own.scope)
                storage.size = max(storage.size, own.size)
                self.storages[own.var] = storage
                if own.last_use >= 0:
                    ends.setdefault(own.last_use, []).append(own)
            free += [self.storages[tensor.var] for tensor in ends.get(place, ())]


def _fitting(free: list[_Storage], tensor: _Tensor) -> _Storage | None:
    """The smallest free storage that is large enough, else the largest; it is taken."""
    near = [
        one
        for one in free
        if (one.dtype, one.scope) == (tensor.dtype, tensor.scope)
        and one.size <= tensor.size * _RANGE
        and tensor.size <= one.size * _RANGE
    ]
    enough = [one for one in near if one.size >= tensor.size]
    if not near:
        return None
    storage = min(enough, key=lambda one: one.size) if enough else max(near, key=lambda s: s.size)
    free.remove(storage)
    return storage


def _allocated(var: E.Var, value: E.RelaxExpr) -> _Tensor | None:
    """The tensor of known size that a value allocates."""
    if not isinstance(value, E.Call) or E.called_operator(value) != _ALLOC:
        return None
    shape, dtype, _, scope = value.args
    if not isinstance(shape, E.ShapeExpr) or not isinstance(dtype, E.DataTypeImm):
        return None
    size = size_in_bytes(dtype.value)
    for extent in shape.values:
        number = constant_int(extent)
        if number is None:
            return None
        size *= number
    name = scope.value if isinstance(scope, E.StringImm) else "global"
    return _Tensor(var, size, dtype.value, name)


@mutator
class _Placing(PyExprMutator):
    """Writes the allocations of a plan."""

    def __init__(self, mod: IRModule, storages: dict[E.Var, _Storage]) -> None:
        super().__init__(mod)
        self.storages = storages
        self.vars: dict[_Storage, E.Var] = {}

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        storage = self.storages.get(binding.var)
        if storage is None or not isinstance(binding.value, E.Call):
            super().visit_var_binding_(binding)
            return
        shape, dtype, device, scope = binding.value.args
        assert isinstance(shape, E.ShapeExpr)
        if storage not in self.vars:
            space = E.ShapeExpr([storage.size])
            allocation = alloc_storage(space, device, scope, dtype)
            self.vars[storage] = self.builder_.emit(allocation, "storage")
        tensor = alloc_tensor(self.vars[storage], E.PrimValue(0), shape, dtype, device)
        self.emit_rebound(binding.var, binding.var, self.builder_.normalize(tensor))
