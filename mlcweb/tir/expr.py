"""Expressions of TensorIR. Every expression has a `dtype`; operators build folded expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mlcweb.ir.array import ArrayOf
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node, attribute, definition, hint, node, reference
from mlcweb.ir.op import Op
from mlcweb.ir.overloads import overloads
from mlcweb.ir.structural import COMPARED_AS, VARIABLE_CLASSES
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.tir.buffer import Buffer


def _build(name: str, *operands: Any) -> PrimExpr:
    return getattr(arithmetic, name)(*operands)


_methods = overloads(_build)


class Arithmetic:
    """Operators that build expressions; for whatever `arithmetic.convert` understands."""

    __slots__ = ()

    __add__, __radd__ = _methods("add")
    __sub__, __rsub__ = _methods("subtract")
    __mul__, __rmul__ = _methods("multiply")
    __truediv__, __rtruediv__ = _methods("divide")
    __floordiv__, __rfloordiv__ = _methods("floordiv")
    __mod__, __rmod__ = _methods("floormod")
    __lshift__, __rlshift__ = _methods("shift_left")
    __rshift__, __rrshift__ = _methods("shift_right")
    __and__, __rand__ = _methods("bitwise_and")
    __or__, __ror__ = _methods("bitwise_or")
    __xor__, __rxor__ = _methods("bitwise_xor")
    __lt__ = _methods("less")[0]
    __le__ = _methods("less_equal")[0]
    __gt__ = _methods("greater")[0]
    __ge__ = _methods("greater_equal")[0]

    def astype(self, dtype: str, span: Any = None) -> PrimExpr:
        return arithmetic.cast(dtypes.full_name(dtype), self)

    def __neg__(self) -> PrimExpr:
        return arithmetic.negate(self)

    def __invert__(self) -> PrimExpr:
        return arithmetic.bitwise_not(self)

    def equal(self, other: Any, span: Any = None) -> PrimExpr:
        """The comparison, without the question of `EqualOp` what is meant."""
        return arithmetic.equal(self, other)

    def __eq__(self, other: object) -> Any:
        return EqualOp(self, other) if _may_be_compared(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return NotEqualOp(self, other) if _may_be_compared(other) else NotImplemented

    # In tables expressions are known by their identity.
    __hash__ = object.__hash__


def _may_be_compared(other: object) -> bool:
    return isinstance(other, (Arithmetic, int, float)) or hasattr(other, "asobject")


class EqualOp(Arithmetic):
    """`a == b`: the condition where an expression is wanted, whether both are the same object
    where Python wants a truth value."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b

    def asobject(self) -> PrimExpr:
        """The condition as an expression."""
        return arithmetic.equal(self.a, self.b)

    def __bool__(self) -> bool:
        return self.a is self.b

    def __repr__(self) -> str:
        return repr(self.asobject())


class NotEqualOp(EqualOp):
    """`a != b`, likewise."""

    __slots__ = ()

    def asobject(self) -> PrimExpr:
        return arithmetic.not_equal(self.a, self.b)

    def __bool__(self) -> bool:
        return self.a is not self.b


COMPARED_AS[EqualOp] = EqualOp.asobject
COMPARED_AS[NotEqualOp] = NotEqualOp.asobject


@node
class PrimExpr(Arithmetic, Node):
    """Base of expressions. Arithmetic operators match types and fold constants, as TVM's do."""

    @property
    def dtype(self) -> str:
        raise NotImplementedError(type(self).__name__)

    @property
    def ty(self) -> Any:
        """The type as a node, under its name since 2026; of a pointer the `PointerType`, of
        others `ir.PrimType`, which has the `dtype`."""
        pointer = getattr(self, "type_annotation", None)
        return pointer or provided(__name__, "PrimStructInfo")(self.dtype)

    def __bool__(self) -> bool:
        raise ValueError(
            "A symbolic expression has no truth value; use T.if_then_else, T.And, T.Or or T.Not"
        )

    def __repr__(self) -> str:
        return _text_of(self)


def _text_of(expression: Node) -> str:
    from mlcweb.ir import printing

    return printing.text(expression)


@node
class PointerType(Node):
    """The type of a buffer's data variable: element type and storage scope."""

    element_type: str = attribute()
    storage_scope: str = attribute(default="global")


@node
class Var(PrimExpr):
    """A variable, known by its identity; the name is only for people."""

    is_identity: ClassVar[bool] = True

    name: str = hint()
    dtype: str = attribute(default="int32")  # type: ignore[assignment]
    type_annotation: PointerType | None = None
    is_size: bool = hint(default=False)
    """Whether it is the size of something, which is never negative (`tir.SizeVar`)."""


VARIABLE_CLASSES.add(Var)


