"""The functions that TVM's virtual machine registers, `vm.builtin.…`, for programs that call them
by name (`R.call_packed("vm.builtin.copy", x)`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlcweb.relax_vm.builtins import null_value, shape_of, tensor_to_shape, truth
from mlcweb.relax_vm.packed import PYTHON_FUNCTIONS
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.device import Device
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.runtime.registry import get_global_func, register_func
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine


@register_func("vm.builtin.copy", override=True)
@register_func("vm.builtin.ensure_zero_offset", override=True)
def _same(value: object) -> object:
    return value


@register_func("vm.builtin.invoke_debug_func", override=True)
def _debug(effect: object, name: str, place: str, *args: object) -> object:
    """Call a registered function with the place of the call in a model; gives back the effect."""
    get_global_func(name)(place, *args)
    return effect


@register_func("vm.builtin.debug_print", override=True)
def _debug_print(place: str, value: object) -> None:
    if isinstance(value, NDArray):
        value = f"shape = {value.shape}, dtype = {value.dtype}, data =\n{value.numpy()}"
    print(f"{place}: {value}")


@register_func("vm.builtin.register_py_func", override=True)
def _python_function(name: str, function: Callable[..., object]) -> None:
    """Let `R.call_py_func` call a function by a name, in all modules that have none of it."""
    register_func(PYTHON_FUNCTIONS + name, function, override=True)


@dataclass(frozen=True)
class Storage:
    """Memory that tensors are put into. Each gets memory of its own: two that share a storage are
    not in use at the same time."""

    device: Device
    size: int
    """In bytes."""


@register_func("vm.builtin.alloc_storage", override=True)
def _storage(
    machine: VirtualMachine, shape: Sequence[int], device_index: int, dtype: str, *scope: str
) -> Storage:
    """As much as a tensor of a shape and type takes."""
    return Storage(machine.device, math.prod(shape) * dtypes.size_in_bytes(str(dtype)))


@register_func("vm.builtin.alloc_tensor", override=True)
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


@register_func("vm.builtin.make_closure", override=True)
def _closure(function: Callable[..., object], *captured: object) -> Callable[..., object]:
    """A function whose last arguments are given."""
    return lambda *args: function(*args, *captured)


@register_func("vm.builtin.invoke_closure", override=True)
def _invoke(machine: VirtualMachine, closure: Callable[..., object], *args: object) -> object:
    return closure(*args)


@register_func("vm.builtin.make_tuple", override=True)
def _tuple(*fields: object) -> tuple[object, ...]:
    return fields


@register_func("vm.builtin.tuple_getitem", override=True)
def _field(fields: Sequence[object], index: int) -> object:
    return fields[index]


@register_func("vm.builtin.tuple_reset_item", override=True)
def _reset_field(fields: list[object], index: int) -> None:
    """Let go of a field. A tuple that the program itself has made keeps it."""
    fields[index] = None


@register_func("vm.builtin.reshape", override=True)
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


@register_func("vm.builtin.check_tensor_info", override=True)
def _check_tensor(value: object, ndim: int, *details: object) -> None:
    """Details: the dtype, which may be missing, and where the value is."""
    *dtypes, where = details
    if not isinstance(value, NDArray):
        raise ArgumentTypeError(f"{where} should be a tensor, but is {described(value)}")
    if ndim not in (-1, value.ndim):
        raise ArgumentValueError(f"{where} expects ndim {ndim}, but is {described(value)}")
    if dtypes and dtypes[0] and str(dtypes[0]) != value.dtype:
        raise ArgumentValueError(f"{where} expects dtype {dtypes[0]}, but is {described(value)}")


def _check_sequence(what: str) -> Callable[[object, int, str], None]:
    def check(value: object, count: int, where: str) -> None:
        if not isinstance(value, (tuple, list)):
            raise ArgumentTypeError(f"{where} should be a {what}, but is {described(value)}")
        if count not in (-1, len(value)):
            raise ArgumentValueError(f"{where} expects {count} of {what}, but has {len(value)}")

    return check


for _name, _function in (
    ("null_value", null_value), ("shape_of", shape_of), ("tensor_to_shape", tensor_to_shape),
    ("read_if_cond", truth), ("check_shape_info", _check_sequence("shape")),
    ("check_tuple_info", _check_sequence("tuple")),
):  # fmt: skip
    register_func(f"vm.builtin.{_name}", _function, override=True)
