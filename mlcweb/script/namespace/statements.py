"""The remaining statements of TVMScript: `T.evaluate`, `T.LetStmt`, `T.attr`, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import replace
from mlcweb.script import constructs
from mlcweb.script.namespace.loops import loop_range
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer


def evaluate(value: Any) -> S.Stmt:
    """A statement that computes a value for its effect."""
    return S.Evaluate(arithmetic.convert(value))


def let_stmt(
    value: Any, type_annotation: Any = None, *, var: E.Var | None = None
) -> constructs.LetFrame:
    """A name for a value: `with T.LetStmt(value) as x:`."""
    return constructs.LetFrame(arithmetic.convert(value), var)


def let(variable: E.Var, value: Any, body: Any = None) -> Any:
    """`T.let(x, value)` names a value for the statements below; `T.let(x, value, body)` for an
    expression."""
    if body is None:
        return constructs.LetFrame(arithmetic.convert(value), variable)
    return E.Let(variable, arithmetic.convert(value), arithmetic.convert(body))


def let_expression(expr: Any, where: Mapping[E.Var, Any]) -> E.Let:
    """`T.Let(expr, where={x: value})`."""
    ((variable, value),) = where.items()
    return E.Let(variable, arithmetic.convert(value), arithmetic.convert(expr))


def bind(value: Any, type_annotation: Any = None, var: E.Var | None = None) -> Any:
    """`x = T.bind(value)` names a value; `T.bind(vi, value)`, as before TVM 0.9, says what an axis
    of the block is."""
    if type_annotation is not None and isinstance(value, E.Var):
        return constructs.AxisBinding(value, arithmetic.convert(type_annotation))
    return let_stmt(value, type_annotation, var=var)


def attr(
    node_or_dict: Any, attr_key: str | None = None, value: Any = None
) -> constructs.WrapperFrame | constructs.ThreadFrame:
    """An annotation of the statements below: `T.attr(A, "key", 1)`, or of nothing in particular
    `T.attr({"key": 1})`, also several, the first outermost."""
    if isinstance(node_or_dict, Mapping) and attr_key is None and node_or_dict:
        *outer, (attr_key, value) = node_or_dict.items()
        if outer:
            around, inside = attr(dict(outer)), attr(0, attr_key, value)
            assert isinstance(around, constructs.WrapperFrame)
            assert isinstance(inside, constructs.WrapperFrame)
            return constructs.WrapperFrame(
                lambda body, span: around.wrap(inside.wrap(body, span), span)
            )
        node_or_dict = 0
    if isinstance(node_or_dict, int):
        node_or_dict = arithmetic.const(node_or_dict)
    if not isinstance(attr_key, str):
        raise DiagnosticError(
            'T.attr takes what it annotates, a key and a value: T.attr(A, "key", 1)'
        )
    key, annotation = attr_key, constructs.as_value(value)
    if key in S.LAUNCH_KEYS and isinstance(node_or_dict, E.Var):
        return launch_thread(node_or_dict, value)
    if isinstance(node_or_dict, S.IterVar) and node_or_dict.dom is None:
        node_or_dict = replace(node_or_dict, dom=loop_range(annotation))
    return constructs.WrapperFrame(
        lambda body, span: S.AttrStmt(node_or_dict, key, annotation, body, span=span)
    )


def assertion(
    condition: Any, message: Any = "", error_kind: str = "RuntimeError"
) -> constructs.WrapperFrame:
    """A check before the statements below."""
    text = "".join(map(str, message)) if isinstance(message, (list, tuple)) else message
    condition, message = arithmetic.convert(condition), arithmetic.convert(text)
    return constructs.WrapperFrame(
        lambda body, span: S.AssertStmt(condition, message, body, error_kind, span=span)
    )


def launch_thread(thread: str | E.Var, extent: Any) -> constructs.ThreadFrame:
    """The threads of an axis, for the statements below."""
    return constructs.ThreadFrame(thread, arithmetic.convert(extent))


def env_thread(thread_tag: str, dtype: str = "int32") -> constructs.ThreadVariable:
    """A thread axis, to be launched by `T.launch_thread`, whose extent says its type."""
    return constructs.ThreadVariable(thread_tag)


def buffer_store(
    buffer: Buffer, value: Any, indices: Sequence[Any], predicate: Any = None
) -> S.Stmt:
    """A store as a call."""
    if predicate is not None:
        raise DiagnosticError("A store under a predicate is not read: use `if`")
    place = E.BufferLoad(buffer, tuple(arithmetic.convert(index) for index in indices))
    value = arithmetic.cast(place.dtype, value)
    return S.BufferStore(buffer, value, place.indices)