@node
class IntImm(PrimExpr):
    """An integer (or bool) constant."""

    dtype: str = attribute()  # type: ignore[assignment]
    value: int = attribute()

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> Any:
        """Equal by value, so that programs can compare extents: `A.shape[1] == B.shape[0]`."""
        if isinstance(other, (IntImm, int)):
            return self.value == (other.value if isinstance(other, IntImm) else other)
        return EqualOp(self, other) if _may_be_compared(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        if isinstance(other, (IntImm, int)):
            return self.value != (other.value if isinstance(other, IntImm) else other)
        return NotImplemented if not _may_be_compared(other) else NotEqualOp(self, other)

    __hash__ = object.__hash__


@node
class FloatImm(PrimExpr):
    """A floating-point constant."""

    dtype: str = attribute()  # type: ignore[assignment]
    value: float = attribute()

    def __float__(self) -> float:
        return self.value


@node
class StringImm(PrimExpr):
    """A string constant, an argument of calls. It equals the string, as in TVM."""

    value: str = attribute()

    @property
    def dtype(self) -> str:
        return "handle"

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (StringImm, str)):
            return self.value == (other if isinstance(other, str) else other.value)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        if isinstance(other, (StringImm, str)):
            return not self == other
        return super().__ne__(other)

    __hash__ = object.__hash__


@node
class Cast(PrimExpr):
    dtype: str = attribute()  # type: ignore[assignment]
    value: PrimExpr


@node
class BinaryExpr(PrimExpr):
    """Base of operations on two operands of one type; the result has that type."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        self.dtype = self.a.dtype  # type: ignore[override]


@node
class Add(BinaryExpr):
    pass


@node
class Sub(BinaryExpr):
    pass


@node
class Mul(BinaryExpr):
    pass


@node
class Div(BinaryExpr):
    """Division: true division of floats, division towards zero of integers."""


@node
class Mod(BinaryExpr):
    """The remainder of division towards zero."""


@node
class FloorDiv(BinaryExpr):
    pass


@node
class FloorMod(BinaryExpr):
    pass


@node
class Min(BinaryExpr):
    pass


@node
class Max(BinaryExpr):
    pass


@node
class ComparisonExpr(PrimExpr):
    """Base of operations on two operands with a boolean result."""

    a: PrimExpr
    b: PrimExpr

    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        self.dtype = dtypes.truth_value(self.a.dtype)  # type: ignore[override]


@node
class EQ(ComparisonExpr):
    pass


@node
class NE(ComparisonExpr):
    pass


@node
class LT(ComparisonExpr):
    pass


@node
class LE(ComparisonExpr):
    pass


@node
class GT(ComparisonExpr):
    pass


@node
class GE(ComparisonExpr):
    pass


@node
class And(ComparisonExpr):
    pass


@node
class Or(ComparisonExpr):
    pass


@node
class Not(PrimExpr):
    a: PrimExpr
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        self.dtype = self.a.dtype  # type: ignore[override]


@node
class Select(PrimExpr):
    """Chooses one of two values; both are computed."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        self.dtype = self.true_value.dtype  # type: ignore[override]


@node
class BufferLoad(PrimExpr):
    """Reads an element (or, with a `Ramp` as last index, a vector) of a buffer."""

    buffer: Buffer = reference()
    indices: ArrayOf[PrimExpr]
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        indices, dtype = self.indices, self.buffer.dtype
        of_elements = dtypes.vector_at(dtype, indices[-1].dtype) if indices else dtype
        self.dtype = of_elements  # type: ignore[override]

    @property
    def source(self) -> Buffer:
        """The buffer, under its name since 2026."""
        return self.buffer


Lanes = int | PrimExpr
"""How many elements a vector has: a number, or `T.vscale() * n` of a scalable one."""


def lane_count(lanes: Lanes) -> int:
    """`dtypes.lane_count` of a vector of so many elements."""
    if isinstance(lanes, int):
        return lanes
    assert isinstance(lanes, Mul) and isinstance(lanes.b, IntImm)
    return -lanes.b.value


def lanes_of(dtype: str) -> Lanes:
    """How many elements the vectors of a type have."""
    count = dtypes.lane_count(dtype)
    if count > 0:
        return count
    return Mul(Call("int32", Op.get("tir.vscale"), ()), IntImm("int32", -count))


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, …, of `lanes` elements."""

    base: PrimExpr
    stride: PrimExpr
    lanes: Lanes = attribute()
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        lanes = lane_count(self.lanes)
        self.dtype = dtypes.with_lanes(self.base.dtype, lanes)  # type: ignore[override]


@node
class Broadcast(PrimExpr):
    """The vector of `lanes` copies of a value."""

    value: PrimExpr
    lanes: Lanes = attribute()
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        lanes = lane_count(self.lanes)
        self.dtype = dtypes.with_lanes(self.value.dtype, lanes)  # type: ignore[override]


@node
class Shuffle(PrimExpr):
    """The elements of some vectors, one after another, at some positions; of one, that element."""

    vectors: ArrayOf[PrimExpr]
    indices: ArrayOf[PrimExpr]

    @property
    def dtype(self) -> str:
        return dtypes.with_lanes(dtypes.element_of(self.vectors[0].dtype), len(self.indices))


@node
class Call(PrimExpr):
    """A call of an operator or of another function of the module."""

    dtype: str = attribute()  # type: ignore[assignment]
    op: Op | GlobalVar = attribute()
    args: ArrayOf[PrimExpr]


@node
class Let(PrimExpr):
    """`body` with `var` standing for `value`."""

    var: Var = definition()
    value: PrimExpr
    body: PrimExpr
    dtype: str = attribute(init=False)

    def __post_init__(self) -> None:
        self.dtype = self.body.dtype  # type: ignore[override]


from mlcweb.tir import arithmetic  # noqa: E402  (operators need the nodes, which come first)
