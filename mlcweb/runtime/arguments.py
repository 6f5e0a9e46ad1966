"""The check of a call's arguments against a function's signature, before anything runs."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.lower.parameters import RESULT
from mlcweb.runtime.device import Device
from mlcweb.runtime.ndarray import (
    Layout,
    NDArray,
    default_integer,
    empty,
    from_dlpack,
    layout_of,
)
from mlcweb.runtime.storage import BORROWED
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer, compact_strides, constant_shape, is_compact
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, Key, key_of, operands_of


class ArgumentTypeError(TVMError, TypeError):
    """A call with the wrong number or kind of arguments."""


class ArgumentValueError(TVMError, ValueError):
    """A call with arguments of the wrong size."""


class ArgumentDtypeError(ArgumentTypeError, ArgumentValueError):
    """A call with a tensor of other elements: an error of type for compiled functions of TVM, and
    one of value for its virtual machine."""


class Signature:
    """What a function takes. `check` returns the plain values that a kernel gets.

    `result` is the type of the number that the function returns, or None; a kernel takes an array
    for it as its last argument.
    """

    def __init__(self, name: str, func: PrimFunc, dev: Device) -> None:
        self.name = name
        self.function = func
        self.device = dev
        self.result = func.attrs.get(RESULT)
        params = func.params[:-1] if self.result else func.params
        self.parameters = [(param, func.buffer_map.get(param)) for param in params]
        self.noalias = bool(func.attrs.get("tir.noalias", False))
        self.written = written_parameters(func)
        self._exact = [_exact_type(buffer) for _, buffer in self.parameters]

    def __str__(self) -> str:
        shown = ", ".join(
            f'{buffer.name}: Tensor(({_shape_text(buffer)}), "{buffer.dtype}")'
            if buffer
            else f"{param.name}: {param.dtype}"
            for param, buffer in self.parameters
        )
        return f"{self.name}({shown})"

    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """A quick yes for different arrays of just the constant shapes that are declared. After a
        no, `check` and `shares_memory` know more."""
        if len(arguments) != len(self._exact):
            return False
        storages: set[int] = set()
        for array, exact in zip(arguments, self._exact, strict=True):
            if type(array) is not NDArray or (array.shape, array.dtype) != exact:
                return False
            if array.device is not self.device or array.layout.memory is BORROWED:
                return False
            storages.add(id(array.storage))
        return len(storages) == len(arguments)

    def layouts(self, memory: object) -> list[Layout] | None:
        """The layouts of the arrays that fit, if they lie in `memory`; None where a parameter is
        no array, or has a symbolic shape."""
        if any(exact is None for exact in self._exact):
            return None
        return [layout_of(*exact, self.device, memory) for exact in self._exact if exact]

    def check(self, arguments: tuple[Any, ...]) -> list[Any]:
        """The arrays, and plain numbers for scalars; an error that shows the signature."""
        if len(arguments) != len(self.parameters):
            raise ArgumentTypeError(
                f"Expected {len(self.parameters)} argument(s) but got {len(arguments)}"
                f" when calling\n  {self}"
            )
        sizes: dict[E.Var, int] = {}
        checked = list(arguments)
        # Scalars come first: the extents of arrays may be in terms of them.
        for position, (param, buffer) in enumerate(self.parameters):
            if buffer is None:
                checked[position] = self._scalar(position, param, arguments[position], sizes)
        # So may the extents of an array be in terms of those of another.
        for (_, buffer), argument in zip(self.parameters, arguments, strict=True):
            extents = buffer.shape if buffer is not None else ()
            for extent, size in zip(extents, getattr(argument, "shape", ()), strict=False):
                if isinstance(extent, E.Var):
                    sizes.setdefault(extent, int(size))
        for position, (_, buffer) in enumerate(self.parameters):
            if buffer is not None:
                checked[position] = self._array(position, buffer, arguments[position], sizes)
        return checked

    def shares_memory(self, arguments: Sequence[Any]) -> bool:
        """Whether a written array overlaps another argument; an error if the function is declared
        to have no aliases."""
        arrays = [
            (position, array)
            for position, array in enumerate(arguments)
            if isinstance(array, NDArray) and array.nbytes
        ]
        for (first, one), (second, other) in combinations(arrays, 2):
            if not {first, second} & self.written or not one.overlaps(other):
                continue
            if self.noalias:
                same = "are the same array" if one.storage is other.storage else "share memory"
                raise ArgumentValueError(
                    f'{self._name(first)} and {self._name(second)} {same}, but "{self.name}" is '
                    f'declared "tir.noalias" and writes it; pass a copy or remove the attribute\n'
                    f"  {self}"
                )
            return True
        return False

    def _name(self, position: int) -> str:
        param, buffer = self.parameters[position]
        return buffer.name if buffer else param.name

    def _place(self, position: int) -> str:
        return f"argument {position} ({self._name(position)}) when calling\n  {self}"

    def _array(self, position: int, buffer: Buffer, array: Any, sizes: dict[E.Var, int]) -> Any:
        if not isinstance(array, NDArray) and hasattr(array, "__dlpack__"):
            array = self._borrowed(position, array)
        if not isinstance(array, NDArray):
            hint = "; pass tvm.nd.array(x)" if hasattr(array, "__array__") else ""
            raise ArgumentTypeError(
                f"Expected an NDArray but got {type(array).__name__}{hint}: "
                + self._place(position)
            )
        array = array.numbers
        if array.dtype != buffer.dtype and self._is_default_integer(position, buffer, array):
            array = empty(array.shape, buffer.dtype, array.device).copyfrom(array.numpy())
        if array.dtype != buffer.dtype:
            raise ArgumentTypeError(
                f"Expected dtype {buffer.dtype} but got {array.dtype}: {self._place(position)}"
            )
        if array.device != self.device:
            raise ArgumentValueError(
                f"Expected an array on {self.device} but got one on {array.device}: "
                + self._place(position)
            )
        if len(array.shape) != len(buffer.shape):
            raise ArgumentValueError(
                f"Expected {len(buffer.shape)} dimension(s) but got shape {array.shape}: "
                + self._place(position)
            )
        index_type = buffer.shape[0].dtype if buffer.shape else "int64"
        if prod(array.shape) > dtypes.max_value(index_type):
            raise ArgumentValueError(
                f"An array of shape {array.shape} has more elements than an index of {index_type} "
                f"reaches: {self._place(position)}"
            )
        for axis, (extent, size) in enumerate(zip(buffer.shape, array.shape, strict=True)):
            expected = _expected(extent, size, sizes)
            if size != expected:
                raise ArgumentValueError(
                    f"Expected {buffer.name}.shape[{axis}] == {expected} but got shape "
                    f"{array.shape}: {self._place(position)}"
                )
        self._check_layout(position, buffer, array.shape, sizes)
        return array

    def _borrowed(self, position: int, tensor: Any) -> NDArray:
        """An array over the memory of a tensor of NumPy, or of another library."""
        try:
            array = from_dlpack(tensor)
        except (BufferError, TypeError, ValueError, TVMError) as error:
            raise ArgumentTypeError(
                f"Expected an NDArray but got {type(tensor).__name__}, which cannot be taken for "
                f"one ({error}): {self._place(position)}"
            ) from None
        if position in self.written and array.layout.memory is not BORROWED:
            raise ArgumentValueError(
                f"Expected a compact array that may be written: {self._place(position)}"
            )
        return array

    def _check_layout(
        self, position: int, buffer: Buffer, shape: tuple[int, ...], sizes: dict[E.Var, int]
    ) -> None:
        """Arrays are compact, and begin with their first element: a buffer of another layout would
        reach elements that are not there."""
        steps = compact_strides(shape)
        for axis, stride in enumerate(buffer.strides):
            step = steps[axis]
            expected = _expected(stride, step, sizes)
            if step != expected and shape[axis] > 1:
                raise ArgumentValueError(
                    f"Expected {buffer.name}.strides[{axis}] == {expected} but arrays are compact "
                    f"({step} for the shape {shape}): {self._place(position)}"
                )
        offset = _expected(buffer.elem_offset, 0, sizes)
        if offset != 0:
            raise ArgumentValueError(
                f"Expected {buffer.name}.elem_offset == {offset} but arrays begin at element 0: "
                + self._place(position)
            )

    def _is_default_integer(self, position: int, buffer: Buffer, array: NDArray) -> bool:
        """Whether an array has the integers of a host whose NumPy makes 32-bit ones by default,
        where programs written elsewhere mean 64 bits, and is only read."""
        wide, default = buffer.dtype == "int64", default_integer()
        return wide and array.dtype == default and position not in self.written

    def _scalar(self, position: int, param: E.Var, value: Any, sizes: dict[E.Var, int]) -> Any:
        if param.dtype == "handle":
            return value
        real = dtypes.is_float(param.dtype)
        kind: Any = numbers.Real if real else numbers.Integral
        fits = isinstance(value, kind)
        if not (fits or hasattr(value, "__index__")):
            raise ArgumentTypeError(
                f"Expected {param.dtype} but got {type(value).__name__} {value!r}: "
                + self._place(position)
            )
        if real:
            return float(value)
        number = int(bool(value) if dtypes.is_bool(param.dtype) else value)
        if number != dtypes.wrap_integer(number, param.dtype):
            raise ArgumentValueError(
                f"{number} does not fit {param.dtype}: {self._place(position)}"
            )
        sizes.setdefault(param, number)
        return number


def _shape_text(buffer: Buffer) -> str:
    texts = [str(extent) for extent in buffer.shape]
    return ", ".join(texts) + ("," if len(texts) == 1 else "")


def _exact_type(buffer: Buffer | None) -> tuple[tuple[int, ...], str] | None:
    """Shape and element type of a parameter of constant shape, laid out as arrays are."""
    shape = constant_shape(buffer) if buffer is not None else None
    if buffer is None or shape is None:
        return None
    if not is_compact(buffer):
        return None
    starts = isinstance(buffer.elem_offset, E.Var) or constant_value(buffer.elem_offset) == 0
    return (shape, buffer.dtype) if starts else None


def _chosen(condition: int, a: int, b: int) -> int:
    return a if condition else b


_LOGIC: Mapping[Key, Callable[..., Any]] = {
    E.And: lambda a, b: a and b,
    E.Or: lambda a, b: a or b,
    E.Select: _chosen,
    "if_then_else": _chosen,
}
"""The values of operators that the table of operators folds for no constants."""


def _expected(extent: E.PrimExpr, size: int, sizes: dict[E.Var, int]) -> int:
    """The size that a dimension should have; a symbol takes the first size that it meets. What is
    not known may be any size."""
    if isinstance(extent, E.Var):
        return sizes.setdefault(extent, size)
    value = _value(extent, sizes)
    return size if value is None else value


def _value(extent: E.PrimExpr, sizes: Mapping[E.Var, int]) -> int | None:
    if isinstance(extent, E.IntImm):
        return extent.value
    if isinstance(extent, E.Var):
        return sizes.get(extent)
    key = key_of(extent)
    fold = _LOGIC.get(key) or (OPERATORS[key].fold if key in OPERATORS else None)
    if fold is None:
        return None
    values = [_value(part, sizes) for part in operands_of(extent)]
    return None if None in values else fold(*values)


def written_parameters(func: PrimFunc) -> set[int]:
    """The positions of the parameters that the function may write."""
    source_of = {
        match.buffer.data: match.source.buffer.data
        for block in find_nodes(func.body, S.Block)
        for match in block.match_buffers
    }
    written: set[E.Var] = set()

    def mark(data: E.Var) -> None:
        while data in source_of:
            data = source_of[data]
        written.add(data)

    for item in walk(func.body):
        if isinstance(item, S.BufferStore):
            mark(item.buffer.data)
        elif isinstance(item, E.Call):
            for argument in item.args:
                if isinstance(argument, E.Var) and argument.dtype == "handle":
                    mark(argument)
    return {
        position
        for position, param in enumerate(func.params)
        if param in func.buffer_map and func.buffer_map[param].data in written
    }
