"""Comparing struct infos: what includes what, what two have in common, what a call gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from mlcweb.ir.dialect import also_named
from mlcweb.ir.structural import structural_equal
from mlcweb.relax import dims
from mlcweb.relax.errors import DTypeError
from mlcweb.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    extent,
)  # fmt: skip
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb.relax.block_builder import BlockBuilder
    from mlcweb.relax.deduction import Context
    from mlcweb.relax.expr import Call, Expr
    from mlcweb.relax.struct_info import Extent

Shaped: TypeAlias = ShapeStructInfo | TensorStructInfo


class BaseCheckResult(IntEnum):
    """How a struct info compares with a base.

    FAIL_L0: no value fits both. FAIL_L1: some may, after a check of type. FAIL_L2: the kind fits,
    the shape needs a check at run time. PASS: every value fits.
    """

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


Result = BaseCheckResult
FAIL_L0, FAIL_L1, FAIL_L2, PASS = Result
Extents = Callable[[PrimExpr, PrimExpr], BaseCheckResult]


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """Whether `base` includes `derived`."""
    return _check(base, derived, _compare_extents)


def is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether every value that `derived` describes is surely one that `base` describes."""
    return struct_info_base_check(base, derived) == PASS


StructInfo.is_base_of = is_base_of


def unify(
    base: StructInfo, derived: StructInfo, values: dict[PrimVar, PrimExpr]
) -> BaseCheckResult:
    """Whether `base` includes `derived`, with its symbolic extents standing for `values`. One that
    has no value yet takes, and adds to `values`, the extent that it meets first."""

    def extents(expected: PrimExpr, actual: PrimExpr) -> BaseCheckResult:
        if isinstance(expected, PrimVar) and expected not in values:
            values[expected] = actual
            return PASS
        return _compare_extents(dims.substitute_extents(expected, values), actual)

    return _check(base, derived, extents)


def _compare_extents(base: PrimExpr, derived: PrimExpr) -> BaseCheckResult:
    if dims.equal(base, derived):
        return PASS
    return FAIL_L0 if dims.differ(base, derived) else FAIL_L2


def _check(base: StructInfo, derived: StructInfo, extents: Extents) -> BaseCheckResult:
    if isinstance(base, ObjectStructInfo):
        return PASS
    if isinstance(derived, ObjectStructInfo):
        return FAIL_L1
    if type(base) is not type(derived):
        return FAIL_L0
    return _CHECKS[type(base)](base, derived, extents)


def _check_prim(base: PrimStructInfo, derived: PrimStructInfo, extents: Extents) -> BaseCheckResult:
    if base.dtype != derived.dtype:
        return FAIL_L0
    if base.value is None:
        return PASS
    return FAIL_L2 if derived.value is None else extents(base.value, derived.value)


def _check_ndim(base: Shaped, derived: Shaped) -> BaseCheckResult:
    if base.ndim == -1 or base.ndim == derived.ndim:
        return PASS
    return FAIL_L1 if derived.ndim == -1 else FAIL_L0


def _check_values(
    base: tuple[PrimExpr, ...] | None, derived: tuple[PrimExpr, ...] | None, extents: Extents
) -> BaseCheckResult:
    if base is None:
        return PASS
    if derived is None:
        return FAIL_L2
    return min(map(extents, base, derived), default=PASS)


def _check_shape(
    base: ShapeStructInfo, derived: ShapeStructInfo, extents: Extents
) -> BaseCheckResult:
    by_rank = _check_ndim(base, derived)
    return by_rank if by_rank is not PASS else _check_values(base.values, derived.values, extents)


def _check_tensor(
    base: TensorStructInfo, derived: TensorStructInfo, extents: Extents
) -> BaseCheckResult:
    dtype = PASS
    if base.dtype and base.dtype != derived.dtype:
        dtype = FAIL_L0 if derived.dtype else FAIL_L1
    ndim = _check_ndim(base, derived)
    kind = min(dtype, ndim, _check_device(base.vdevice, derived.vdevice))
    if kind is not PASS:
        return kind
    if base.shape is None or base.shape is derived.shape:
        return PASS
    if base.values is None:
        return FAIL_L2
    return _check_values(base.values, derived.values, extents)


def _check_device(base: object, derived: object) -> BaseCheckResult:
    """A base without a device, or with one without a target, includes tensors of all devices."""
    if getattr(base, "target", base) is None:
        return PASS
    if getattr(derived, "target", derived) is None:
        return FAIL_L1
    return PASS if base == derived else FAIL_L0


def _check_tuple(
    base: TupleStructInfo, derived: TupleStructInfo, extents: Extents
) -> BaseCheckResult:
    if len(base.fields) != len(derived.fields):
        return FAIL_L0
    checks = [_check(b, d, extents) for b, d in zip(base.fields, derived.fields, strict=True)]
    return min(checks, default=PASS)


