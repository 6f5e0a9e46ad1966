"""`tvm.relax.testing.vm`: registers functions, `test.vm.add` and others, that programs call by
`R.call_packed` and `R.call_dps_packed`."""

from __future__ import annotations

from typing import Any

from mlcweb.runtime.ndarray import NDArray, array
from mlcweb.runtime.registry import register_func


@register_func("test.vm.move", override=True)
def move(src: NDArray) -> NDArray:
    return src


@register_func("test.vm.add", override=True)
def add(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() + b.numpy())


@register_func("test.vm.mul", override=True)
def mul(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() * b.numpy())


@register_func("test.vm.equal_zero", override=True)
def equal_zero(a: NDArray) -> NDArray:
    return array((a.numpy() == 0).all())


@register_func("test.vm.subtract_one", override=True)
def subtract_one(a: NDArray) -> NDArray:
    return array(a.numpy() - a.numpy().dtype.type(1))


@register_func("test.vm.identity", override=True)
def identity_packed(a: NDArray, b: NDArray) -> None:
    b.copyfrom(a.numpy())


@register_func("test.vm.tile", override=True)
def tile_packed(a: NDArray, b: NDArray) -> None:
    import numpy as np

    b.copyfrom(np.tile(a.numpy(), (1, 2)))


@register_func("test.vm.add_scalar", override=True)
def add_scalar(a: float, b: float) -> float:
    return a + b


@register_func("test.vm.get_device_id", override=True)
def get_device_id(device: Any) -> int:
    return device.device_id


@register_func("test.vm.check_if_defined", override=True)
def check_if_defined(obj: Any) -> bool:
    return obj is not None


def check_saved_func(vm: Any, func_name: str, *inputs: Any) -> Any:
    """What a function gives when it was saved with its arguments first."""
    saved_name = f"{func_name}_saved"
    vm.save_function(func_name, saved_name, *inputs)
    return vm[saved_name]()
