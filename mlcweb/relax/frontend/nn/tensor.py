"""Tensors of a model that is traced: each stands for an expression; parameters are weights."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.overloads import overloads
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder, BuilderError
from mlcweb.relax.constant_data import ArrayLike, detached
from mlcweb.relax.frontend.common import as_extents
from mlcweb.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.tir.expr import FloatImm, IntImm, PrimExpr
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb.runtime.ndarray import NDArray

Extent: TypeAlias = "int | str | PrimExpr"
"""An extent of a tensor; a string is the name of a symbolic one."""

Number: TypeAlias = "int | float | IntImm | FloatImm"

NUMBERS = (int, float, IntImm, FloatImm)

Operand: TypeAlias = "Tensor | Number"

_default_dtype = "float32"


def get_default_dtype() -> str:
    """The element type of parameters that say none: "float32" at first."""
    return _default_dtype


def set_default_dtype(dtype: str) -> None:
    """Set what `get_default_dtype` gives."""
    global _default_dtype
    _default_dtype = dtype


def builder() -> BlockBuilder:
    """The builder of the method that is being traced.

    Raises: BuilderError: none is.
    """
    current = BlockBuilder.current()
    if current is None:
        raise BuilderError(
            "Tensors are computed while a model is traced: call model.export_tvm(spec={...})"
        )
    return current


Wrapped: TypeAlias = Any
"""A Tensor or a tuple of what fields are wrapped to: the caller knows which."""


def wrap_nested(expr: E.Expr, name: str) -> Wrapped:
    """Bind an expression to a new variable and wrap it: a Tensor, or a tuple of what its fields
    are wrapped to."""
    if not isinstance(expr, E.DataflowVar):
        expr = builder().emit(expr, name)
    info = expr.struct_info
    if isinstance(info, TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, TupleStructInfo):
        fields = range(len(info.fields))
        return tuple(wrap_nested(E.TupleGetItem(expr, i), f"{name}.{i}") for i in fields)
    raise TypeError(f"{name} gives neither a tensor nor a tuple of tensors, but a {info}")


def _operators() -> ModuleType:
    from mlcweb.relax.frontend.nn import op

    return op


def _apply(name: str, a: Operand, b: Operand) -> Tensor:
    """An operator of two tensors; a number becomes a constant of the other's element type."""
    if isinstance(a, NUMBERS) and isinstance(b, Tensor):
        a = Tensor.from_scalar(a, b.dtype)
    elif isinstance(b, NUMBERS) and isinstance(a, Tensor):
        b = Tensor.from_scalar(b, a.dtype)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return NotImplemented
    return getattr(_operators(), name)(a, b)


_methods = overloads(_apply)


