"""What the names of `R` stand for that are no operators: types, blocks, immediates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.global_info import find_vdevice
from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax import struct_info as S
from mlcweb.relax.errors import DTypeError
from mlcweb.script.namespace.types import ScalarType


class InfoType:
    """A type of values, as annotations name it: `R.Tensor`, or `R.Tensor((3, 4), "float32")`."""

    def __init__(self, name: str, build: Callable[..., S.StructInfo]) -> None:
        self.name = name
        self.build = build

    def __call__(self, *args: Any, **options: Any) -> S.StructInfo:
        return self.build(*args, **options)

    def __getitem__(self, arguments: Any) -> S.StructInfo:
        return self.build(*arguments) if isinstance(arguments, tuple) else self.build(arguments)

    def __repr__(self) -> str:
        return f"R.{self.name}"


def to_struct_info(value: Any) -> S.StructInfo:
    """What an annotation says: a struct info, or a type without arguments."""
    if isinstance(value, S.StructInfo):
        return value
    if isinstance(value, InfoType):
        return value()
    if isinstance(value, ScalarType):  # as TVM writes numbers since 2026
        return S.PrimStructInfo(str(value))
    if value is None:
        return S.TupleStructInfo(())
    raise DTypeError(
        f'{value!r} is no type of the graph level, such as R.Tensor((3, 4), "float32")'
    )


def to_struct_infos(value: Any) -> Any:
    """A type, or a sequence of types, as struct infos; what is neither stays as it is."""
    if (
        isinstance(value, (list, tuple))
        and value
        and isinstance(value[0], (InfoType, S.StructInfo))
    ):
        return [to_struct_info(item) for item in value]
    return value() if isinstance(value, InfoType) else value


def _tensor(
    shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1
) -> S.TensorStructInfo:
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    return S.TensorStructInfo(
        shape, None if dtype is None else str(dtype), find_vdevice(vdevice), ndim
    )


def _shape(values: Sequence[Any] | None = None, ndim: int = -1) -> S.ShapeStructInfo:
    return S.ShapeStructInfo(values, ndim)


def _prim(dtype: Any = None, value: Any = None) -> S.PrimStructInfo:
    if isinstance(value, str):
        value = S.extent(value)
    return S.PrimStructInfo(None if dtype is None else str(dtype), value)


def _tuple(*fields: Any) -> S.TupleStructInfo:
    if len(fields) == 1 and isinstance(fields[0], (list, tuple)):
        fields = tuple(fields[0])
    return S.TupleStructInfo([to_struct_info(field) for field in fields])


def _callable(
    params: Any = None, ret: Any = None, purity: bool | None = None, derive_func: Any = None
) -> S.FuncStructInfo:
    result = S.ObjectStructInfo() if ret is None else to_struct_info(ret)
    if params is None:
        return S.FuncStructInfo.opaque_func(ret=result, purity=bool(purity))
    param_types = params if isinstance(params, (list, tuple)) else (params,)
    infos = [to_struct_info(param) for param in param_types]
    return S.FuncStructInfo(infos, result, True if purity is None else purity)


TYPES = {
    "Tensor": InfoType("Tensor", _tensor),
    "Shape": InfoType("Shape", _shape),
    "Prim": InfoType("Prim", _prim),
    "Tuple": InfoType("Tuple", _tuple),
    "Object": InfoType("Object", S.ObjectStructInfo),
    "Any": InfoType("Object", S.ObjectStructInfo),
    "Callable": InfoType("Callable", _callable),
}


@dataclass(slots=True)
class DataflowFrame:
    """`with R.dataflow():`."""


@dataclass(slots=True)
class Output:
    """`R.output(…)`, the end of a dataflow block."""

    values: tuple[Any, ...]


@dataclass(slots=True)
class MatchCastPair:
    """`R.match_cast(value, type)`, which needs a variable."""

    value: Any
    struct_info: S.StructInfo


@dataclass(slots=True)
class Attributes:
    """`R.func_attr({…})`."""

    values: Mapping[str, Any]


@takes_newer_keywords
def match_cast(value: Any, struct_info: Any) -> MatchCastPair:
    """`value`, checked at run time to be what a type says."""
    return MatchCastPair(E.convert_to_expr(value), to_struct_info(struct_info))


def _typed(build: Callable[..., E.Call]) -> Callable[..., E.Call]:
    """The builder of a call whose results are named by types: here also by types without arguments
    and data types of `T`, under either keyword."""

    @wraps(build)
    def apply(*args: Any, **options: Any) -> E.Call:
        for name in ("out_sinfo", "out_ty", "sinfo_args", "ty_args"):
            if name in options:
                options[name] = to_struct_infos(options[name])
        if "dtype" in options:
            options["dtype"] = _names(options["dtype"])
        return build(*map(to_struct_infos, args), **options)

    return apply


def _names(dtype: Any) -> Any:
    if isinstance(dtype, (list, tuple)):
        return [str(item) for item in dtype]
    return None if dtype is None else str(dtype)


def const(value: Any, dtype: Any = None) -> E.Constant:
    """A constant tensor."""
    return E.const(value, None if dtype is None else str(dtype))


def emit_te(func: Callable[..., Any], *args: Any, **options: Any) -> E.Call:
    """A call of the TensorIR function that the tensor expression `func` makes of the arguments."""
    raise DiagnosticError("R.emit_te stands in a script; elsewhere, BlockBuilder has emit_te")


_TYPED_CALLS = (
    "call_tir", "call_dps_packed", "call_tir_inplace", "call_inplace_packed", "call_packed",
    "call_pure_packed", "call_builtin_with_ctx", "call_py_func", "call_tir_with_grad",
)  # fmt: skip

NAMES: dict[str, Any] = {
    **TYPES,
    "emit_te": emit_te,
    "TupleGetItem": E.TupleGetItem,
    "ShapeExpr": E.ShapeExpr,
    "dataflow": lambda: DataflowFrame(),
    "output": lambda *values: Output(values),
    "func_attr": lambda attrs: Attributes(attrs),
    "match_cast": match_cast,
    **{name: _typed(getattr(op, name)) for name in _TYPED_CALLS},
    "const": const,
    "shape": lambda value: E.ShapeExpr(value),
    "prim_value": lambda value: E.PrimValue(value),
    "str": lambda value: E.StringImm(value),
    "dtype": lambda value: E.DataTypeImm(str(value)),
    "tuple": lambda *fields: E.Tuple([E.convert_to_expr(field) for field in fields]),
    "ExternFunc": E.ExternFunc,
}
