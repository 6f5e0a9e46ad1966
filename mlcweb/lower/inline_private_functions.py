"""The pass `tvm.tirx.transform.InlinePrivateFunctions`: functions that only their module knows are
put where they are called."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, find_nodes, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt_functor import renew_defs
from mlcweb.tir.substitute import SubstitutionEverywhere

_LEAVING = ("ret", "thread_return")


def inline_private_functions(mod: IRModule) -> IRModule:
    """Inline calls that are statements of functions that are private, take no buffers, have no
    blocks, return nothing, and do not call themselves; calls of a function for another target stay.
    Functions that nobody calls any more go."""
    inlining = _Inlining(mod)
    functions: dict[Any, Any] = {
        var: inlining.function(var) if isinstance(func, PrimFunc) else func
        for var, func in mod.functions.items()
    }
    for var in inlining.inlined:
        if not any(var in _called_by(func) for func in functions.values()):
            del functions[var]
    return mod.with_functions(functions)


def _called_by(func: Any) -> set[GlobalVar]:
    body = func.body
    return {call.op for call in find_nodes(body, E.Call) if isinstance(call.op, GlobalVar)}


class _Inlining(Mutator):
    def __init__(self, mod: IRModule) -> None:
        self.functions = mod.functions
        self.finished: dict[GlobalVar, PrimFunc] = {}
        self.inlined: dict[GlobalVar, None] = {}
        self.target: Any = None

    def function(self, var: GlobalVar) -> PrimFunc:
        """A function with what it calls inlined."""
        if var not in self.finished:
            func: Any = self.functions[var]
            self.finished[var] = func
            around, self.target = self.target, func.attrs.get("target")
            self.finished[var] = func.with_body(self.rewrite(func.body))
            self.target = around
        return self.finished[var]

    def may_inline(self, var: GlobalVar) -> bool:
        func: Any = self.functions.get(var)
        if not isinstance(func, PrimFunc) or "global_symbol" in func.attrs or func.buffer_map:
            return False
        if func.attrs.get("target") not in (None, self.target) or self.is_recursive(var):
            return False
        return not any(
            isinstance(node, S.Block) or operator_name(node) in _LEAVING
            for node in find_nodes(func.body, S.Block, E.Call)
        )

    def is_recursive(self, var: GlobalVar) -> bool:
        """Whether a function calls itself, be it through others."""
        reached: set[GlobalVar] = set()
        pending = [var]
        while pending:
            func: Any = self.functions.get(pending.pop())
            for called in _called_by(func) - reached if isinstance(func, PrimFunc) else ():
                reached.add(called)
                pending.append(called)
        return var in reached

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        call = statement.value
        if not (isinstance(call, E.Call) and isinstance(call.op, GlobalVar)):
            return statement
        if not self.may_inline(call.op):
            return statement
        self.inlined[call.op] = None
        func = renew_defs(self.function(call.op))
        arguments = dict(zip(func.params, call.args, strict=True))
        return _Arguments(arguments).rewrite(func.body)


class _Arguments(SubstitutionEverywhere):
    """Puts arguments in the place of parameters. What views memory from the address of an element
    on views its buffer from there."""

    def changed(self, buffer: Buffer) -> Buffer:
        shape, strides = (tuple(map(self.rewrite, part)) for part in (buffer.shape, buffer.strides))
        data, offset = _place(self.rewrite(buffer.data), buffer)
        offset = add(self.rewrite(buffer.elem_offset), offset)
        return replace(buffer, data=data, shape=shape, strides=strides, elem_offset=offset)


def _place(address: E.PrimExpr, view: Buffer) -> tuple[E.Var, E.PrimExpr]:
    """The memory that an address is in, and how many elements of a view are before it.

    Raises:
        TVMError: it is no address of an element of the view's type.
    """
    if isinstance(address, E.Var):
        return address, const(0, view.elem_offset.dtype)
    element = None
    if isinstance(address, E.Call) and operator_name(address) == "address_of":
        element = address.args[0]
    if isinstance(element, E.BufferLoad) and element.buffer.dtype == view.dtype:
        [offset] = element.buffer.offset_of(element.indices)
        return element.buffer.data, offset
    raise TVMError(
        f'"{view.name}" views {view.dtype} from {address} on; pass the address of such an element',
        address.span,
    )