class Tensor:
    """A tensor that an expression gives. Operators and methods add to the method being traced."""

    _expr: E.Expr

    def __init__(self, *, _expr: E.Expr) -> None:
        info = _expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.values is None:
            raise TypeError(f"A tensor of nn needs a known shape, but it is a {info}")
        self._expr = _expr

    @staticmethod
    def from_const(data: ArrayLike) -> Tensor:
        """The constant with the values of an array."""
        return Tensor(_expr=E.const(data))

    @staticmethod
    def from_scalar(data: Number, dtype: str) -> Tensor:
        """The constant without dimensions."""
        number = data.value if isinstance(data, (IntImm, FloatImm)) else data
        return Tensor(_expr=E.const(number, dtype))

    @staticmethod
    @takes_newer_keywords
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> Tensor:
        """A new variable of a struct info."""
        return Tensor(_expr=E.Var(name, struct_info))

    from_ty = from_struct_info

    @staticmethod
    def placeholder(shape: Sequence[Extent], dtype: str, name: str = "tensor") -> Tensor:
        """A new variable. Strings among the extents name symbolic ones."""
        return Tensor(_expr=E.Var(name, TensorStructInfo(list(map(_extent, shape)), dtype)))

    @property
    def struct_info(self) -> TensorStructInfo:
        info = self._expr.struct_info
        assert isinstance(info, TensorStructInfo)
        return info

    @property
    def shape(self) -> list[int | PrimExpr]:
        """The extents; those that are known are of Python's int."""
        return as_extents(self.struct_info.values or ())

    @property
    def ndim(self) -> int:
        return self.struct_info.ndim

    @property
    def dtype(self) -> str:
        return self.struct_info.dtype

    def __repr__(self) -> str:
        return f'Tensor({self.shape}, "{self.dtype}")'

    __radd__ = __add__ = _methods("add")[0]
    __sub__, __rsub__ = _methods("subtract")
    __rmul__ = __mul__ = _methods("multiply")[0]
    __truediv__, __rtruediv__ = _methods("divide")
    __matmul__ = _methods("matmul")[0]
    __lt__ = _methods("less")[0]
    __le__ = _methods("less_equal")[0]
    __gt__ = _methods("greater")[0]
    __ge__ = _methods("greater_equal")[0]
    maximum = _methods("maximum")[0]
    minimum = _methods("minimum")[0]

    def __neg__(self) -> Tensor:
        return _operators().negative(self)

    def astype(self, dtype: str) -> Tensor:
        return _operators().astype(self, dtype)

    def reshape(self, *shape: int | PrimExpr | Sequence[int | PrimExpr]) -> Tensor:
        """Of another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
        return _operators().reshape(self, _one_or_several(shape))

    def permute_dims(self, *axes: int | Sequence[int]) -> Tensor:
        return _operators().permute_dims(self, _one_or_several(axes) if axes else None)

    def repeat(self, repeats: int, axis: int | None = None) -> Tensor:
        return _operators().repeat(self, repeats, axis)


def _one_or_several(values: tuple[object, ...]) -> object:
    nested = len(values) == 1 and isinstance(values[0], (list, tuple))
    return values[0] if nested else values


def _extent(value: Extent) -> int | PrimExpr:
    if isinstance(value, str):
        return PrimVar(value, "int64")
    if isinstance(value, (int, IntImm)):
        if int(value if isinstance(value, int) else value.value) < 0:
            raise ValueError(f"An extent is not negative, as {value} is")
        return value
    if isinstance(value, PrimExpr):
        return value
    raise TypeError(f"An extent is a number, a name or an expression, not {value!r}")


class Parameter(Tensor):
    """A weight of a model. `data` is its value, if it has one."""

    def __init__(self, shape: Sequence[Extent], dtype: str | None = None) -> None:
        placeholder = Tensor.placeholder(shape, dtype or get_default_dtype(), "param")
        super().__init__(_expr=placeholder._expr)
        self._data: NDArray | None = None
        self.attrs: dict[str, object] = {}

    @property
    def data(self) -> NDArray | None:
        """The value as an NDArray, or None."""
        return self._data

    @data.setter
    def data(self, data: ArrayLike | None) -> None:
        """Set the value: an array of NumPy, an NDArray, a tensor of PyTorch, or None.

        Raises: ValueError: it has another shape or element type.
        """
        if data is None:
            self._data = None
            return
        if not hasattr(data, "numpy") and not hasattr(data, "__array__"):
            raise TypeError(f"The value of a parameter is an array, not {type(data).__name__}")
        array = detached(data)
        if not hasattr(array, "layout"):
            array = provided("mlcweb.relax.frontend.common", "array")(array)
        if list(array.shape) != self.shape:
            raise ValueError(f"Shape mismatch: expected {tuple(self.shape)}, got {array.shape}")
        if str(array.dtype) != self.dtype:
            raise ValueError(f"Dtype mismatch: expected {self.dtype}, got {array.dtype}")
        self._data = array

    def to(self, dtype: str | None = None) -> None:
        """Change the element type of a parameter that has no value yet."""
        if dtype is None:
            return
        if self._data is not None:
            raise ValueError(
                "The parameter has a value, which would lose digits: change the element type first "
                "and set the value then"
            )
        self._expr = Tensor.placeholder(self.shape, dtype, "param")._expr


class Object:
    """What is no tensor, such as a cache that functions of the registry work on."""

    def __init__(self, *, _expr: E.Expr, _name: str) -> None:
        self._expr = _expr if isinstance(_expr, E.Var) else builder().emit(_expr, _name)
        if not isinstance(self._expr.struct_info, ObjectStructInfo):
            raise TypeError(f"{_name} is a {self._expr.struct_info}; wrap it by nn.wrap_nested")


def unwrapped(value: object) -> E.RelaxExpr:
    """What a method of a model gives, or takes, as an expression."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (tuple, list)):
        return E.Tuple([unwrapped(each) for each in value])
    if isinstance(value, (E.Expr, int, float, PrimExpr)):
        return E.convert_to_expr(value)
    raise TypeError(f"A method of a model gives tensors, not {type(value).__name__}")
