"""Node classes as programs call them: `tir.For(i, 0, 8, tir.ForKind.SERIAL, body)`.

Inside the package nodes are made of nodes alone, which costs nothing. Programs give Python's
numbers, lists, texts and the conditions of `a == b`, so the public classes convert what they are
given by the type of the field, and make the node of it. Such a class equals the node class, and has
its instances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.tir import arithmetic, folding
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.node_checks import ConstructionError, fault_of, fault_of_constant
from mlcweb.tir.operators import BINARY_NODES, operator_name
from mlcweb.tir.reduction import CommReducer, Reduce
from mlcweb.tir.substitute import substitute


def as_range(value: Any) -> Range | None:
    """A range, also of a pair (begin, end)."""
    if value is None or isinstance(value, Range):
        return value
    low, high = (arithmetic.convert(end) for end in value)
    return Range(low, arithmetic.subtract(high, low))


def _variable(value: Any) -> E.Var:
    return E.Var(value, "int32") if isinstance(value, str) else _of(E.Var)(value)


def _of(node_class: type[Node]) -> Callable[[Any], Any]:
    """What takes nodes of a class alone."""

    def take(value: Any) -> Any:
        if not isinstance(value, node_class):
            raise DiagnosticError(f"{value!r} is no {node_class.__name__}")
        return value

    return take


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(map(convert, values or ()))


def _as_it_is(value: Any) -> Any:
    return value


def _lanes(value: Any) -> E.Lanes:
    """A number of lanes, or `T.vscale()` times a number."""
    if not isinstance(value, E.PrimExpr) or isinstance(value, E.IntImm):
        return int(value)
    if isinstance(value, E.Mul):
        for factor, count in ((value.a, value.b), (value.b, value.a)):
            if operator_name(factor) == "vscale" and isinstance(count, E.IntImm):
                return E.Mul(factor, count)
    raise DiagnosticError(
        f"A vector has a constant number of lanes, or T.vscale() times a number, not {value}"
    )


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "PrimExpr": arithmetic.convert,
    "int": int,
    "str": str,
    "Var": _variable,
    "Range": as_range,
    "Range | None": as_range,
    "Stmt": _of(S.Stmt),
    "Op | GlobalVar": lambda op: Op.get(op) if isinstance(op, str) else op,
    "ForKind": S.ForKind,
    "IterType": S.IterType,
    "ArrayOf[PrimExpr]": _each(arithmetic.convert),
    "ArrayOf[Range]": _each(as_range),
    **{
        f"ArrayOf[{name}]": _each(_as_it_is)
        for name in ("Stmt", "IterVar", "BufferRegion", "MatchBufferRegion", "Buffer", "Var")
    },
}
"""How to convert what a field is given, by the field's type."""


class Constructor(NamedClass):
    """The type of the public classes; `make` builds the node, `node_class` is what it is of."""

    node_class: type[Node]
    make: Callable[..., Any]
    accepts: Callable[[Any], bool]
    """Which nodes of the class are instances; of a class that takes only some, no others are."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "node_class" not in vars(cls):  # a class of the program's own, derived from it
            return super().__call__(*args, **options)
        try:
            node = vars(cls)["make"](*args, **options)
        except DiagnosticError as error:
            raise ConstructionError(f"tir.{cls.__name__}: {error.message}") from None
        if fault := fault_of(node):
            raise ConstructionError(f"tir.{cls.__name__}: {fault}")
        return node

    def __instancecheck__(cls, value: Any) -> bool:
        own = vars(cls)
        return isinstance(value, own.get("node_class", ())) and own["accepts"](value)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, vars(cls).get("node_class", ()))

    def __eq__(cls, other: object) -> bool:
        own = vars(cls)
        if own.get("accepts") is not _any_node:
            return cls is other
        return own["node_class"] is (other.node_class if isinstance(other, Constructor) else other)

    def __hash__(cls) -> int:
        return type.__hash__(vars(cls).get("node_class", cls))


def _any_node(node: Any) -> bool:
    return True


def constructor(
    node_class: type[Node],
    make: Callable[..., Any] | None = None,
    name: str = "",
    accepts: Callable[[Any], bool] = _any_node,
) -> Constructor:
    """The public class of a node class, or of those of its nodes that it `accepts`."""
    namespace = {
        "__slots__": (),
        "__doc__": node_class.__doc__,
        "__module__": node_class.__module__,
        "node_class": node_class,
        "make": make or _by_fields(node_class),
        "accepts": accepts,
    }
    return Constructor(name or node_class.__name__, (node_class,), namespace)


def make_ramp(base: Any, stride: Any, lanes: Any, span: Any = None) -> E.Ramp:
    """The vector base, base + stride, …; the stride is of the base's type."""
    base = arithmetic.convert(base)
    return E.Ramp(base, arithmetic.cast(base.dtype, stride), _lanes(lanes), span=span)


