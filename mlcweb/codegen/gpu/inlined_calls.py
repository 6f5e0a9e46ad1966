"""Calls of functions of the module in kernels, as the numbers that these return: each function of a
GPU's module that remains is one that the host calls."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.arith import Analyzer
from mlcweb.codegen.external import call_arguments, called_name
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.parameters import RESULT
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


def inline_calls(functions: Mapping[str, PrimFunc]) -> dict[str, PrimFunc]:
    """The functions with what they call of each other in the place of the calls, without those that
    return a number and are called.

    Raises:
        TVMError: what is called is not one expression, or calls itself.
    """
    returning = {name: func for name, func in functions.items() if RESULT in func.attrs}
    if not returning:
        return {**functions}
    inliner = _Inliner(returning)
    new = {name: func.with_body(inliner.rewrite(func.body)) for name, func in functions.items()}
    return {name: func for name, func in new.items() if name not in inliner.called}


class _Inliner(Mutator):
    def __init__(self, returning: Mapping[str, PrimFunc]) -> None:
        self.returning = returning
        self.called: set[str] = set()
        self.around: list[str] = []

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        """What the host calls may be a constant, such as a number of threads."""
        value = self.rewrite(let.value)
        if value is not let.value and not (variables_in(value) or reads_memory(value)):
            value = Analyzer().simplify(value)
            return self.rewrite(substitute(let.body, {let.var: value}))
        return replace(let, value=value, body=self.rewrite(let.body))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(call)
        name = called_name(new)
        callee = self.returning.get(name or "")
        if name is None or callee is None:
            return new
        if name in self.around:
            raise TVMError(f'"{name}" calls itself, which a kernel cannot', call.span)
        arguments = call_arguments(new)
        if len(arguments) != len(callee.params) - 1:
            raise TVMError(
                f'"{name}" takes {len(callee.params) - 1} arguments, not {len(arguments)}',
                call.span,
            )
        self.called.add(name)
        self.around.append(name)
        value = self.rewrite(_returned(name, callee, call))
        self.around.pop()
        pairs = zip(callee.params, arguments, strict=False)
        return substitute(value, {param: cast(param.dtype, argument) for param, argument in pairs})


def _returned(name: str, callee: PrimFunc, call: E.Call) -> E.PrimExpr:
    """The expression that a function is, of its parameters."""
    values: dict[E.Var, E.PrimExpr] = {}
    body, result = callee.body, callee.buffer_map[callee.params[-1]]
    while isinstance(body, S.LetStmt):
        values[body.var] = substitute(body.value, values)
        body = body.body
    if isinstance(body, S.SeqStmt) and len(body.seq) == 2 and isinstance(body.seq[1], S.Evaluate):
        body = body.seq[0]  # what follows is the return of what is stored
    if len(callee.buffer_map) == 1 and isinstance(body, S.BufferStore) and body.buffer is result:
        return substitute(body.value, values)
    raise TVMError(
        f'A kernel calls "{name}", which is more than one expression; a function that kernels call '
        "takes numbers and returns one: T.ret(a + b)",
        call.span,
    )
