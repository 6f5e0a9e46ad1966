"""Expressions of TVMScript that are more than a builder of `tir`: nodes by name, casts, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import register_op
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.builtins import BUILTINS, builtin, call_builtin
from mlcweb.tir.operators import OPERATORS
from mlcweb.tir.reduction import CommReducer


def node_builder(cls: type) -> Callable[[Any, Any], E.PrimExpr]:
    def build(a: Any, b: Any) -> E.PrimExpr:
        return cls(*arithmetic.match_types(a, b))

    build.__name__ = cls.__name__
    return build


def not_node(a: Any) -> E.Not:
    return E.Not(arithmetic.convert(a))


def select_node(condition: Any, true_value: Any, false_value: Any) -> E.Select:
    """One of two values; both are computed."""
    condition = arithmetic.condition_of(condition)
    sides = arithmetic.match_types(true_value, false_value)
    return E.Select(condition, *arithmetic.in_lanes_of(condition, sides))


def variable(
    name: str = "", ty: Any = "int32", span: Any = None, *, dtype: Any = None, name_hint: str = ""
) -> E.Var:
    """A variable of its own."""
    return E.Var(name or name_hint, dtypes.full_name(dtype or ty), span=span)


def cast_node(dtype: Any, value: Any) -> E.Cast:
    return E.Cast(dtypes.full_name(dtype), arithmetic.convert(value))


def cast(value: Any, dtype: Any) -> E.PrimExpr:
    """`value` converted to `dtype`; folded where it is constant."""
    return arithmetic.cast(dtypes.full_name(dtype), value)


def shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> E.Shuffle:
    """The elements of vectors, one after another, at some positions."""
    return E.Shuffle(
        tuple(map(arithmetic.convert, vectors)), tuple(map(arithmetic.convert, indices))
    )


def min_value(dtype: Any) -> E.PrimExpr:
    return intrinsics.min_value(str(dtype))


def max_value(dtype: Any) -> E.PrimExpr:
    return intrinsics.max_value(str(dtype))


def fold_left(build: Callable[[Any, Any], E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    def apply(a: Any, b: Any, *rest: Any) -> E.PrimExpr:
        result = build(a, b)
        for item in rest:
            result = build(result, item)
        return result

    return apply


def buffer_load(buffer: Buffer, indices: Sequence[Any], predicate: Any = None) -> E.BufferLoad:
    """An element of a buffer as a call."""
    if predicate is not None:
        raise DiagnosticError("A load under a predicate is not read: use T.if_then_else")
    return E.BufferLoad(buffer, tuple(map(arithmetic.convert, indices)))


def call_intrin(dtype: Any, func_name: str, *args: Any) -> E.Call:
    """An operator or builtin by name. Of others the effects are not known."""
    func_name = without_prefix(func_name)
    row = builtin(func_name.removeprefix("tir."))
    op = row.op if row else register_op(func_name, pure=func_name.removeprefix("tir.") in OPERATORS)
    return E.Call(str(dtype), op, tuple(arithmetic.convert(arg) for arg in args))


def call(
    op: Any, args: Any, attrs: Any = None, ty_args: Any = None, span: Any = None,
    ret_ty: Any = None, *, ty: Any = None,
) -> E.Call:  # fmt: skip
    """A call as the node's class takes it, of an operator (also by its name) or a function. Before
    2026 its type came first: `T.Call("void", op, args)`."""
    dtype = ret_ty or ty or "void"
    if not isinstance(args, (list, tuple)):
        dtype, op, args = op, args, attrs
    if isinstance(op, str):
        return call_intrin(dtype, op, *args)
    return E.Call(str(dtype), op, tuple(map(arithmetic.convert, args or ())))


def typed(build: Callable[..., E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    """The builder of an operator with an argument `dtype`, which older scripts give to all."""

    def apply(*args: Any, dtype: Any = None, **options: Any) -> E.PrimExpr:
        value = build(*args, **options)
        if dtype and value.dtype != str(dtype):
            raise DiagnosticError(
                f'T.{build.__name__} gives {value.dtype} here, not the dtype="{dtype}" that is '
                f'asked for; write T.Cast("{dtype}", …) around it'
            )
        return value

    apply.__name__ = build.__name__
    return apply


class MachineNamespace:
    """The instructions of a machine below a name of `T`, at any depth: `T.ptx.cp.async_(…)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def member(self, name: str) -> MachineNamespace:
        return MachineNamespace(f"{self._name}.{name}")

    def __getattr__(self, name: str) -> MachineNamespace:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.member(name)

    def __call__(self, *args: Any, **options: Any) -> E.PrimExpr:
        row = builtin(self._name)
        if row is None:
            raise DiagnosticError(f"T.{self._name} is a family of instructions: name one of them")
        return call_builtin(row, *args, **options)

    def __repr__(self) -> str:
        return f"T.{self._name}"


def call_ffi_kernel(
    name: str, *args: Any, launch_params: Sequence[str] = (), ret_ty: Any = None, dtype: Any = None
) -> E.PrimExpr:
    """The launch of a kernel; `launch_params` names the thread axes whose extents come last."""
    row = BUILTINS["call_ffi_kernel"]
    return call_builtin(row, name, *args, *launch_params, dtype=dtype or ret_ty)


def reinterpret(*args: Any, dtype: Any = None, value: Any = None) -> E.PrimExpr:
    """The bits of a value as another type, which comes first or as `dtype`."""
    if dtype is None:
        dtype, *args = args  # type: ignore[assignment]
    return intrinsics.reinterpret(str(dtype), *(args or (value,)))


def comm_reducer(combiner: Callable[..., Any], identity: Any) -> CommReducer:
    """A reducer as the attribute of a statement: `T.comm_reducer(lambda x, y: x + y, [0.0])`. Of
    n values the lambda has n left parameters, then n right ones."""
    elements = tuple(arithmetic.convert(element) for element in identity)
    names = list(signature(combiner).parameters)
    if len(names) != 2 * len(elements):
        raise DiagnosticError(
            f"A reducer of {len(elements)} values has {2 * len(elements)} parameters, "
            f"not {len(names)}"
        )
    dtypes = [element.dtype for element in elements] * 2
    variables = tuple(E.Var(name, dtype) for name, dtype in zip(names, dtypes, strict=True))
    result = combiner(*variables)
    results = result if isinstance(result, (tuple, list)) else (result,)
    lhs, rhs = variables[: len(elements)], variables[len(elements) :]
    return CommReducer(lhs, rhs, tuple(map(arithmetic.convert, results)), elements)


def index_map(
    mapping: Callable[..., Any],
    *,
    inverse_index_map: Callable[..., Any] | None = None,
    index_dtype: str = "int64",
) -> IndexMap:
    """How indices of one layout become those of another: `T.index_map(lambda i, j: (j, i))`."""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map, index_dtype=index_dtype)
