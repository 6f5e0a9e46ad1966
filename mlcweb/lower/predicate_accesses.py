"""Accesses of vectors under a condition of each lane, `base + lane < limit`, as masked accesses:
`T.masked_load` and `T.masked_store` under `T.get_active_lane_mask`."""

from __future__ import annotations

from mlcweb.arith.equality import same_expression
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int


class _NotAlikeError(Exception):
    """An access is of other lanes than those that the condition is about."""


def predicated(condition: E.PrimExpr, body: S.Stmt) -> S.Stmt | None:
    """Statements on vectors as they are where a condition holds for a lane; None where that is no
    matter of their accesses alone."""
    if not (isinstance(condition, E.LT) and isinstance(condition.b, E.Broadcast)):
        return None
    lanes = condition.a
    if not isinstance(lanes, E.Ramp) or not is_const_int(lanes.stride, 1):
        return None
    mask_type = dtypes.like("uint1", lanes.dtype)
    mask = E.Call(mask_type, Op.get("tir.get_active_lane_mask"), (lanes.base, condition.b.value))
    try:
        return _Masked(lanes, mask).rewrite(body)
    except _NotAlikeError:
        return None


class _Masked(Mutator):
    def __init__(self, lanes: E.Ramp, mask: E.PrimExpr) -> None:
        self.lanes = lanes
        self.mask = mask

    def check(self, access: E.BufferLoad | S.BufferStore) -> None:
        if len(access.indices) != 1 or not same_expression(access.indices[0], self.lanes):
            raise _NotAlikeError

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        self.check(load)
        arguments = load.buffer.data, load.indices[0], self.mask
        return E.Call(load.dtype, Op.get("tir.masked_load"), arguments, span=load.span)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        self.check(store)
        value = self.rewrite(store.value)
        arguments = store.buffer.data, value, store.indices[0], self.mask
        call = E.Call("void", Op.get("tir.masked_store"), arguments, span=store.span)
        return S.Evaluate(call, span=store.span)

    @on(S.Evaluate, S.IfThenElse, S.For, S.While)
    def other(self, statement: S.Stmt) -> S.Stmt:
        raise _NotAlikeError
