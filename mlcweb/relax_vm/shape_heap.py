"""The heap of shapes of TVM's bytecode: `vm.builtin.match_shape` stores extents of arguments in an
array, `make_shape` makes shapes of it, and `check_…` refuse arguments of another kind.

What is done with an extent is said by a code and an operand, which is an extent or where one lies
in the heap.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.relax_vm.packed import machine_function
from mlcweb.relax_vm.sizes import ShapeTuple, described
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.ndarray import NDArray, array
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine

# What is done with an extent that comes, and where one that is needed comes from; TVM's codes.
_EQUALS, _STORE, _IGNORE, _EQUALS_STORED = range(4)
_NUMBER, _STORED = range(2)


@machine_function("alloc_shape_heap")
def alloc_shape_heap(machine: VirtualMachine, size: int) -> NDArray:
    """Room for extents, which lies with the processor."""
    import numpy as np

    return array(np.zeros(size, "int64"))


@machine_function("match_shape")
def match_shape(value: object, heap: NDArray | None, size: int, *details: Any) -> None:
    """Check and store the extents of a tensor or shape. Details: code and operand of each, and
    where the value is."""
    place = _place(*details[2 * size :])
    shape = value.shape if isinstance(value, NDArray) else value
    if not isinstance(shape, (tuple, list)):
        raise ArgumentTypeError(f"{place} should be a tensor or shape, {_but(value)}")
    if len(shape) != size:
        raise ArgumentValueError(f"{place} should have {size} dimension(s), {_but(value)}")
    for axis, extent in enumerate(shape):
        code, operand = details[2 * axis : 2 * axis + 2]
        _match(int(extent), heap, code, operand, f"{place}, dimension {axis},")


@machine_function("match_prim_value")
def match_prim_value(
    value: object, heap: NDArray | None, code: int, operand: int, where: object = None
) -> None:
    """Check and store a number."""
    if not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"{_place(where)} should be an integer, {_but(value)}")
    _match(int(value), heap, code, operand, _place(where))


def _match(extent: int, heap: NDArray | None, code: int, operand: int, place: str) -> None:
    if code == _IGNORE:
        return
    if code == _STORE:
        _checked(heap)[operand] = extent
        return
    expected = operand if code == _EQUALS else int(_checked(heap)[operand])
    if extent != expected:
        raise ArgumentValueError(f"{place} should be {expected}, but is {extent}")


@machine_function("make_shape")
def make_shape(heap: NDArray | None, size: int, *steps: int) -> ShapeTuple:
    """A shape of numbers and of stored extents."""
    codes, operands = steps[0 : 2 * size : 2], steps[1 : 2 * size : 2]
    return ShapeTuple(make_prim_value(heap, *step) for step in zip(codes, operands, strict=True))


@machine_function("make_prim_value")
def make_prim_value(heap: NDArray | None, code: int, operand: int) -> int:
    """A number, or one that is stored."""
    return operand if code == _NUMBER else int(_checked(heap)[operand])


def _checked(heap: NDArray | None) -> NDArray:
    if heap is None:
        raise ArgumentTypeError("Extents are stored in a heap of alloc_shape_heap; there is none")
    return heap


@machine_function("check_tensor_info")
def check_tensor(value: object, ndim: int, *details: object) -> None:
    """Details: the dtype, which may be missing, and where the value is."""
    *types, where = details
    if not isinstance(value, NDArray):
        raise ArgumentTypeError(f"{_place(where)} should be a tensor, {_but(value)}")
    if ndim not in (-1, value.ndim):
        raise ArgumentValueError(f"{_place(where)} expects ndim {ndim}, {_but(value)}")
    if types and types[0] and str(types[0]) not in (value.dtype, "void"):
        raise ArgumentValueError(f"{_place(where)} expects dtype {types[0]}, {_but(value)}")


def _check_sequence(name: str, what: str) -> None:
    @machine_function(name)
    def check(value: object, count: int, where: object = None) -> None:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ArgumentTypeError(f"{_place(where)} should be a {what}, {_but(value)}")
        if count not in (-1, len(value)):
            raise ArgumentValueError(f"{_place(where)} expects {count} of {what}, {_but(value)}")


_check_sequence("check_shape_info", "shape")
_check_sequence("check_tuple_info", "tuple")


@machine_function("check_prim_value_info")
def check_number(value: object, dtype: str, where: object = None) -> None:
    """A number is of the kind that a type has: a truth value, a float, or an integer."""
    kind = dtypes.kind(str(dtype))
    expected = {"bool": (bool, int), "float": numbers.Real, "bfloat": numbers.Real}
    if not isinstance(value, expected.get(kind, numbers.Integral)):
        raise ArgumentTypeError(f"{_place(where)} should be a number of {dtype}, {_but(value)}")


@machine_function("check_string_info")
def check_string(value: object, where: object = None) -> None:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{_place(where)} should be a string, {_but(value)}")


@machine_function("check_func_info")
def check_function(value: object, where: object = None) -> None:
    if not callable(value):
        raise ArgumentTypeError(f"{_place(where)} should be a function, {_but(value)}")


def _place(where: object = None) -> str:
    return str(where or "A value")


def _but(value: object) -> str:
    return f"but is {described(value)}"
