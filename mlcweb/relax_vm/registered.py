"""The functions that TVM's virtual machine registers, `vm.builtin.…`, for programs that call them
by name (`R.call_packed("vm.builtin.copy", x)`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.relax_vm.builtins import BUILTINS, truth
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.registry import register_func


def _reshape(tensor: NDArray, shape: Sequence[int]) -> NDArray:
    """The same elements in another shape; memory is shared."""
    result = NDArray(tuple(map(int, shape)), tensor.dtype, tensor.device, tensor.storage)
    if result.size != tensor.size:
        raise ArgumentValueError(
            f"{described(tensor)} cannot be reshaped to {result.shape}: it has {tensor.size} "
            f"elements, not {result.size}"
        )
    return result


def _is(kind: type | tuple[type, ...], what: str) -> Callable[..., None]:
    def check(value: Any, *details: Any) -> None:
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"{details[-1]} should be {what}, but is {described(value)}")

    return check


def _check_tensor(value: Any, ndim: int, *details: Any) -> None:
    """Details: the dtype, which may be missing, and where the value is."""
    *dtypes, where = details
    _is(NDArray, "a tensor")(value, where)
    if ndim not in (-1, value.ndim):
        raise ArgumentValueError(f"{where} expects ndim {ndim}, but is {described(value)}")
    if dtypes and dtypes[0] and str(dtypes[0]) != value.dtype:
        raise ArgumentValueError(f"{where} expects dtype {dtypes[0]}, but is {described(value)}")


def _check_sequence(what: str) -> Callable[[Any, int, str], None]:
    def check(value: Any, count: int, where: str) -> None:
        _is((tuple, list), f"a {what}")(value, where)
        if count not in (-1, len(value)):
            raise ArgumentValueError(f"{where} expects {count} of {what}, but has {len(value)}")

    return check


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "copy": lambda value: value,
    "ensure_zero_offset": lambda tensor: tensor,
    "reshape": _reshape,
    "shape_of": BUILTINS["relax.shape_of"],
    "tensor_to_shape": BUILTINS["relax.tensor_to_shape"],
    "null_value": BUILTINS["relax.null_value"],
    "read_if_cond": truth,
    "make_tuple": lambda *fields: fields,
    "tuple_getitem": lambda fields, index: fields[index],
    "check_tensor_info": _check_tensor,
    "check_shape_info": _check_sequence("shape"),
    "check_tuple_info": _check_sequence("tuple"),
}

for _name, _function in _FUNCTIONS.items():
    register_func(f"vm.builtin.{_name}", _function, override=True)