def _check_function(
    base: FuncStructInfo, derived: FuncStructInfo, extents: Extents
) -> BaseCheckResult:
    if base.purity and not derived.purity:
        return FAIL_L0
    if base.params is None:
        return PASS
    if derived.params is None:
        return FAIL_L1
    if len(base.params) != len(derived.params):
        return FAIL_L0
    if base == derived:  # with extents of the same use, which each has for itself
        return PASS
    pairs = zip(base.params, derived.params, strict=True)
    checks = [struct_info_base_check(b, d) for b, d in pairs]
    return min([*checks, struct_info_base_check(base.ret, derived.ret)])


_CHECKS: dict[type, Callable[..., BaseCheckResult]] = {
    PrimStructInfo: _check_prim,
    ShapeStructInfo: _check_shape,
    TensorStructInfo: _check_tensor,
    TupleStructInfo: _check_tuple,
    FuncStructInfo: _check_function,
}


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """The narrowest struct info that includes both."""
    if type(lhs) is not type(rhs) or isinstance(lhs, ObjectStructInfo):
        return ObjectStructInfo()
    return _COMMON[type(lhs)](lhs, rhs)


def _common_prim(a: PrimStructInfo, b: PrimStructInfo) -> StructInfo:
    if a.dtype != b.dtype:
        return ObjectStructInfo()
    same = a.value is not None and b.value is not None and dims.equal(a.value, b.value)
    return a if same else PrimStructInfo(a.dtype)


def _common_values(a: Shaped, b: Shaped) -> Sequence[PrimExpr] | None:
    if a.values is None or b.values is None or not dims.same_shape(a.values, b.values):
        return None
    return a.values


def _common_shape(a: ShapeStructInfo, b: ShapeStructInfo) -> StructInfo:
    return ShapeStructInfo(_common_values(a, b), a.ndim if a.ndim == b.ndim else -1)


def _common_tensor(a: TensorStructInfo, b: TensorStructInfo) -> StructInfo:
    dtype = a.dtype if a.dtype == b.dtype else ""
    if a.shape is not None and a.shape is b.shape:
        return TensorStructInfo(a.shape, dtype)
    ndim = a.ndim if a.ndim == b.ndim else -1
    return TensorStructInfo(_common_values(a, b), dtype, ndim=ndim)


def _common_tuple(a: TupleStructInfo, b: TupleStructInfo) -> StructInfo:
    if len(a.fields) != len(b.fields):
        return ObjectStructInfo()
    return TupleStructInfo(
        [struct_info_lca(*pair) for pair in zip(a.fields, b.fields, strict=True)]
    )


def _common_function(a: FuncStructInfo, b: FuncStructInfo) -> StructInfo:
    if a == b:  # with extents of the same use, which each has for itself
        return a
    purity, ret = a.purity and b.purity, struct_info_lca(a.ret, b.ret)
    if a.params is None or b.params is None or len(a.params) != len(b.params):
        return FuncStructInfo.opaque_func(ret=ret, purity=purity)
    params = [struct_info_lca(*pair) for pair in zip(a.params, b.params, strict=True)]
    return FuncStructInfo(params, ret, purity)


_COMMON: dict[type, Callable[..., StructInfo]] = {
    PrimStructInfo: _common_prim,
    ShapeStructInfo: _common_shape,
    TensorStructInfo: _common_tensor,
    TupleStructInfo: _common_tuple,
    FuncStructInfo: _common_function,
}


@also_named(ty="info", sinfo="info")
def tir_vars_in_struct_info(info: StructInfo) -> list[PrimVar]:
    """The symbolic extents that occur, each once."""
    return list(dict.fromkeys(dims.prim_vars(info)))


@also_named(ty="info", sinfo="info")
def definable_tir_vars_in_struct_info(info: StructInfo) -> list[PrimVar]:
    """The symbolic extents that are extents of their own, which a value determines."""
    if isinstance(info, TupleStructInfo):
        variables = [var for part in info.fields for var in definable_tir_vars_in_struct_info(part)]
    elif isinstance(info, (TensorStructInfo, ShapeStructInfo)):
        variables = [value for value in info.values or () if isinstance(value, PrimVar)]
    elif isinstance(info, PrimStructInfo):
        variables = [info.value] if isinstance(info.value, PrimVar) else []
    elif isinstance(info, FuncStructInfo):
        variables = definable_tir_vars_in_struct_info(TupleStructInfo(info.params or ()))
    else:
        variables = []
    return list(dict.fromkeys(variables))


