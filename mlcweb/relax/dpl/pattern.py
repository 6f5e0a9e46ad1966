"""Patterns of graph expressions.

    lhs, rhs, bias = wildcard(), wildcard(), wildcard()
    pattern = is_op("relax.add")(is_op("relax.matmul")(lhs, rhs), bias)
    pattern.match(expr, var2val)

A pattern object that occurs at several places stands for the same value at all of them. How
patterns match is in match.py; the order of calls in a block (`used_by`) in context.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from mlcweb.ir.dialect import also_named, takes_newer_keywords
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax.expr import Expr, Var
from mlcweb.relax.struct_info import Extent, StructInfo, extents
from mlcweb.tir.expr import PrimExpr

if TYPE_CHECKING:
    from mlcweb.relax.dpl.context import PatternSeq
    from mlcweb.relax.dpl.match import Bound

Used: TypeAlias = "DFPattern | PatternSeq"
Arguments: TypeAlias = "DFPattern | Sequence[DFPattern] | None"


@dataclass(eq=False, slots=True)
class DFPattern:
    """Base of patterns. `a | b` matches what either does, `a & b` what both do, `~a` all else;
    `a(…)` calls; `a ^ b` says that `b` uses `a`, and `a >> b` that nothing else does."""

    def __call__(
        self, *args: object, varg_default_wildcard: bool = False, add_constraint: bool = True
    ) -> CallPattern:
        """A call of what this matches. `add_constraint`: inside of a `PatternContext`, the call
        uses its arguments as far as these are patterns of the context."""
        call = CallPattern(self, tuple(map(to_pattern, args)), varg_default_wildcard)
        if add_constraint:
            from mlcweb.relax.dpl.context import PatternContext

            context = PatternContext.current()
            if context is not None:
                for index, argument in enumerate(call.args):
                    if not isinstance(argument, NEVER_VARIABLES):
                        context.note(argument, call, index)
        return call

    def __or__(self, other: DFPattern) -> OrPattern:
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> AndPattern:
        return AndPattern(self, other)

    def __invert__(self) -> NotPattern:
        return NotPattern(self)

    def has_attr(self, attrs: Mapping[str, object]) -> AttrPattern:
        """Calls (or functions) that have these attributes as well."""
        return AttrPattern(self, dict(attrs))

    @takes_newer_keywords
    def has_struct_info(self, struct_info: StructInfo) -> StructInfoPattern:
        """Values of this struct info."""
        return StructInfoPattern(self, struct_info)

    has_ty = has_struct_info
    has_type = has_struct_info

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """Tensors of this element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Extent]) -> ShapePattern:
        """Tensors of this shape."""
        return ShapePattern(self, extents(shape))

    def match(self, expr: Expr | GlobalVar, var2val: Mapping[Var, Expr] | None = None) -> bool:
        """Whether an expression matches. With `var2val` (see `relax.analysis.get_var2val`),
        variables stand for their values."""
        from mlcweb.relax.dpl.match import extract

        return extract(self, expr, var2val) is not None

    def extract_matched_expr(
        self, expr: Expr, var2val: Mapping[Var, Expr] | None = None
    ) -> Bound | None:
        """What each part of the pattern matched; None where the expression does not match."""
        from mlcweb.relax.dpl.match import extract

        return extract(self, expr, var2val)

    def used_by(self, other: Used, index: int = -1) -> PatternSeq:
        """Say that `other` uses this: as the variable `index` among those it uses, unless -1."""
        from mlcweb.relax.dpl.context import used_by

        return used_by(self, other, index, only=False)

    def only_used_by(self, other: Used, index: int = -1) -> PatternSeq:
        """Say that `other` uses this, and nothing else does."""
        from mlcweb.relax.dpl.context import used_by

        return used_by(self, other, index, only=True)

    def __xor__(self, other: Used) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Used) -> PatternSeq:
        return self.only_used_by(other)

    def fork_to(self, *others: Used) -> None:
        """Say that all of `others` use this."""
        for other in others:
            self.used_by(other)

    def dup(self) -> Self:
        """A pattern that matches the same, but stands for a value of its own."""
        return cast(Self, _copied(self, {}))

    def same_shape_as(self, *others: DFPattern) -> None:
        """Say that this and `others` match tensors of one shape; a `PatternContext` takes note."""
        from mlcweb.relax.dpl.context import PatternContext

        context = PatternContext.current()
        if context:
            context.note_same_shape([self, *others])