def make_broadcast(value: Any, lanes: Any, span: Any = None) -> E.Broadcast:
    """The vector of `lanes` copies of a value."""
    return E.Broadcast(arithmetic.convert(value), _lanes(lanes), span=span)


def _by_fields(node_class: Any) -> Callable[..., Any]:
    own = [f for f in fields(node_class) if f.init and not f.kw_only]
    names = [f.name for f in own]
    convert = {f.name: _CONVERSIONS.get(str(f.type), _as_it_is) for f in own}
    optional = {f.name for f in own if f.default is not MISSING or f.default_factory is not MISSING}

    def make(*args: Any, span: Any = None, **options: Any) -> Any:
        arguments = dict(zip(names, args, strict=False))
        if len(args) == len(names) + 1:  # the span is the last parameter of each
            span = args[-1]
        elif len(args) > len(names) or arguments.keys() & options.keys():
            node_class(*args, **options)  # Python's own complaint
        arguments |= options
        values = {
            key: convert.get(key, _as_it_is)(value)
            for key, value in arguments.items()
            if not (value is None and key in optional)
        }
        return node_class(**values, span=span)

    return make


def _binary(node_class: Any) -> Callable[..., Any]:
    def make(a: Any, b: Any, span: Any = None) -> Any:
        """Python's numbers take the type of the other operand."""
        if isinstance(a, (bool, int, float)) or isinstance(b, (bool, int, float)):
            a, b = arithmetic.match_types(a, b)
        a, b = arithmetic.convert(a), arithmetic.convert(b)
        if a.dtype != b.dtype:
            raise DiagnosticError(f"mismatched types: {a.dtype} vs. {b.dtype}")
        return node_class(a, b, span=span)

    return make


def _var(
    name: str = "", dtype: Any = None, type_annotation: Any = None, span: Any = None,
    *, ty: Any = None, name_hint: str = "",
) -> E.Var:  # fmt: skip
    """A variable; since TVM 0.27 `ty` is what `dtype` was, and `name_hint` what `name` was."""
    name, dtype = name or name_hint, dtype or ty or "int32"
    if not isinstance(name, str):
        raise DiagnosticError(f"{name!r} is no name")
    if isinstance(dtype, E.PointerType):
        return E.Var(name, "handle", dtype, span=span)
    full_name = dtypes.full_name(dtype)
    dtypes.parse(full_name)  # refuses what is no type
    return E.Var(name, full_name, type_annotation, span=span)


def size_var(name: str = "size", dtype: Any = "int32", span: Any = None) -> E.Var:
    """A variable that is never negative: the size of something."""
    return E.Var(name, dtypes.full_name(dtype), is_size=True, span=span)


def _pointer(element_type: Any, storage_scope: str = "global", span: Any = None) -> E.PointerType:
    """The type of a pointer to elements of a type, also of `ir.PrimType("float32")`."""
    return E.PointerType(dtypes.full_name(element_type), storage_scope, span=span)


def const(value: Any, dtype: Any = None, span: Any = None) -> E.PrimExpr:
    """A constant as `folding.const` makes it, but that an integer beyond its type is refused."""
    try:
        if dtype is None:
            return folding.const(value)
        name = dtypes.full_name(dtype)
        element = dtypes.element_of(name)
        fault = fault_of_constant(value, element) if isinstance(value, int) else ""
        if not fault:
            return folding.const(value, name)
    except DiagnosticError as error:
        fault = error.message
    raise ConstructionError(f"tir.const: {fault}") from None