@also_named(ty="info", sinfo="info")
def collect_non_negative_expressions(info: StructInfo) -> list[PrimExpr]:
    """The symbolic extents of tensors and shapes, each once, which no value makes negative."""
    exprs: list[PrimExpr] = []
    for part in _parts(info):
        for value in getattr(part, "values", None) or ():
            if not isinstance(value, IntImm) and not any(structural_equal(value, x) for x in exprs):
                exprs.append(value)
    return exprs


@also_named(ty="info", sinfo="info")
def get_static_type(info: StructInfo) -> StructInfo:
    """What is known of a value without its extents: kinds, element types, numbers of dimensions."""
    if isinstance(info, TensorStructInfo):
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    if isinstance(info, ShapeStructInfo):
        return ShapeStructInfo(ndim=info.ndim)
    if isinstance(info, PrimStructInfo):
        return PrimStructInfo(info.dtype)
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([get_static_type(field) for field in info.fields])
    if isinstance(info, FuncStructInfo) and info.params is not None:
        params = [get_static_type(param) for param in info.params]
        return FuncStructInfo(params, get_static_type(info.ret), info.purity)
    return info


def _parts(info: StructInfo) -> Iterator[StructInfo]:
    """A struct info and, in order, those in it."""
    yield info
    inner: tuple[StructInfo, ...] = ()
    if isinstance(info, FuncStructInfo):
        inner = (*(info.params or ()), info.ret)
    elif isinstance(info, TupleStructInfo):
        inner = info.fields
    for part in inner:
        yield from _parts(part)


@also_named(ty="info", sinfo="info")
def erase_to_well_defined(
    info: StructInfo,
    shape_var_map: Mapping[PrimVar, Extent] | None = None,
    var_map: Mapping[Expr, Expr] | None = None,
) -> StructInfo:
    """`info` with symbolic extents replaced by the map; a shape with others loses its extents.

    Shapes that are variables are replaced by `var_map`, or become unknown.
    """
    values = {var: extent(value) for var, value in (shape_var_map or {}).items()}
    variables = var_map or {}
    return erase(info, lambda var: var in values, lambda var: var in variables, values, variables)


def erase(
    info: StructInfo,
    knows: Callable[[PrimVar], bool],
    knows_shape: Callable[[Expr], bool],
    values: Mapping[PrimVar, PrimExpr] | None = None,
    variables: Mapping[Expr, Expr] | None = None,
) -> StructInfo:
    """`info` as it is seen where only some variables are known."""

    def visible(part: StructInfo) -> StructInfo:
        if isinstance(part, TupleStructInfo):
            fields = tuple(visible(field) for field in part.fields)
            same = all(a is b for a, b in zip(fields, part.fields, strict=True))
            return part if same else TupleStructInfo(fields)
        if isinstance(part, ShapeStructInfo):
            if part.values is None or all(map(knows, dims.prim_vars(part))):
                return dims.substitute_extents(part, values or {})
            return ShapeStructInfo(ndim=part.ndim)
        return tensor(part) if isinstance(part, TensorStructInfo) else part

    def tensor(part: TensorStructInfo) -> StructInfo:
        if part.values is not None:
            if all(map(knows, dims.prim_vars(part))):
                return dims.substitute_extents(part, values or {})
        elif part.shape is None:
            return part
        elif knows_shape(part.shape):
            shape = (variables or {}).get(part.shape, part.shape)
            return part if shape is part.shape else TensorStructInfo(shape, part.dtype)
        return TensorStructInfo(None, part.dtype, part.vdevice, part.ndim)

    return visible(info)


@also_named(func_ty="info", func_sinfo="info", ctx="context")
def derive_call_ret_struct_info(
    info: FuncStructInfo, call: Call, context: BlockBuilder | Context | None = None
) -> StructInfo:
    """What a call of a function gives: its parameters' symbolic extents take the arguments' values.
    The builder or context knows the functions of the module.

    Raises: DTypeError (a TypeError) that names the argument that does not fit.
    """
    from mlcweb.relax.deduction import Context

    scope = getattr(context, "context", context)
    if not isinstance(scope, Context):
        scope = Context()
    if info.params is None:
        return info.ret if info.derive_func is None else info.derive_func(call, scope)
    name = getattr(call.op, "name_hint", "the function")
    if len(call.args) != len(info.params):
        raise DTypeError(
            f"{name} takes {len(info.params)} argument(s); the call has {len(call.args)}"
        )
    values: dict[PrimVar, PrimExpr] = {}
    for number, (param, arg) in enumerate(zip(info.params, call.args, strict=True)):
        actual = scope.struct_info(arg)
        if unify(param, actual, values) <= FAIL_L1:
            raise DTypeError(
                f"{name}: argument {number} type mismatch: expected {param}, given {actual}"
            )
    return erase_to_well_defined(info.ret, values)