def _copied(value: object, copies: dict[int, object]) -> object:
    """A copy of a pattern; parts that occur twice stay one object."""
    if isinstance(value, tuple):
        return tuple(_copied(item, copies) for item in value)
    if not isinstance(value, DFPattern):
        return value
    if id(value) not in copies:
        parts = {part.name: _copied(getattr(value, part.name), copies) for part in fields(value)}
        copies[id(value)] = type(value)(**parts)
    return copies[id(value)]


def to_pattern(value: object) -> DFPattern:
    """A pattern, or that of one expression."""
    return value if isinstance(value, DFPattern) else ExprPattern(value)


@dataclass(eq=False, slots=True)
class ExprPattern(DFPattern):
    """An expression, or an operator, as it is."""

    expr: object


@dataclass(eq=False, slots=True)
class VarPattern(DFPattern):
    """A variable; of this name, unless it is empty."""

    name: str = ""


@dataclass(eq=False, slots=True)
class DataflowVarPattern(VarPattern):
    """A variable of a dataflow block."""


@dataclass(eq=False, slots=True)
class GlobalVarPattern(DFPattern):
    """A function of the module; of this name, unless it is empty."""

    name: str = ""


_named: tuple[Any, ...] = (VarPattern, DataflowVarPattern, GlobalVarPattern)
for _class in _named:
    _class.__init__ = also_named(name_hint="name")(_class.__init__)


@dataclass(eq=False, slots=True)
class ExternFuncPattern(DFPattern):
    """An external function; of this name, unless it is empty."""

    global_symbol: str = ""


@dataclass(eq=False, slots=True)
class ConstantPattern(DFPattern):
    """A constant."""


@dataclass(eq=False, slots=True)
class WildcardPattern(DFPattern):
    """Anything."""


@dataclass(eq=False, slots=True)
class CallPattern(DFPattern):
    """A call. `args` is None where any arguments will do; where `varg_default_wildcard`, more
    arguments than there are patterns will do as well."""

    op: DFPattern
    args: Sequence[DFPattern] = ()
    varg_default_wildcard: bool = False

    def __post_init__(self) -> None:
        self.op = to_pattern(self.op)
        self.args = tuple(map(to_pattern, self.args or ()))


@dataclass(eq=False, slots=True)
class FunctionPattern(DFPattern):
    """A function, by patterns of its parameters and its body."""

    params: tuple[DFPattern, ...]
    body: DFPattern

    def __post_init__(self) -> None:
        self.params = tuple(self.params)


