"""The functions that TVM's virtual machine registers, `vm.builtin.…`, for programs that call them
by name (`R.call_packed("vm.builtin.copy", x)`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlcweb.relax_vm.builtins import null_value, shape_of, tensor_to_shape, truth
from mlcweb.relax_vm.packed import (
    MACHINE_FUNCTIONS,
    PYTHON_FUNCTIONS,
    call_packed,
    machine_function,
)
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.device import DEVICE_TYPES, Device
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine


@machine_function("copy", "ensure_zero_offset")
def _same(value: object) -> object:
    return value


@machine_function("invoke_debug_func")
def _debug(effect: object, name: str, place: str, *args: object) -> object:
    """Call a registered function with the place of the call in a model; gives back the effect."""
    call_packed(name, get_global_func(name), [place, *args], gives=False)
    return effect


@machine_function("debug_print")
def _debug_print(place: str, value: object) -> None:
    if isinstance(value, NDArray):
        value = f"shape = {value.shape}, dtype = {value.dtype}, data =\n{value.numpy()}"
    print(f"{place}: {value}")


@machine_function("register_py_func")
def _python_function(name: str, function: Callable[..., object]) -> None:
    """Let `R.call_py_func` call a function by a name, in all modules that have none of it."""
    register_func(PYTHON_FUNCTIONS + name, function, override=True)


@machine_function("get_py_func")
def _registered_python_function(name: str) -> Callable[..., object]:
    return get_global_func(PYTHON_FUNCTIONS + name)


@machine_function("call_py_func")
def _call_python_function(name: str, args: Sequence[object]) -> object:
    return call_packed(name, get_global_func(PYTHON_FUNCTIONS + name), list(args))


@machine_function("clear_py_func_registry")
def _forget_python_functions() -> None:
    for name in list_global_func_names():
        if name.startswith(PYTHON_FUNCTIONS):
            remove_global_func(name)


@machine_function("to_device")
def _to_device(tensor: NDArray, device_type: int, index: int) -> NDArray:
    """The tensor on a device, itself where it is there; TVM numbers the types of devices."""
    where = Device(_DEVICE_NAMES[device_type], index)
    return tensor if tensor.device == where else tensor.copyto(where)


_DEVICE_NAMES = {number: name for name, number in DEVICE_TYPES.items()}


@machine_function("memory_manager.clear")
def _clear_memory() -> None:
    """Memory goes with its last use, so there is none to give back."""


@machine_function("call_tir_dyn")
def _call_with_extents(
    machine: VirtualMachine, function: Callable[..., object], *args: object
) -> None:
    """Call a function with arguments of which the last, a shape, is its last numbers."""
    *tensors, extents = args
    assert isinstance(extents, (tuple, list))
    function(*tensors, *extents)


@dataclass(frozen=True)
class Storage:
    """Memory that tensors are put into. Each gets memory of its own: two that share a storage are
    not in use at the same time."""

    device: Device
    size: int
    """In bytes."""


@machine_function("alloc_storage")
def _storage(
    machine: VirtualMachine, shape: Sequence[int], device_index: int, dtype: str, *scope: str
) -> Storage:
    """As much as a tensor of a shape and type takes."""
    return Storage(machine.device, math.prod(shape) * dtypes.size_in_bytes(str(dtype)))


@machine_function("alloc_tensor")
def _tensor(
    storage: Storage, offset: int, shape: Sequence[int], dtype: str, *device_index: int
) -> NDArray:
    tensor = empty(tuple(shape), str(dtype), storage.device)
    if offset + tensor.nbytes > storage.size:
        raise ArgumentValueError(
            f"{described(tensor)} of {tensor.nbytes} bytes at {offset} does not fit into a storage "
            f"of {storage.size} bytes"
        )
    return tensor


@machine_function("make_closure")
def _closure(function: Callable[..., object], *captured: object) -> Callable[..., object]:
    """A function whose last arguments are given."""
    return lambda *args: function(*args, *captured)


@machine_function("invoke_closure")
def _invoke(machine: VirtualMachine, closure: Callable[..., object], *args: object) -> object:
    return closure(*args)


@machine_function("make_tuple")
def _tuple(*fields: object) -> tuple[object, ...]:
    return fields


@machine_function("tuple_getitem")
def _field(fields: Sequence[object], index: int) -> object:
    return fields[index]


@machine_function("tuple_reset_item")
def _reset_field(fields: list[object], index: int) -> None:
    """Let go of a field. A tuple that the program itself has made keeps it."""
    fields[index] = None


@machine_function("reshape")
def _reshape(tensor: NDArray, shape: Sequence[int]) -> NDArray:
    """The same elements in another shape; memory is shared."""
    result = NDArray(tuple(map(int, shape)), tensor.dtype, tensor.device, tensor.storage)
    if result.size != tensor.size:
        raise ArgumentValueError(
            f"{described(tensor)} cannot be reshaped to {result.shape}: it has {tensor.size} "
            f"elements, not {result.size}"
        )
    return result


@register_func("runtime.TVMTensorCreateView", override=True)
def _view(tensor: NDArray, shape: Sequence[int], dtype: str | None, byte_offset: int) -> NDArray:
    """The memory of a tensor, from a byte on, as another tensor; None leaves the dtype."""
    return tensor._create_view(shape, dtype and str(dtype), byte_offset)


MACHINE_FUNCTIONS[id(_view)] = _view


for _name, _function in (
    ("null_value", null_value), ("shape_of", shape_of), ("tensor_to_shape", tensor_to_shape),
    ("read_if_cond", truth),
):  # fmt: skip
    machine_function(_name)(_function)
