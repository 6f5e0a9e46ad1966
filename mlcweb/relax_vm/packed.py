"""Calls of registered functions: what they are given, and what they may give back.

They get NDArrays, integers, strings, shapes, and `Array`s for tuples. Where Python cannot reach the
memory of NDArrays in place, in a page, they get stand-ins: arrays whose elements are copied out
when the function first looks at them in place, and copied back when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

from mlcweb.ir.array import Array
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentTypeError
from mlcweb.runtime.module import PackedFunc
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.registry import register_func
from mlcweb.runtime.storage import Storage, StorageView, allocate_on_host

SEQUENCES = (tuple, list, Array)
"""The types of tuples outside of the machine; shapes are of none of these."""

_F = TypeVar("_F", bound=Callable[..., object])

MACHINE_FUNCTIONS: dict[int, object] = {}
"""Registered functions of the machine itself, by identity. They look at no memory in place, so
they get arrays as they are, on a GPU, too."""

PYTHON_FUNCTIONS = "vm.py_func."
"""What is before the names of Python functions, which `R.call_py_func` calls, in the registry."""


def machine_function(*names: str) -> Callable[[_F], _F]:
    """Register a function of the machine as `vm.builtin.` and each name."""

    def register(function: _F) -> _F:
        for name in names:
            register_func(f"vm.builtin.{name}", function, override=True)
        MACHINE_FUNCTIONS[id(function)] = function
        return function

    return register


def call_packed(
    name: str, function: Callable[..., object], arguments: Sequence[object], gives: bool = True
) -> object:
    """Call a function and check what it `gives`, unless it only writes its arguments."""
    if isinstance(function, PackedFunc):
        return function(*map(outward, arguments))
    if id(function) in MACHINE_FUNCTIONS:
        return inward(function(*map(outward, arguments)), name)
    lent = Lent()
    result = function(*[_lent(outward(argument), lent) for argument in arguments])
    lent.give_back()
    return inward(result, name, lent) if gives else None


class Lent:
    """The arrays that a call is given instead of others, and the memory of these, by identity."""

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[NDArray, NDArray]] = {}
        self.storages: dict[int, StandIn] = {}

    def stand_in(self, array: NDArray) -> NDArray:
        if id(array) not in self.arrays:
            view = array.storage if isinstance(array.storage, StorageView) else None
            whole = array.storage if view is None else view.whole
            storage = self.storages.setdefault(id(whole), StandIn(whole))
            shown = storage if view is None else StorageView(storage, view.start, view.nbytes)
            other = NDArray(array.shape, array.dtype, array.device, shown)
            self.arrays[id(array)] = array, other
        return self.arrays[id(array)][1]

    def give_back(self) -> None:
        """Copy back what may have been written in place."""
        for storage in self.storages.values():
            storage.give_back()

    def compiled(self, function: PackedFunc) -> Callable[..., object]:
        """A compiled function that takes these arrays for those that they stand for."""

        def call(*args: object) -> object:
            self.give_back()
            result = function(*[_returned(a) if isinstance(a, NDArray) else a for a in args])
            for storage in self.storages.values():
                storage.refresh()
            return result

        return call


def outward(value: object) -> object:
    """A value as programs see it: tuples are TVM's arrays."""
    return Array([outward(item) for item in value]) if type(value) is tuple else value


def nested(value: object) -> object:
    """A value of a program as the machine has it: lists and arrays are tuples."""
    if isinstance(value, (tuple, list)) and type(value) in SEQUENCES:
        return tuple([nested(item) for item in value])
    return value


def inward(value: object, name: str, lent: Lent | None = None) -> object:
    """What a function gave, as a value of the virtual machine."""
    if isinstance(value, (tuple, list)) and type(value) in SEQUENCES:
        return tuple(inward(item, name, lent) for item in value)
    if type(value).__module__.partition(".")[0] in ("numpy", "torch"):
        raise ArgumentTypeError(
            f'"{name}" gave {described(value)}, which is no NDArray: return tvm.nd.array(x), or '
            "tvm.nd.from_dlpack(x)"
        )
    for array, stand_in in lent.arrays.values() if lent else ():
        if value is stand_in:
            return array
    return _returned(value) if isinstance(value, NDArray) else value


def _returned(array: NDArray) -> NDArray:
    """An array that a function made of the memory of a stand-in, over the memory it stands for."""
    storage = array.storage
    if isinstance(storage, StorageView) and isinstance(storage.whole, StandIn):
        storage = StorageView(storage.whole.original, storage.start, storage.nbytes)
    elif isinstance(storage, StandIn):
        storage = storage.original
    else:
        return array
    return NDArray(array.shape, array.dtype, array.device, storage)


def _lent(value: object, lent: Lent) -> object:
    if isinstance(value, (list, Array)):
        items = [_lent(item, lent) for item in value]
        # A list of the caller's stays one: what is written to it is.
        return value if all(map(is_, items, value)) else type(value)(items)
    if isinstance(value, PackedFunc):
        return lent.compiled(value)
    if not isinstance(value, NDArray) or value.storage.visible:
        return value
    return lent.stand_in(value)


class StandIn:
    """A `Storage` over another one that Python cannot see into."""

    __slots__ = ("_copy", "original")

    visible = True

    def __init__(self, original: Storage) -> None:
        self.original = original
        self._copy: Storage | None = None

    @property
    def nbytes(self) -> int:
        return self.original.nbytes

    @property
    def address(self) -> int:
        return self.original.address

    @property
    def memory(self) -> object:
        return self

    def view(self) -> np.ndarray:
        if self._copy is None:
            self._copy = allocate_on_host(self.nbytes)
            self._copy.write(self.original.read())
        return self._copy.view()

    def read(self) -> np.ndarray:
        return self.original.read() if self._copy is None else self._copy.read()

    def write(self, data: np.ndarray) -> None:
        (self.original if self._copy is None else self._copy).write(data)

    def part(self, nbytes: int) -> Storage:
        raise NotImplementedError("Only memory that was allocated has parts")

    def give_back(self) -> None:
        """Copy back what may have been written in place."""
        if self._copy is not None:
            self.original.write(self._copy.read())

    def refresh(self) -> None:
        """Let views show what the original holds."""
        if self._copy is not None:
            self._copy.write(self.original.read())