@dataclass(eq=False, slots=True)
class _Fields(DFPattern):
    fields: tuple[DFPattern, ...]

    def __post_init__(self) -> None:
        self.fields = tuple(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(eq=False, slots=True)
class TuplePattern(_Fields):
    """A tuple of fields in this order."""

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        if index is not None:
            count = len(self.fields)
            if not -count <= index < count:
                raise IndexError(f"The tuple has {count} field(s), no field {index}")
            index %= count
        return TupleGetItemPattern(self, index)


@dataclass(eq=False, slots=True)
class UnorderedTuplePattern(_Fields):
    """A tuple of fields in any order."""


@dataclass(eq=False, slots=True)
class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any field where `index` is None."""

    tuple_value: DFPattern
    index: int | None = None


@dataclass(eq=False, slots=True)
class OrPattern(DFPattern):
    left: DFPattern
    right: DFPattern


@dataclass(eq=False, slots=True)
class AndPattern(DFPattern):
    left: DFPattern
    right: DFPattern


@dataclass(eq=False, slots=True)
class NotPattern(DFPattern):
    to_reject: DFPattern


@dataclass(eq=False, slots=True)
class Refinement(DFPattern):
    """Base of patterns that ask for more than another does."""

    pattern: DFPattern


@dataclass(eq=False, slots=True)
class StructInfoPattern(Refinement):
    struct_info: StructInfo


StructInfoPattern.__init__ = also_named(ty="struct_info")(StructInfoPattern.__init__)


@dataclass(eq=False, slots=True)
class DataTypePattern(Refinement):
    dtype: str


@dataclass(eq=False, slots=True)
class ShapePattern(Refinement):
    shape: tuple[PrimExpr, ...]


@dataclass(eq=False, slots=True)
class PrimArrPattern(DFPattern):
    """A shape with these extents."""

    shape: tuple[PrimExpr, ...]

    def __getitem__(self, index: int) -> PrimExpr:
        if not 0 <= index < len(self.shape):
            raise IndexError(f"The shape has {len(self.shape)} extent(s), no extent {index}")
        return self.shape[index]

    def __len__(self) -> int:
        return len(self.shape)


@dataclass(eq=False, slots=True)
class AttrPattern(Refinement):
    attrs: Mapping[str, object] = field(default_factory=dict)


NEVER_VARIABLES = (ConstantPattern, ExprPattern, GlobalVarPattern, PrimArrPattern)
"""Patterns of what is an argument as it is, without a variable."""


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable; of this name, unless it is empty."""
    return VarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module; of this name, unless it is empty."""
    return GlobalVarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable of a dataflow block; of this name, unless it is empty."""
    return DataflowVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """An expression that is equal to this one."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator; `is_op("relax.add")(a, b)` is a call of it."""
    return ExprPattern(Op.get(op_name))


def is_tuple(
    fields: Sequence[DFPattern], unordered: bool = False
) -> TuplePattern | UnorderedTuplePattern:
    """A tuple of these fields."""
    patterns = tuple(map(to_pattern, fields))
    return UnorderedTuplePattern(patterns) if unordered else TuplePattern(patterns)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple; any field without `index`."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape: Sequence[Extent]) -> PrimArrPattern:
    """A shape with these extents."""
    return PrimArrPattern(extents(shape))


def has_attr(attrs: Mapping[str, object], pattern: DFPattern | None = None) -> AttrPattern:
    """What has these attributes, and matches `pattern`."""
    return (pattern or wildcard()).has_attr(attrs)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of this element type that matches `pattern`."""
    return (pattern or wildcard()).has_dtype(dtype)


def reject(pattern: DFPattern) -> NotPattern:
    """What does not match `pattern`."""
    return NotPattern(pattern)


def _arguments(args: Arguments) -> DFPattern:
    if args is None:
        return wildcard()
    return args if isinstance(args, DFPattern) else TuplePattern(tuple(args))


def is_call_tir(
    func_name: str, args: Arguments = None, tir_vars: DFPattern | None = None
) -> CallPattern:
    """A `call_tir` of the function of this name. `args`: patterns of the tensors; None: any."""
    last = () if tir_vars is None else (tir_vars,)
    return is_op("relax.call_tir")(
        GlobalVarPattern(func_name), _arguments(args), *last, add_constraint=False
    )


def is_call_dps_packed(func_name: str, args: Arguments = None) -> CallPattern:
    """A `call_dps_packed` of the external function of this name."""
    return is_op("relax.call_dps_packed")(
        ExternFuncPattern(func_name), _arguments(args), add_constraint=False
    )


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A call of the external function of this name."""
    callee = ExternFuncPattern(func_name)
    if args is None:
        return callee(varg_default_wildcard=True)
    return callee(*args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> CallPattern:
    """An operator of two arguments, with a bias added and an activation applied if asked for."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out
