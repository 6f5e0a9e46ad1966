"""Python's operators on graph expressions: `x + y`, `t[0]`, `f(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import DiagnosticError


def _apply(name: str, *operands: Any) -> Any:
    from mlcweb.ir.module import GlobalVar
    from mlcweb.relax import op
    from mlcweb.relax.expr import Expr

    for operand in operands:
        if not isinstance(operand, (Expr, GlobalVar)):
            raise TypeError(f"{operand!r} is no graph expression: write relax.const({operand!r})")
    return getattr(op, name)(*operands)


class ExprOperators:
    """What `Expr` inherits. Operands must be expressions; numbers need `relax.const` first."""

    __slots__ = ()

    if TYPE_CHECKING:
        struct_info: Any

    def astype(self, dtype: str) -> Any:
        from mlcweb.relax import op

        return op.astype(self, dtype)

    def __neg__(self) -> Any:
        return _apply("negative", self)

    def __add__(self, other: Any) -> Any:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _apply("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return _apply("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _apply("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return _apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _apply("power", other, self)

    def __lt__(self, other: Any) -> Any:
        return _apply("less", self, other)

    def __gt__(self, other: Any) -> Any:
        return _apply("greater", self, other)

    def __le__(self, other: Any) -> Any:
        return _apply("less_equal", self, other)

    def __ge__(self, other: Any) -> Any:
        return _apply("greater_equal", self, other)

    def __call__(self, *args: Any, attrs: Any = None) -> Any:
        from mlcweb.relax.expr import Call, convert_to_expr

        return Call(self, [convert_to_expr(arg) for arg in args], attrs)

    def __getitem__(self, index: int) -> Any:
        from mlcweb.relax.expr import TupleGetItem
        from mlcweb.relax.struct_info import ObjectStructInfo, TupleStructInfo

        info = getattr(self, "struct_info", None)
        if isinstance(info, TupleStructInfo):
            if not -len(info.fields) <= index < len(info.fields):
                raise IndexError(f"The tuple has {len(info.fields)} field(s), no field {index}")
            return TupleGetItem(self, index % len(info.fields))
        if info is not None and not isinstance(info, ObjectStructInfo):
            raise DiagnosticError(f"Only tuples have fields; this is a {info}")
        return TupleGetItem(self, index)

    def __iter__(self) -> Any:
        from mlcweb.relax.struct_info import TupleStructInfo

        info = getattr(self, "struct_info", None)
        if not isinstance(info, TupleStructInfo):
            raise TypeError("Only tuples of a known number of fields can be unpacked")
        return (self[index] for index in range(len(info.fields)))
