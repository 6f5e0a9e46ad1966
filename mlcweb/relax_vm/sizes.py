"""Symbolic extents when a program runs: their values, and the check of values against what a
function says of its parameters."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

from mlcweb.codegen.numpy.evaluate import NotConstant, evaluate
from mlcweb.relax import dims
from mlcweb.relax import struct_info as S
from mlcweb.runtime.arguments import ArgumentDtypeError, ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.ndarray import NDArray
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.expr import Var as PrimVar


class ShapeTuple(tuple[int, ...]):
    """A shape as a value: a tuple of integers."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ShapeTuple({list(self)})"


def size(extent: PrimExpr, sizes: Mapping[PrimVar, int]) -> int | None:
    """The value of an extent; None where it depends on what has no value yet."""
    if isinstance(extent, IntImm):
        return extent.value
    try:
        return int(evaluate(extent, sizes))
    except NotConstant:
        return None


def known_sizes(
    extents: Sequence[PrimExpr], sizes: Mapping[PrimVar, int]
) -> tuple[int, ...] | None:
    """The values of extents; None where one of them is not known yet."""
    values = [size(extent, sizes) for extent in extents]
    return None if None in values else tuple(values)  # type: ignore[arg-type]


class Matching:
    """Checks values against struct infos, and learns the values of symbolic extents from them.

    An extent that is a variable alone takes the first value that it meets. Extents that are
    computed are compared by `finish`, when all variables have values.
    """

    def __init__(self, sizes: Mapping[PrimVar, int] | None = None) -> None:
        self.sizes: dict[PrimVar, int] = dict(sizes or {})
        self._source: dict[PrimVar, str] = {}
        self._later: list[tuple[PrimExpr, int, object, S.StructInfo, str]] = []

    def match(self, value: object, info: S.StructInfo | None, place: str) -> None:
        """Check one value. `place` says in messages what it is.

        Raises:
            ArgumentTypeError: it is of another kind.
            ArgumentDtypeError: it has other elements.
            ArgumentValueError: its shape is another.
        """
        if isinstance(info, S.TensorStructInfo):
            _tensor(self, value, info, place)
        elif isinstance(info, S.ShapeStructInfo):
            _shape(self, value, info, place)
        elif isinstance(info, S.PrimStructInfo):
            _prim(self, value, info, place)
        elif isinstance(info, S.TupleStructInfo):
            _tuple(self, value, info, place)
        elif isinstance(info, S.FuncStructInfo):
            _function(value, place)

    def finish(self) -> dict[PrimVar, int]:
        """The values of all extents; compares those that are computed from others."""
        for extent, actual, value, info, place in self._later:
            expected = size(extent, self.sizes)
            if expected is not None and expected != actual:
                raise self._mismatch(extent, expected, value, info, place)
        self._later.clear()
        return self.sizes

    def extent(
        self, extent: PrimExpr, actual: int, value: object, info: S.StructInfo, place: str
    ) -> None:
        if isinstance(extent, PrimVar) and extent not in self.sizes:
            self.sizes[extent] = actual
            self._source[extent] = place
            return
        if not isinstance(extent, (IntImm, PrimVar)):
            self._later.append((extent, actual, value, info, place))
            return
        expected = size(extent, self.sizes)
        assert expected is not None
        if expected != actual:
            raise self._mismatch(extent, expected, value, info, place)

    def _mismatch(
        self, extent: PrimExpr, expected: int, value: object, info: S.StructInfo, place: str
    ) -> ArgumentValueError:
        reason = ""
        if not isinstance(extent, IntImm):
            name = dims.extent_text(str(extent))
            first = self._source.get(extent) if isinstance(extent, PrimVar) else None
            source = f" as {first} has it" if first else ""
            reason = f", where {name} is {expected}{source}"
        return ArgumentValueError(f"{place} should be {info}{reason}, but is {described(value)}")


def _tensor(self: Matching, value: object, info: S.TensorStructInfo, place: str) -> None:
    if not isinstance(value, NDArray):
        hint = "; pass tvm.nd.array(x)" if hasattr(value, "__array__") else ""
        raise ArgumentTypeError(f"{place} should be {info}, but is {described(value)}{hint}")
    if info.dtype and value.dtype != info.dtype:
        raise ArgumentDtypeError(f"{place} should be {info}, but is {described(value)}")
    if info.ndim not in (-1, value.ndim):
        raise ArgumentValueError(
            f"{place} should be {info}, of ndim {info.ndim}, but is {described(value)}"
        )
    for extent, actual in zip(info.known_values or (), value.shape, strict=False):
        self.extent(extent, actual, value, info, place)


def _shape(self: Matching, value: object, info: S.ShapeStructInfo, place: str) -> None:
    if not isinstance(value, (tuple, list)) or not all(isinstance(n, int) for n in value):
        raise ArgumentTypeError(
            f"{place} should be {info}, but is {described(value)}; pass a ShapeTuple, or a tuple "
            "of integers"
        )
    if info.ndim not in (-1, len(value)):
        raise ArgumentValueError(f"{place} should be {info}, but is {described(value)}")
    for extent, actual in zip(info.values or (), value, strict=False):
        self.extent(extent, actual, value, info, place)


def _prim(self: Matching, value: object, info: S.PrimStructInfo, place: str) -> None:
    is_float = info.dtype.startswith(("float", "bfloat"))
    if not isinstance(value, numbers.Real if is_float else numbers.Integral):
        raise ArgumentTypeError(f"{place} should be {info}, but is {described(value)}")
    if info.value is not None and isinstance(value, numbers.Integral):
        self.extent(info.value, int(value), value, info, place)


def _tuple(self: Matching, value: object, info: S.TupleStructInfo, place: str) -> None:
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(f"{place} should be {info}, but is {described(value)}")
    if len(value) != len(info.fields):
        raise ArgumentValueError(f"{place} should be {info}, but has {len(value)} field(s)")
    for index, (item, field) in enumerate(zip(value, info.fields, strict=True)):
        self.match(item, field, f"field {index} of {place}")


def _function(value: object, place: str) -> None:
    if not callable(value):
        raise ArgumentTypeError(f"{place} should be a function, but is {described(value)}")


def described(value: object) -> str:
    """A value, for messages."""
    if isinstance(value, NDArray):
        return f"a tensor of shape {value.shape} and type {value.dtype}"
    if isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value):
        return f"the shape {tuple(value)}"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return repr(value)
    return f"a {type(value).__module__}.{type(value).__qualname__}"
