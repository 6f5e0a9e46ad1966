"""Functions that run on a GPU: their kernels in its language, compiled once for each GPU, launched
on arrays that lie there."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any, NamedTuple

from mlcweb.codegen.gpu.host_plan import HostPlan, Number, plan_launches
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES, Language
from mlcweb.codegen.gpu.printer import write_kernel, write_kernels
from mlcweb.codegen.gpu.wide_integers import check_integers_fit, is_wide
from mlcweb.codegen.registry import Kernel
from mlcweb.ir.errors import TVMError
from mlcweb.ir.span import Span
from mlcweb.ir.transform import PassContext
from mlcweb.lower.async_copies import USE_ASYNC_COPY
from mlcweb.lower.specialize import size_symbols
from mlcweb.lower.thread_axes import WARP_SIZE
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
from mlcweb.runtime.storage import StorageView
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

MAX_KEPT = 64
"""So many plans, and so many calls with the same arrays, are kept for each function."""

_FORMATS = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
"""How scalars are packed."""


def build(functions: Mapping[str, PrimFunc], kind: str = "webgpu") -> dict[str, Kernel]:
    """A kernel for each function, its programs compiled for the GPU that devices of a kind are
    here. A call only enqueues; what reads an array waits for it.

    Raises:
        GpuError: the GPU lacks what a function needs.
        TVMError: its language has no form for what a function does.
    """
    on_gpu = [GpuFunction(name, func, kind) for name, func in functions.items()]
    languages = {function.compiled().device.language for function in on_gpu}
    language = "".join(languages)
    return {
        function.name: Kernel(
            function.name,
            function.function,
            function.run,
            function.source,
            language=language,
            time_batch=function.time_batch,
            takes_arrays=True,
            call_seconds=partial(_call_seconds, kind),
        )
        for function in on_gpu
    }


def _call_seconds(kind: str) -> float:
    from mlcweb.runtime.gpu.call_overhead import call_seconds

    return call_seconds(kind)


class _Call(NamedTuple):
    """The launches of a call with certain arrays, and the memory that they have beside these."""

    launches: list[Launch]
    allocated: list[GpuStorage]


class _Compiled(NamedTuple):
    """The programs of a function for a GPU, and its calls with arrays that it was called with."""

    device: GpuDevice
    language: Language
    lowered: PrimFunc
    kernels: list[DeviceKernel]
    pipelines: list[Any]
    plans: dict[tuple[Any, ...], HostPlan]
    calls: dict[tuple[Any, ...], _Call]


class GpuFunction:
    """A function whose kernels run on the GPU that devices of a kind are."""

    def __init__(self, name: str, func: PrimFunc, kind: str) -> None:
        self.name = name
        self.function = func
        self.kind = kind
        self._symbols = size_symbols(func)
        self._compiled: _Compiled | None = None
        # The kernels are compiled when they first run, as the options at the build say.
        self._asynchronous = bool(PassContext.current().config.get(USE_ASYNC_COPY))

    @property
    def source(self) -> str:
        compiled = self.compiled()
        return write_kernels(compiled.kernels, compiled.language)

    def compiled(self) -> _Compiled:
        """The programs for the GPU that is there."""
        if self._compiled is None or self._compiled.device.lost:
            device = gpu_device(self.kind)
            if device is None:
                raise GpuLost(f'"{self.name}" was built for a GPU, and now {why_no_gpu(self.kind)}')
            language = LANGUAGES[device.language]
            warp = WARP_SIZE if language.exchange else 1
            options = PassContext(config={USE_ASYNC_COPY: True})
            with options if self._asynchronous else nullcontext():
                lowered, kernels = kernels_of(
                    self.function, self.name, warp=warp, asynchronous=language.async_copies
                )
            pipelines = [
                self._pipeline(device, kernel, *write_kernel(kernel, language))
                for kernel in kernels
            ]
            self._compiled = _Compiled(device, language, lowered, kernels, pipelines, {}, {})
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
        plan = self._plan(compiled, arguments)
        memory: dict[E.Var, GpuStorage] = {}
        for position, data in self._arrays.items():
            memory[data] = _on(device, arguments[position])
        allocated = {data: allocate_on(device, size) for data, size in plan.allocated.items()}
        memory |= allocated
        launches: list[Launch] = []
        for index, grid, scalars in plan.launches:
            kernel, pipeline = compiled.kernels[index], compiled.pipelines[index]
            check_grid(kernel, grid, device)
            pieces = [memory[buffer.data] for buffer in kernel.buffers]
            _refuse_shared_memory(kernel, pieces)
            buffers = [(piece.buffer, piece.nbytes) for piece in pieces]
            numbers = self._packed(kernel, scalars, compiled.language)
            bindings = device.create_bindings(pipeline, buffers, numbers)
            dynamic = kernel.dynamic_shared()[1] if compiled.language.dynamic_shared else 0
            launches.append(Launch(pipeline, bindings, grid, kernel.block_size(), dynamic))
        return _Call(launches, list(allocated.values()))

    def _packed(
        self, kernel: DeviceKernel, scalars: Sequence[Number], language: Language
    ) -> list[bytes]:
        """The scalars of a launch as its program has them."""
        narrow = not language.has_int64
        if narrow and is_wide(kernel):
            values = dict(zip(kernel.scalars, scalars, strict=True))
            try:
                check_integers_fit(kernel, language.name, values)
            except TVMError as error:
                raise GpuError(error.message, error.span) from None
        types = ("int32" if narrow and v.dtype == "int64" else v.dtype for v in kernel.scalars)
        return [struct.pack(f"={_FORMATS[t]}", x) for t, x in zip(types, scalars, strict=True)]

    def _plan(self, compiled: _Compiled, arguments: tuple[Any, ...]) -> HostPlan:
        """What the host does, by the sizes and scalars of a call."""
        values: dict[E.Var, Number] = {
            symbol: arguments[position].shape[axis]
            for symbol, (position, axis) in self._symbols.items()
        }
        for param, argument in zip(self.function.params, arguments, strict=True):
            if param not in self.function.buffer_map:
                values[param] = argument
        key = tuple(values.values())
        plan = compiled.plans.get(key)
        if plan is None:
            plan = plan_launches(compiled.lowered, compiled.kernels, values)
            _keep(compiled.plans, key, plan)
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
    if isinstance(storage, StorageView) and isinstance(storage.whole, GpuStorage):
        if storage.start:
            raise GpuError(
                "A kernel on a GPU is given memory from its beginning; this array begins "
                f"{storage.start} bytes into another: copy it, tvm.nd.array(x, dev)"
            )
        storage = storage.whole.part(storage.nbytes)
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
                "writes it; pass a copy, since a kernel takes memory that is written only once"
            )
