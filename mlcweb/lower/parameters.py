"""Functions whose parameters are those of a kernel: buffers and numbers.

A kernel has no result: a function that returns a number stores it in a buffer, its last parameter.
A parameter that is a pointer, on which the function declares a buffer, is a parameter that has one.
Buffers have numbers as elements, and no vectors.
"""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError, nesting_limit
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.scalar_elements import scalar_elements
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.contents import calls_in
from mlcweb.tir.function import PrimFunc

RESULT = "mlcweb.result"
"""The attribute of a function whose last parameter takes its result: the type of that."""

_RETURN = OPS["ret"]


@nesting_limit("built")
def with_kernel_parameters(func: PrimFunc) -> PrimFunc:
    """The function with the parameters of a kernel; the same function where it has them.

    Raises:
        DiagnosticError: it returns what is no number, numbers of several types, or on some path
            nothing.
        TVMError: several vectors of a buffer are accessed at once.
    """
    return _with_buffers(_with_result(scalar_elements(func)))


def _with_result(func: PrimFunc) -> PrimFunc:
    returns = [call for call in calls_in(func.body) if _returns_value(call)]
    if not returns:
        return func
    dtype = returns[0].args[0].dtype
    if dtype in ("handle", "void"):
        raise DiagnosticError(f"A function returns a number, and no {dtype}", returns[0].span)
    for call in returns:
        other = call.args[0].dtype
        if other != dtype:
            raise DiagnosticError(
                f"A function returns numbers of one type, and not {dtype} and {other}", call.span
            )
    if not _always_returns(func.body):
        raise DiagnosticError("A function that returns a number returns it on each path", func.span)
    result = decl_buffer((1,), dtype, "result")
    param = E.Var("result_handle", "handle")
    return replace(
        func.with_attr(RESULT, dtype),
        params=(*func.params, param),
        buffer_map={**func.buffer_map, param: result},
        body=_Storing(result).rewrite(func.body),
    )


def _returns_value(node: E.PrimExpr) -> bool:
    return isinstance(node, E.Call) and node.op == _RETURN and bool(node.args)


def _always_returns(statement: S.Stmt) -> bool:
    if isinstance(statement, S.Evaluate):
        return _returns_value(statement.value)
    if isinstance(statement, S.SeqStmt):
        return any(map(_always_returns, statement.seq))
    if isinstance(statement, S.IfThenElse):
        cases = statement.then_case, statement.else_case
        return all(case is not None and _always_returns(case) for case in cases)
    if isinstance(statement, S.BlockRealize):
        return _always_returns(statement.block.body)
    if isinstance(statement, (S.LetStmt, S.AllocBuffer, S.DeclBuffer, S.AssertStmt, S.AttrStmt)):
        return _always_returns(statement.body)
    return False


def _with_buffers(func: PrimFunc) -> PrimFunc:
    own = (param for param in func.params if param not in func.buffer_map)
    pointers = {param for param in own if param.dtype == "handle"}
    if not pointers:
        return func
    declared = {data: b for data, b in func.buffers_by_data().items() if data in pointers}
    if not declared:
        return func
    handles = {data: E.Var(f"{data.name}_handle", "handle") for data in declared}
    return replace(
        func,
        params=tuple(handles.get(param, param) for param in func.params),
        buffer_map={**func.buffer_map, **{handles[data]: b for data, b in declared.items()}},
        body=_Declared({*declared.values()}).rewrite(func.body),
    )


class _Storing(Mutator):
    def __init__(self, result: Buffer) -> None:
        self.result = result

    @on(S.Evaluate)
    def exit(self, evaluate: S.Evaluate) -> S.Stmt:
        call = evaluate.value
        if not isinstance(call, E.Call) or not _returns_value(call):
            return evaluate
        store = S.BufferStore(self.result, call.args[0], (const(0),), span=evaluate.span)
        return S.sequence(store, S.Evaluate(replace(call, args=())))


class _Declared(Mutator):
    """Takes out the declarations of buffers that are parameters."""

    def __init__(self, buffers: set[Buffer]) -> None:
        self.buffers = buffers

    @on(S.DeclBuffer)
    def declaration(self, declaration: S.DeclBuffer) -> S.Stmt:
        if declaration.buffer in self.buffers:
            return self.rewrite(declaration.body)
        return self.rewrite_children(declaration)
