"""The nodes of the graph level, under TVM's names.

A function's body is a `SeqExpr`: blocks of bindings, then the result. `struct_info` says what is
known of an expression's value: variables and constants carry it, that of other expressions follows
from their parts and is deduced when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from mlcweb.ir import printing
from mlcweb.ir.array import Array, ArrayOf
from mlcweb.ir.dialect import KEYWORDS, also_named, takes_newer_keywords
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.function_attrs import FunctionAttrs
from mlcweb.ir.module import BaseFunc, GlobalVar
from mlcweb.ir.node import Node, attribute, child, definition, hint, node, reference
from mlcweb.ir.op import Op
from mlcweb.ir.span import Span
from mlcweb.ir.structural import COMPARED_AS, VARIABLE_CLASSES
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.constant_data import ArrayData, ArrayLike, contents, host_array
from mlcweb.relax.operators import ExprOperators
from mlcweb.relax.struct_info import (
    Extent,
    FuncStructInfo,
    ObjectStructInfo,
    ShapeLike,
    StructInfo,
    TensorStructInfo,
    extents,
)  # fmt: skip
from mlcweb.tir.arithmetic import const as prim_const
from mlcweb.tir.arithmetic import convert
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.expr import Var as PrimVar

STRUCT_INFO: dict[type, Callable[..., StructInfo]] = {}
"""How to deduce the struct info of a node class; of a Function, that of its result. Filled by
`mlcweb.relax.deduction`."""


@node
class Expr(ExprOperators, Node):
    """Base of graph expressions. `struct_info` is what is known of the value."""

    @property
    def checked_type(self) -> StructInfo:
        """The struct info, under an older name."""
        return self.struct_info

    @property
    def ty(self) -> StructInfo:
        """The struct info, under its name since 2026."""
        return self.struct_info

    @property
    def _checked_type_(self) -> StructInfo:
        """The struct info, under its name of 2022."""
        return self.struct_info

    @property
    def shape_(self) -> Expr | None:
        """The shape of a tensor, under its name of 2022: None if it is not known."""
        return getattr(self.struct_info, "shape", None)

    def __repr__(self) -> str:
        return printing.text(self)


@node
class DeducedExpr(Expr):
    """Base of expressions whose struct info follows from their parts. It is deduced when first
    asked for, and remembered; a copy of the node with other parts starts without it."""

    struct_info_: StructInfo | None = field(init=False, default=None)

    @property
    def ty(self) -> Any:
        """The struct info, under its name since 2026; None while that of a part is not known."""
        try:
            return self.struct_info
        except DiagnosticError:
            return None

    if not TYPE_CHECKING:

        @property
        def struct_info(self) -> StructInfo:
            info = self.struct_info_
            if info is None:
                info = STRUCT_INFO[type(self)](self)
                remember(self, info)
            return info


def remember(expr: Expr, info: StructInfo | None) -> None:
    """Keep what was deduced of an expression. It follows from the fields, so nothing changes."""
    object.__setattr__(expr, "struct_info_", info)


@node
class Var(Expr):
    """A variable, known by its identity."""

    is_identity: ClassVar[bool] = True

    name_hint: str = hint()
    struct_info: StructInfo = reference(default=None)
    """None where nothing is known, which a well-formed function does not have."""

    def __init__(
        self,
        name_hint: str,
        struct_info: StructInfo | ShapeLike | None = None,
        type_annotation: StructInfo | None = None,
        *,
        span: Span | None = None,
    ) -> None:
        if struct_info is not None and not isinstance(struct_info, StructInfo):
            struct_info = _of_shape(struct_info, type_annotation)
        self.name_hint = name_hint
        self.struct_info = struct_info or type_annotation  # type: ignore[assignment]
        self.span = span

    @property
    def struct_info_(self) -> StructInfo | None:
        return self.struct_info

    @property
    def vid(self) -> str:
        return self.name_hint


@node
class DataflowVar(Var):
    """A variable that is not seen outside of its dataflow block."""

    __init__ = Var.__init__


def _of_shape(shape: ShapeLike, type_annotation: StructInfo | None) -> StructInfo:
    """A tensor's struct info as it was said until 2023: `relax.Var("x", (n, m), DynTensorType(2))`,
    of which the type need not be given."""
    if not isinstance(shape, (Sequence, ShapeExpr)) or isinstance(shape, str):
        raise DiagnosticError(
            f'{shape!r} is no type of a variable, such as relax.TensorStructInfo((3, 4), "float32")'
        )
    if type_annotation is None:
        return TensorStructInfo(shape, None)
    if not isinstance(type_annotation, TensorStructInfo):
        raise DiagnosticError(f"A variable with a shape is a tensor, not {type_annotation}")
    return TensorStructInfo(shape, type_annotation.dtype, ndim=type_annotation.ndim)


VARIABLE_CLASSES.update((Var, DataflowVar))


@node
class Constant(Expr):
    """A constant. `data` has `shape`, `dtype` and `numpy()`."""

    data: ArrayData = attribute()
    struct_info: StructInfo = reference(default=None)

    def __init__(
        self, data: ArrayData, struct_info: StructInfo | None = None, span: Span | None = None
    ) -> None:
        self.data = data
        self.struct_info = struct_info or TensorStructInfo(tuple(data.shape), str(data.dtype))
        self.span = span

    @property
    def struct_info_(self) -> StructInfo:
        return self.struct_info


COMPARED_AS[Constant] = lambda constant: ("Constant", constant.struct_info, contents(constant.data))


@node
class Call(DeducedExpr):
    """A call of an operator, a function of the module, an external function or a variable.

    `attrs` are the operator's attributes; `sinfo_args` tell what an opaque function gives.
    """

    op: Value | BaseFunc | Op
    args: ArrayOf[RelaxExpr]
    attrs: Attrs | None = attribute(default=None)
    sinfo_args: ArrayOf[StructInfo] = child(default=())

    def __init__(
        self,
        op: RelaxExpr,
        args: Sequence[RelaxExpr],
        attrs: Mapping[str, object] | None = None,
        sinfo_args: Sequence[StructInfo] | StructInfo | None = None,
        span: Span | None = None,
    ) -> None:
        if isinstance(op, Var) and op.struct_info is not None:
            if not isinstance(op.struct_info, (FuncStructInfo, ObjectStructInfo)):
                raise ValueError(
                    f"Only functions can be called; {op.name_hint} is a {op.struct_info}"
                )
        self.op = op
        self.args = Array(args)
        self.attrs = attrs if attrs is None or isinstance(attrs, Attrs) else Attrs(attrs)
        infos = (sinfo_args,) if isinstance(sinfo_args, StructInfo) else sinfo_args
        self.sinfo_args = Array(infos or ())
        self.struct_info_ = None
        self.span = span

    @property
    def ty_args(self) -> tuple[StructInfo, ...]:
        """`sinfo_args`, under their name since 2026."""
        return self.sinfo_args


@node
class Tuple(DeducedExpr):
    """Several values in one."""

    fields: ArrayOf[RelaxExpr]

    def __init__(self, fields: Sequence[RelaxExpr], span: Span | None = None) -> None:
        self.fields = Array(fields)
        self.struct_info_ = None
        self.span = span

    def __getitem__(self, index: int) -> RelaxExpr:
        return _item(self.fields, index, "Tuple")

    def __iter__(self) -> Iterator[RelaxExpr]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@node
class TupleGetItem(DeducedExpr):
    """A field of a tuple."""

    tuple_value: Value
    index: int = attribute()


@node
class ShapeExpr(DeducedExpr):
    """A shape; its extents are expressions of type int64."""

    values: ArrayOf[PrimExpr]

    def __init__(self, values: Iterable[Extent], span: Span | None = None) -> None:
        self.values = extents(values)
        self.struct_info_ = None
        self.span = span

    def __getitem__(self, index: int) -> PrimExpr:
        return _item(self.values, index, "ShapeExpr")

    def __iter__(self) -> Iterator[PrimExpr]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


@node
class PrimValue(DeducedExpr):
    """A scalar as an argument of calls. Whole numbers are int64."""

    value: PrimExpr

    def __init__(self, value: PrimExpr | bool | int | float, span: Span | None = None) -> None:
        if isinstance(value, int) and not isinstance(value, bool):
            value = prim_const(value, "int64")
        elif isinstance(value, float):
            value = prim_const(value, "float64")
        self.value = convert(value)
        self.struct_info_ = None
        self.span = span


@node
class StringImm(DeducedExpr):
    """A string as an argument of calls."""

    value: str = attribute()


@node
class DataTypeImm(DeducedExpr):
    """A data type as an argument of calls."""

    value: str = attribute()


@node
class Binding(Node):
    """Base of what a block consists of: `var` gets a value."""

    var: Var = definition()
    value: Value

    def __repr__(self) -> str:
        return printing.text(self)


@node
class VarBinding(Binding):
    """`var = value`."""


@node
class MatchCast(Binding):
    """`var = value`, after a check at run time that the value is what `struct_info` says. Symbolic
    extents that are new in `struct_info` are defined by it."""

    struct_info: StructInfo = definition()

    structural_order: ClassVar[tuple[str, ...]] = ("value", "struct_info", "var")

    @property
    def ty(self) -> StructInfo:
        """`struct_info`, under its name since 2026."""
        return self.struct_info


@node
class BindingBlock(Node):
    """Bindings in order."""

    bindings: ArrayOf[Binding]

    def __init__(self, bindings: Sequence[Binding], span: Span | None = None) -> None:
        self.bindings = Array(bindings)
        self.span = span

    def __repr__(self) -> str:
        return printing.text(self)


@node
class DataflowBlock(BindingBlock):
    """Bindings without side effects. Its `DataflowVar`s are not seen outside."""

    __init__ = BindingBlock.__init__


@node
class SeqExpr(DeducedExpr):
    """Blocks of bindings, then a result."""

    blocks: ArrayOf[BindingBlock]
    body: Value

    def __init__(
        self, blocks: Sequence[BindingBlock], body: Value, span: Span | None = None
    ) -> None:
        self.blocks = Array(blocks)
        self.body = body
        self.struct_info_ = None
        self.span = span


Item = TypeVar("Item")


def _item(items: tuple[Item, ...], index: int, of: str) -> Item:
    if not -len(items) <= index < len(items):
        raise IndexError(f"{of} index out of range: there are {len(items)}, and none is {index}")
    return items[index]


def as_seq(body: Value) -> SeqExpr:
    """`body` as a SeqExpr, which branches and functions need."""
    return body if isinstance(body, SeqExpr) else SeqExpr((), body, span=body.span)


@node
class If(DeducedExpr):
    """One of two branches, by a boolean tensor without dimensions."""

    cond: Value
    true_branch: SeqExpr
    false_branch: SeqExpr

    def __init__(
        self, cond: Value, true_branch: Value, false_branch: Value, span: Span | None = None
    ) -> None:
        self.cond = cond
        self.true_branch = as_seq(true_branch)
        self.false_branch = as_seq(false_branch)
        self.struct_info_ = None
        self.span = span


@node
class Function(BaseFunc, Expr):
    """A function of the graph level. `ret_struct_info` is deduced from the body if not given."""

    params: ArrayOf[Var] = definition()
    body: SeqExpr
    ret_struct_info: StructInfo
    is_pure: bool = attribute(default=True)

    structural_order: ClassVar[tuple[str, ...]] = (
        "params", "body", "ret_struct_info", "is_pure", "attrs",
    )  # fmt: skip

    def __init__(
        self,
        params: Sequence[Var],
        body: Value,
        ret_struct_info: StructInfo | None = None,
        is_pure: bool = True,
        attrs: Mapping[str, object] | None = None,
        span: Span | None = None,
    ) -> None:
        self.params = Array(params)
        self.body = as_seq(body)
        self.is_pure = is_pure
        self.attrs = FunctionAttrs(attrs or {})
        self.span = span
        self.ret_struct_info = ret_struct_info or STRUCT_INFO[Function](self)

    @property
    def ret_ty(self) -> StructInfo:
        """`ret_struct_info`, under its name since 2026."""
        return self.ret_struct_info

    @property
    def struct_info(self) -> FuncStructInfo:  # type: ignore[override]
        """The parameters' struct infos, and the result's."""
        params = [param.struct_info for param in self.params]
        return FuncStructInfo(params, self.ret_struct_info, self.is_pure)

    if TYPE_CHECKING:  # binding.py and transform/inline_functions.py implement these

        def bind_params(self, /, binding_map: ByParameter) -> Function: ...
        def bind_symbolic_vars(self, /, binding_map: ByExtent) -> Function: ...
        def inline_functions(self, /, function_map: ByName) -> Function: ...

    __repr__ = BaseFunc.__repr__


@node
class ExternFunc(BaseFunc, Expr):
    """A function that is looked up by name when the program runs."""

    global_symbol: str = attribute()
    struct_info: StructInfo = reference(default=None)

    def __init__(
        self,
        global_symbol: str,
        struct_info: StructInfo | None = None,
        span: Span | None = None,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        self.global_symbol = global_symbol
        self.struct_info = struct_info or FuncStructInfo.opaque_func()
        self.attrs = FunctionAttrs(attrs or {})
        self.span = span

    def __repr__(self) -> str:
        return printing.text(self)


@takes_newer_keywords
def extern(
    name: str, struct_info: StructInfo | None = None, span: Span | None = None
) -> ExternFunc:
    """An external function by name."""
    return ExternFunc(name, struct_info, span=span)


def const(value: ArrayLike, dtype: str | StructInfo | None = None) -> Constant:
    """A constant from a number, a (nested) list, or an array.

    `dtype`: the element type, or a TensorStructInfo. Without it int gives int32, float float32.
    """
    if isinstance(dtype, StructInfo):
        if not isinstance(dtype, TensorStructInfo):
            raise DiagnosticError(f"A constant is a tensor, not a {dtype}")
        data, shape = host_array(value, dtype.dtype or None), dtype.values
        if shape is not None and list(map(constant_int, shape)) != list(data.shape):
            raise DiagnosticError(f"A constant of shape {tuple(data.shape)} is not a {dtype}")
        return Constant(data, dtype)
    return Constant(host_array(value, dtype))


Value: TypeAlias = "Expr | GlobalVar"
"""What a variable is bound to, and what a body gives."""

RelaxExpr: TypeAlias = "Value | BaseFunc | Op"
"""What a call calls, and what stands among its arguments."""

ExprType = TypeVar("ExprType", bound=RelaxExpr)

ByParameter: TypeAlias = "Mapping[Var, Expr | ArrayLike] | Mapping[str, Expr | ArrayLike]"
"""What parameters are bound to, by themselves or their names."""

ByExtent: TypeAlias = "Mapping[PrimVar, Extent] | Mapping[str, Extent]"
"""What symbolic extents are bound to."""

ByName: TypeAlias = "Mapping[GlobalVar, Function] | Mapping[str, Function]"
"""Functions by their names in a module."""

ExprLike: TypeAlias = (
    "Expr | BaseFunc | GlobalVar | Op | PrimExpr | str | float | Sequence[ExprLike]"
)
"""What `convert_to_expr` takes."""


def convert_to_expr(value: ExprLike) -> RelaxExpr:
    """`value` as a graph expression: tuples and lists become a Tuple, strings and scalars their
    immediates."""
    if isinstance(value, (Expr, GlobalVar, Op, BaseFunc)):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple([convert_to_expr(item) for item in value])
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (bool, int, float, PrimExpr)):
        return PrimValue(value)
    raise TypeError(f"{type(value).__name__} is not an expression of the graph level: {value!r}")


def called_operator(value: object) -> str:
    """The name of the operator that a value is a call of; "" of any other value."""
    return value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else ""


def constant_int(value: PrimExpr | int) -> int | None:
    """The integer that an extent is, or None."""
    return value.value if isinstance(value, IntImm) else None


_renamed: tuple[Any, ...] = (Var, DataflowVar, Constant, Call, MatchCast, Function, ExternFunc)
for _class in _renamed:
    names = KEYWORDS | ({"name": "name_hint"} if issubclass(_class, Var) else {})
    _class.__init__ = also_named(**names)(_class.__init__)