def _integer(dtype: Any, value: Any, span: Any = None) -> E.IntImm:
    return E.IntImm(dtypes.full_name(dtype), int(value), span=span)


def _cast(dtype: Any, value: Any, span: Any = None) -> E.Cast:
    return E.Cast(dtypes.full_name(dtype), arithmetic.convert(value), span=span)


def _float(dtype: Any, value: Any, span: Any = None) -> E.FloatImm:
    return E.FloatImm(dtypes.full_name(dtype), float(value), span=span)


def _select(condition: Any, true_value: Any, false_value: Any, span: Any = None) -> E.Select:
    true_value, false_value = arithmetic.match_types(true_value, false_value)
    return E.Select(arithmetic.convert(condition), true_value, false_value, span=span)


def _store(
    buffer: Buffer, value: Any, indices: Sequence[Any], predicate: Any = None, span: Any = None
) -> S.BufferStore:
    _no_predicate(predicate)
    places = tuple(map(arithmetic.convert, indices))
    if isinstance(value, (bool, int, float)):
        value = arithmetic.cast(buffer.dtype, value)
    return S.BufferStore(buffer, arithmetic.convert(value), places, span=span)


def _load(
    buffer: Buffer, indices: Sequence[Any], predicate: Any = None, span: Any = None
) -> E.BufferLoad:
    _no_predicate(predicate)
    return E.BufferLoad(buffer, tuple(map(arithmetic.convert, indices)), span=span)


def _no_predicate(predicate: Any) -> None:
    if predicate is not None:
        raise DiagnosticError(
            "an access under a predicate is not here; put tir.IfThenElse around it"
        )


def _assertion(*args: Any, span: Any = None, **options: Any) -> S.AssertStmt:
    """As `AssertStmt(condition, message, body)`, or since 2026 `AssertStmt(kind, condition,
    message_parts)`, which is a statement before others."""
    if "kind" not in options and not (args and isinstance(args[0], (str, E.StringImm))):
        return _by_fields(S.AssertStmt)(*args, span=span, **options)
    return _assertion_of_kind(*args, span=span, **options)


def _assertion_of_kind(
    kind: Any, condition: Any, message_parts: Sequence[Any] | None = None, span: Any = None
) -> S.AssertStmt:
    texts = [str(getattr(part, "value", part)) for part in message_parts or ()]
    return S.AssertStmt(
        arithmetic.convert(condition),
        E.StringImm("".join(texts)),
        S.Evaluate(arithmetic.const(0)),
        str(getattr(kind, "value", kind)),
        span=span,
    )


def _before_others(node_class: type[S.Stmt]) -> Callable[..., Any]:
    """What has the rest of its scope as its body; since 2026 that is made without one, and
    `tir.SeqStmt` of it and what follows puts these below it."""
    make = _by_fields(node_class)
    names = [f.name for f in fields(node_class) if f.init and not f.kw_only]

    def make_flat(*args: Any, **options: Any) -> Any:
        if len(args) + len(options.keys() & set(names)) < len(names):
            options.setdefault("body", _NOTHING)
        return make(*args, **options)

    return make_flat


_NOTHING = S.Evaluate(folding.const(0))


def _sequence(seq: Sequence[Any], span: Any = None) -> S.Stmt:
    """Statements one after another; those of a scope without a body get what follows as theirs."""
    statements: list[S.Stmt] = []
    for statement in reversed([_of(S.Stmt)(statement) for statement in seq]):
        open_scope = isinstance(statement, (S.LetStmt, S.AllocBuffer, S.DeclBuffer))
        if open_scope and statements and statement.body is _NOTHING:
            statements = [replace(statement, body=S.sequence(*reversed(statements)))]
        else:
            statements.append(statement)
    if len(statements) == 1 and len(seq) > 1:
        return statements[0]
    return S.SeqStmt(tuple(reversed(statements)), span=span)


