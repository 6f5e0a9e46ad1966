"""Python's operators on graph expressions: `x + y`, `t[0]`, `f(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import Op
from mlcweb.ir.overloads import overloads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mlcweb.relax.expr import Expr, ExprLike
    from mlcweb.relax.struct_info import StructInfo


def _apply(name: str, *operands: object) -> Expr:
    from mlcweb.ir.module import GlobalVar
    from mlcweb.relax.expr import Expr

    for operand in operands:
        if not isinstance(operand, (Expr, GlobalVar)):
            raise TypeError(f"{operand!r} is no graph expression: write relax.const({operand!r})")
    return Op.get(f"relax.{name}").get_attr("FBuild")(*operands)


_methods = overloads(_apply)


class ExprOperators:
    """What `Expr` inherits. Operands must be expressions; numbers need `relax.const` first."""

    __slots__ = ()

    if TYPE_CHECKING:
        struct_info: StructInfo

    def astype(self, dtype: str, span: object = None) -> Expr:
        return Op.get("relax.astype").get_attr("FBuild")(self, dtype)

    def __neg__(self) -> Expr:
        return _apply("negative", self)

    __add__, __radd__ = _methods("add")
    __sub__, __rsub__ = _methods("subtract")
    __mul__, __rmul__ = _methods("multiply")
    __truediv__, __rtruediv__ = _methods("divide")
    __floordiv__, __rfloordiv__ = _methods("floor_divide")
    __mod__, __rmod__ = _methods("mod")
    __pow__, __rpow__ = _methods("power")
    __lt__ = _methods("less")[0]
    __gt__ = _methods("greater")[0]
    __le__ = _methods("less_equal")[0]
    __ge__ = _methods("greater_equal")[0]

    def __call__(self, *args: ExprLike, attrs: Mapping[str, object] | None = None) -> Expr:
        from mlcweb.relax.expr import Call, convert_to_expr

        return Call(cast("Expr", self), [convert_to_expr(arg) for arg in args], attrs)

    def __getitem__(self, index: int) -> Any:
        from mlcweb.relax.expr import TupleGetItem
        from mlcweb.relax.struct_info import ObjectStructInfo, TupleStructInfo

        info = getattr(self, "struct_info", None)
        if isinstance(info, TupleStructInfo):
            if not -len(info.fields) <= index < len(info.fields):
                raise IndexError(f"The tuple has {len(info.fields)} field(s), no field {index}")
            index %= len(info.fields)
        elif info is not None and not isinstance(info, ObjectStructInfo):
            raise DiagnosticError(f"Only tuples have fields; this is a {info}")
        return TupleGetItem(cast("Expr", self), index)

    def __iter__(self) -> Iterator[Any]:
        from mlcweb.relax.struct_info import TupleStructInfo

        info = getattr(self, "struct_info", None)
        if not isinstance(info, TupleStructInfo):
            raise TypeError("Only tuples of a known number of fields can be unpacked")
        return (self[index] for index in range(len(info.fields)))
