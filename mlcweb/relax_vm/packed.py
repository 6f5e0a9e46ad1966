"""Calls of registered functions: what they are given, and what they may give back.

They get NDArrays, integers, strings, shapes, and `Array`s for tuples. Where Python cannot reach the
memory of NDArrays in place, in a page, they get stand-ins: arrays whose elements are copied out
when the function first looks at them in place, and copied back when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

from mlcweb.ir.array import Array
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentTypeError
from mlcweb.runtime.module import PackedFunc
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.storage import Storage, allocate_on_host

SEQUENCES = (tuple, list, Array)
"""The types of tuples outside of the machine; shapes are of none of these."""

PYTHON_FUNCTIONS = "vm.py_func."
"""What is before the names of Python functions, which `R.call_py_func` calls, in the registry."""


def call_packed(
    name: str, function: Callable[..., object], arguments: Sequence[object], gives: bool = True
) -> object:
    """Call a function and check what it `gives`, unless it only writes its arguments."""
    if isinstance(function, PackedFunc):
        return function(*map(outward, arguments))
    lent: dict[int, tuple[NDArray, NDArray]] = {}
    result = function(*[_lent(outward(argument), lent) for argument in arguments])
    for _, stand_in in lent.values():
        if isinstance(stand_in.storage, StandIn):
            stand_in.storage.give_back()
    return inward(result, name, lent) if gives else None


def outward(value: object) -> object:
    """A value as programs see it: tuples are TVM's arrays."""
    return Array([outward(item) for item in value]) if type(value) is tuple else value


def nested(value: object) -> object:
    """A value of a program as the machine has it: lists and arrays are tuples."""
    if isinstance(value, (tuple, list)) and type(value) in SEQUENCES:
        return tuple([nested(item) for item in value])
    return value


def inward(
    value: object, name: str, lent: dict[int, tuple[NDArray, NDArray]] | None = None
) -> object:
    """What a function gave, as a value of the virtual machine."""
    if isinstance(value, (tuple, list)) and type(value) in SEQUENCES:
        return tuple(inward(item, name, lent) for item in value)
    if type(value).__module__.partition(".")[0] in ("numpy", "torch"):
        raise ArgumentTypeError(
            f'"{name}" gave {described(value)}, which is no NDArray: return tvm.nd.array(x), or '
            "tvm.nd.from_dlpack(x)"
        )
    for array, stand_in in (lent or {}).values():
        if value is stand_in:
            return array
    return value


def _lent(value: object, lent: dict[int, tuple[NDArray, NDArray]]) -> object:
    if isinstance(value, (list, Array)):
        items = [_lent(item, lent) for item in value]
        # A list of the caller's stays one: what is written to it is.
        return value if all(map(is_, items, value)) else type(value)(items)
    if not isinstance(value, NDArray) or value.storage.visible:
        return value
    key = id(value.storage)
    if key not in lent:
        stand_in = NDArray(value.shape, value.dtype, value.device, StandIn(value.storage))
        lent[key] = value, stand_in
    return lent[key][1]


class StandIn:
    """A `Storage` over another one that Python cannot see into."""

    __slots__ = ("_copy", "_original")

    visible = True

    def __init__(self, original: Storage) -> None:
        self._original = original
        self._copy: Storage | None = None

    @property
    def nbytes(self) -> int:
        return self._original.nbytes

    @property
    def address(self) -> int:
        return self._original.address

    @property
    def memory(self) -> object:
        return self

    def view(self) -> np.ndarray:
        if self._copy is None:
            self._copy = allocate_on_host(self.nbytes)
            self._copy.write(self._original.read())
        return self._copy.view()

    def read(self) -> np.ndarray:
        return self._original.read() if self._copy is None else self._copy.read()

    def write(self, data: np.ndarray) -> None:
        (self._original if self._copy is None else self._copy).write(data)

    def part(self, nbytes: int) -> Storage:
        raise NotImplementedError("Only memory that was allocated has parts")

    def give_back(self) -> None:
        """Copy back what may have been written in place."""
        if self._copy is not None:
            self._original.write(self._copy.read())
