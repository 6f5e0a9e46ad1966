"""Functions that run on a GPU: their kernels in WGSL, compiled once for each GPU, launched on
arrays that lie there."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from mlcweb.codegen.gpu.host_plan import HostPlan, Number, plan_launches
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernel
from mlcweb.codegen.registry import Kernel
from mlcweb.ir.span import Span
from mlcweb.lower.specialize import size_symbols
from mlcweb.runtime.gpu.limits import check_grid, check_kernel
from mlcweb.runtime.gpu.storage import GpuStorage, allocate_on
from mlcweb.runtime.host.gpu import (
    GpuDevice,
    GpuError,
    GpuLost,
    Launch,
    ShaderError,
    gpu_device,
    why_no_gpu,
)
from mlcweb.runtime.ndarray import NDArray
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

MAX_KEPT = 64
"""So many plans, and so many calls with the same arrays, are kept for each function."""

_FORMATS = {"int32": "i", "uint32": "I", "float32": "f", "float16": "e"}
"""How scalars are packed."""


def build(functions: Mapping[str, PrimFunc]) -> dict[str, Kernel]:
    """A kernel for each function, its programs compiled for the GPU that is there. A call only
    enqueues; what reads an array waits for it.

    Raises:
        GpuError: the GPU lacks what a function needs.
        TVMError: WGSL has no form for what a function does.
    """
    on_gpu = [GpuFunction(name, func) for name, func in functions.items()]
    for function in on_gpu:
        function.compiled()
    return {
        function.name: Kernel(
            function.name,
            function.function,
            function.run,
            function.source,
            language="webgpu",
            time_batch=function.time_batch,
            takes_arrays=True,
        )
        for function in on_gpu
    }


class _Call(NamedTuple):
    """The launches of a call with certain arrays, and the memory that they have beside these."""

    launches: list[Launch]
    allocated: list[GpuStorage]


class _Compiled(NamedTuple):
    """The programs of a function for a GPU, and its calls with arrays that it was called with."""

    device: GpuDevice
    pipelines: list[Any]
    calls: dict[tuple[Any, ...], _Call]


class GpuFunction:
    """A function whose kernels run on a GPU."""

    def __init__(self, name: str, func: PrimFunc) -> None:
        self.name = name
        self.function = func
        self.lowered, self.kernels = kernels_of(func, name)
        self._sources = [write_kernel(kernel, LANGUAGES["webgpu"]) for kernel in self.kernels]
        self._symbols = size_symbols(func)
        self._compiled: _Compiled | None = None
        self._plans: dict[tuple[Any, ...], HostPlan] = {}

    @property
    def source(self) -> str:
        return "\n".join(text for text, _ in self._sources)

    def compiled(self) -> _Compiled:
        """The programs for the GPU that is there."""
        if self._compiled is None or self._compiled.device.lost:
            device = gpu_device()
            if device is None:
                raise GpuLost(f'"{self.name}" was built for a GPU, and now {why_no_gpu()}')
            pipelines = [
                self._pipeline(device, kernel, *source)
                for kernel, source in zip(self.kernels, self._sources, strict=True)
            ]
            self._compiled = _Compiled(device, pipelines, {})
        return self._compiled

    def _pipeline(
        self, device: GpuDevice, kernel: DeviceKernel, source: str, spans: Sequence[Span | None]
    ) -> Any:
        check_kernel(kernel, device)
        try:
            return device.create_pipeline(source, kernel.name)
        except ShaderError as error:
            in_source = 0 < error.line <= len(spans)
            text = source.splitlines()[error.line - 1].strip() if in_source else kernel.name
            raise GpuError(
                f"The GPU's compiler refuses a kernel: {error.message}, in\n  {text}",
                spans[error.line - 1] if in_source else None,
            ) from None

    def run(self, *arguments: Any) -> None:
        """Enqueue the launches of a call."""
        compiled = self.compiled()
        dispatch = compiled.device.dispatch
        for launch in self._launches(compiled, arguments):
            dispatch(launch)

    def time_batch(self, number: int, *arguments: Any) -> float:
        """Seconds that so many calls take on the GPU."""
        compiled = self.compiled()
        return compiled.device.time(self._launches(compiled, arguments), number)

    def _launches(self, compiled: _Compiled, arguments: tuple[Any, ...]) -> list[Launch]:
        """The launches of a call, which are kept for the next one with these arrays."""
        key = tuple(
            (argument.address, argument.shape) if isinstance(argument, NDArray) else argument
            for argument in arguments
        )
        bound = compiled.calls.get(key)
        if bound is None:
            bound = self._bound(compiled, arguments)
            _keep(compiled.calls, key, bound)
        return bound.launches

    def _bound(self, compiled: _Compiled, arguments: tuple[Any, ...]) -> _Call:
        device = compiled.device
        plan = self._plan(arguments)
        memory: dict[E.Var, GpuStorage] = {}
        for position, data in self._arrays.items():
            memory[data] = _on(device, arguments[position])
        allocated = {data: allocate_on(device, size) for data, size in plan.allocated.items()}
        memory |= allocated
        launches: list[Launch] = []
        for index, grid, scalars in plan.launches:
            kernel, pipeline = self.kernels[index], compiled.pipelines[index]
            check_grid(kernel, grid, device)
            pieces = [memory[buffer.data] for buffer in kernel.buffers]
            _refuse_shared_memory(kernel, pieces)
            buffers = [(piece.buffer, piece.nbytes) for piece in pieces]
            bindings = device.create_bindings(pipeline, buffers, _packed(kernel, scalars))
            launches.append(Launch(pipeline, bindings, grid))
        return _Call(launches, list(allocated.values()))

    def _plan(self, arguments: tuple[Any, ...]) -> HostPlan:
        """What the host does, by the sizes and scalars of a call."""
        values: dict[E.Var, Number] = {
            symbol: arguments[position].shape[axis]
            for symbol, (position, axis) in self._symbols.items()
        }
        for param, argument in zip(self.function.params, arguments, strict=True):
            if param not in self.function.buffer_map:
                values[param] = argument
        key = tuple(values.values())
        plan = self._plans.get(key)
        if plan is None:
            plan = plan_launches(self.lowered, self.kernels, values)
            _keep(self._plans, key, plan)
        return plan

    @cached_property
    def _arrays(self) -> dict[int, E.Var]:
        """The data of the parameters that are arrays, by position."""
        buffers = self.function.buffer_map
        return {
            position: buffers[param].data
            for position, param in enumerate(self.function.params)
            if param in buffers
        }


def _keep(cache: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cache) >= MAX_KEPT:
        cache.pop(next(iter(cache)))
    cache[key] = value


def _on(device: GpuDevice, array: NDArray) -> GpuStorage:
    """The memory of an array, on a GPU that is still there."""
    storage = array.storage
    if isinstance(storage, GpuStorage) and storage.memory is device:
        return storage
    lost = storage.memory.lost if isinstance(storage, GpuStorage) else ""
    raise GpuLost(
        f"An array is not on the GPU ({device.description}); make it again. {lost}".strip()
    )


def _refuse_shared_memory(kernel: DeviceKernel, pieces: Sequence[GpuStorage]) -> None:
    """A kernel on a GPU writes no memory that it is given twice."""
    owners: dict[int, Buffer] = {}
    for buffer, piece in zip(kernel.buffers, pieces, strict=True):
        other = owners.setdefault(id(piece.buffer), buffer)
        if other is not buffer and {other.data, buffer.data} & kernel.written:
            raise GpuError(
                f'"{other.name}" and "{buffer.name}" are the same array, and "{kernel.name}" '
                "writes it; pass a copy, since WebGPU gives memory that is written only once"
            )


def _packed(kernel: DeviceKernel, scalars: Sequence[Number]) -> bytes:
    """The scalars of a launch as its program has them."""
    if not scalars:
        return b""
    formats = "".join(_FORMATS[var.dtype] for var in kernel.scalars)
    data = struct.pack(f"@{formats}", *scalars)
    return data + bytes(-len(data) % 16)