def _for(*args: Any, step: Any = None, **options: Any) -> S.For:
    """A loop; with a step, which TVM has since 2025, the body sees it times the loop's variable."""
    loop = _by_fields(S.For)(*args, **options)
    if step is None or arithmetic.is_const_int(step := arithmetic.convert(step), 1):
        return loop
    offset = arithmetic.subtract(loop.loop_var, loop.min)
    value = arithmetic.add(arithmetic.multiply(offset, step), loop.min)
    if not isinstance(step, E.IntImm) or step.value <= 0:
        raise DiagnosticError(f"the step of a loop is a positive constant, not {step}")
    extent = arithmetic.floordiv(arithmetic.add(loop.extent, step.value - 1), step)
    return replace(loop, extent=extent, body=substitute(loop.body, {loop.loop_var: value}))


def _allocate(
    buffer_var: E.Var,
    dtype: Any,
    extents: Sequence[Any],
    condition: Any,
    body: S.Stmt,
    annotations: Any = None,
    span: Any = None,
) -> S.Stmt:
    """Memory is a buffer here; what the annotations say stands around the body."""
    if not arithmetic.is_const_int(arithmetic.convert(condition), 1):
        raise DiagnosticError("memory under a condition is not here; put tir.IfThenElse around it")
    for key, value in (annotations or {}).items():
        body = S.AttrStmt(buffer_var, key, arithmetic.convert(value), body)
    shape = list(map(arithmetic.convert, extents))
    buffer = decl_buffer(shape, str(dtype), buffer_var.name, buffer_var)
    return S.AllocBuffer(buffer, body, span=span)


def prim_func(
    params: Sequence[Any],
    body: S.Stmt,
    ret_type: Any = None,
    buffer_map: Mapping[E.Var, Buffer] | None = None,
    attrs: Mapping[str, Any] | None = None,
    span: Any = None,
) -> PrimFunc:
    """A function; a buffer among the parameters gets a handle of its own."""
    buffers, own = dict(buffer_map or {}), []
    for param in params:
        if not isinstance(param, Buffer):
            param = arithmetic.convert(param)
        if isinstance(param, Buffer):
            handle = E.Var(f"{param.name}_handle", "handle")
            buffers[handle] = param
            param = handle
        own.append(_of(E.Var)(param))
    returns = None if ret_type is None else str(getattr(ret_type, "dtype", ret_type))
    return PrimFunc(
        tuple(own), _of(S.Stmt)(body), returns, buffers, attrs=dict(attrs or {}), span=span
    )


def make_range(begin: Any, end: Any = None, span: Any = None) -> Range:
    """The integers from `begin` to before `end`, or from 0 to before `begin`."""
    low, high = (0, begin) if end is None else (begin, end)
    return Range(
        arithmetic.convert(low),
        arithmetic.subtract(arithmetic.convert(high), arithmetic.convert(low)),
        span=span,
    )


_BY_FIELDS = (
    E.StringImm, E.Not, E.Shuffle, E.Call, E.Let, BufferRegion,
    MatchBufferRegion, S.IterVar, S.Evaluate, S.While, S.IfThenElse, S.AttrStmt, S.Block,
    S.BlockRealize, CommReducer, Reduce,
)  # fmt: skip

_SPECIAL: dict[type[Node], Callable[..., Any]] = {
    E.Var: _var,
    E.PointerType: _pointer,
    E.IntImm: _integer,
    E.FloatImm: _float,
    E.Cast: _cast,
    E.Select: _select,
    E.Ramp: make_ramp,
    E.Broadcast: make_broadcast,
    E.BufferLoad: _load,
    S.BufferStore: _store,
    S.AssertStmt: _assertion,
    S.SeqStmt: _sequence,
    S.For: _for,
    **{cls: _before_others(cls) for cls in (S.LetStmt, S.AllocBuffer, S.DeclBuffer)},
    PrimFunc: prim_func,
}

CONSTRUCTORS: dict[str, Any] = {
    **{cls.__name__: constructor(cls, _binary(cls)) for cls in BINARY_NODES},
    **{cls.__name__: constructor(cls) for cls in _BY_FIELDS},
    **{cls.__name__: constructor(cls, make) for cls, make in _SPECIAL.items()},
    "SizeVar": constructor(E.Var, size_var, "SizeVar", lambda var: var.is_size),
    "Allocate": constructor(S.AllocBuffer, _allocate, "Allocate"),
    "Bind": constructor(S.LetStmt, _before_others(S.LetStmt), "Bind"),
}
"""The public classes by name."""
