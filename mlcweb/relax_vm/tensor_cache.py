"""Weights of models by name, `vm.builtin.tensor_cache.…`: read from folders that TVM writes, in
which "tensor-cache.json" says where in which file each tensor is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from mlcweb.relax_vm.packed import machine_function
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.device import DEVICE_TYPES, Device
from mlcweb.runtime.ndarray import NDArray, empty, from_bytes

_NAMES = ("tensor-cache.json", "ndarray-cache.json")
"""What the list of tensors is called, and was until 2025."""

_tensors: dict[str, NDArray] = {}


@machine_function("tensor_cache.load")
def load(cache_path: str, device_type: int, device_id: int) -> None:
    """Read the tensors of a folder to a device; TVM numbers the types of devices."""
    kinds = {number: name for name, number in DEVICE_TYPES.items()}
    device = Device(kinds[device_type], device_id)
    folder = Path(cache_path)
    lists = [folder / name for name in _NAMES if (folder / name).is_file()]
    if not lists:
        raise ArgumentValueError(f"Cannot open {folder / _NAMES[0]}")
    for shard in json.loads(lists[0].read_text("utf8"))["records"]:
        data = (folder / shard["dataPath"]).read_bytes()
        if shard["format"] != "raw-shard" or len(data) != shard["nbytes"]:
            raise ArgumentValueError(
                f'{shard["dataPath"]} should have {shard["nbytes"]} bytes of "raw-shard", but is '
                f'{len(data)} bytes of "{shard["format"]}"'
            )
        for record in shard["records"]:
            _tensors[record["name"]] = _read(record, data, device)


def _read(record: dict[str, Any], data: bytes, device: Device) -> NDArray:
    shape, dtype = tuple(record["shape"]), record["dtype"]
    part = data[record["byteOffset"] : record["byteOffset"] + record["nbytes"]]
    shortened = record["format"] == "f32-to-bf16" and dtype == "float32"
    values = from_bytes(part, "bfloat16" if shortened else dtype, shape)
    return empty(shape, dtype, device).copyfrom(values)


@machine_function("tensor_cache.get")
def get(name: str) -> NDArray | None:
    return _tensors.get(name)


@machine_function("tensor_cache.update")
def update(name: str, tensor: NDArray, is_override: bool = False) -> None:
    if name in _tensors and not is_override:
        raise ArgumentValueError(f"Name {name} already exists in the cache")
    _tensors[name] = tensor


@machine_function("tensor_cache.remove")
def remove(name: str) -> None:
    _tensors.pop(name, None)


@machine_function("tensor_cache.clear")
def clear() -> None:
    _tensors.clear()


@machine_function("param_array_from_cache")
def numbered(prefix: str, num_params: int) -> list[NDArray]:
    """The tensors `prefix_0`, `prefix_1` and so on; -1 are as many as there are."""
    if num_params != -1:
        return by_name([f"{prefix}_{number}" for number in range(num_params)])
    names = (f"{prefix}_{number}" for number in count())
    return list(iter(lambda: _tensors.get(next(names)), None))


@machine_function("param_array_from_cache_by_name")
def by_name(names: Sequence[str]) -> list[NDArray]:
    for name in names:
        if name not in _tensors:
            raise ArgumentValueError(f"Cannot find {name} in cache")
    return [_tensors[name] for name in names]


@machine_function("param_array_from_cache_by_name_unpacked")
def by_names(*names: str) -> list[NDArray]:
    return by_name(names)


@machine_function("param_module_from_cache", "param_module_from_cache_by_name")
def module(*arguments: object) -> NoReturn:
    raise ArgumentValueError(
        "Weights are a list here, not a module: call vm.builtin.param_array_from_cache or "
        "vm.builtin.param_array_from_cache_by_name"
    )
