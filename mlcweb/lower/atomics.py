"""Saying as an update of an element, under a mark, what an atomic addition does.

Threads that run one after the other update it in turn; a language with atomics writes its own for
the mark.
"""

from __future__ import annotations

from typing import Any

from mlcweb.analysis.threads import ATOMIC
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name

_NAMES = ("atomic_add", "cuda.atomic_add")


def lower_atomics(func: PrimFunc) -> PrimFunc:
    """Updates for the additions whose results are not used, of elements that are told by
    `T.address_of(A[i])` or by a pointer to a buffer of one dimension. Others stay as they are."""
    if not any(_addition(part) for part in S.statements_in(func.body)):
        return func
    return func.with_body(_Additions(func.buffers_by_data()).rewrite(func.body))


def _addition(statement: S.Stmt) -> bool:
    call: Any = statement.value if isinstance(statement, S.Evaluate) else None
    return operator_name(call) in _NAMES and len(call.args) == 2


class _Additions(Mutator):
    def __init__(self, buffers: dict[E.Var, Buffer]) -> None:
        self.buffers = buffers

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        if not _addition(statement):
            return statement
        call: Any = statement.value
        element = self.element(call.args[0])
        if element is None:
            return statement
        update = S.store_to(element, add(element, call.args[1]), call.span)
        return S.AttrStmt(E.StringImm("add"), ATOMIC, E.StringImm("add"), update, span=call.span)

    def element(self, pointer: Any) -> E.BufferLoad | None:
        """The element that a pointer points to; None where that is not told."""
        name = operator_name(pointer)
        if name == "address_of":
            return pointer.args[0] if isinstance(pointer.args[0], E.BufferLoad) else None
        offset: Any = const(0)
        if name == "tvm_access_ptr":
            pointer, offset = pointer.args[1:3]
        buffer = self.buffers.get(pointer) if isinstance(pointer, E.Var) else None
        plain = buffer is not None and len(buffer.shape) == 1 and not buffer.strides
        return E.BufferLoad(buffer, (offset,)) if buffer is not None and plain else None
