"""The GPU in a page: WebGPU of the browser, in the worker that runs Python (`page_gpu.js`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyodide.ffi import JsException, run_sync, to_js  # pyright: ignore[reportMissingImports]

from mlcweb.runtime.host.gpu import (
    FEATURES,
    LIMITS,
    GpuError,
    GpuLost,
    GpuMemoryError,
    Launch,
    NoGpu,
    ShaderError,
)
from mlcweb.runtime.host.page_script import page_script
from mlcweb.runtime.host.waiting import can_suspend

if TYPE_CHECKING:
    import numpy as np

PATIENCE_S = 30
"""Seconds in which none of what was handed over is done, before the GPU is given up."""

LARGE = 1 << 20
"""Bytes; whether there is room for smaller memory is not asked."""


def find_device() -> PageGpu:
    """The GPU that the browser prefers.

    Raises:
        NoGpu: the browser has none to offer.
    """
    try:
        opened = page_script("page_gpu").open(to_js(LIMITS), to_js(FEATURES), PATIENCE_S)
        return PageGpu(_wait(opened))
    except JsException as error:
        raise NoGpu(getattr(error, "message", "") or "this browser offers no GPU") from None


class PageGpu:
    """A device of the browser."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self.description = str(gpu.description)
        self.limits: Mapping[str, int] = {name: int(getattr(gpu.limits, name)) for name in LIMITS}
        self.features = frozenset(gpu.features)

    @property
    def lost(self) -> str:
        return self._gpu.lost

    def create_buffer(self, nbytes: int) -> Any:
        self._check_lost()
        if nbytes < LARGE:
            return self._gpu.createSmallBuffer(nbytes)
        buffer = _wait(self._gpu.createBuffer(nbytes))
        if not buffer:
            raise GpuMemoryError(f"The GPU has no {nbytes} bytes left")
        return buffer

    def destroy_buffer(self, buffer: Any) -> None:
        self._gpu.destroyBuffer(buffer)

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        self._check_lost()
        if data.nbytes:
            self._gpu.write(buffer, to_js(data.reshape(-1).view("uint8")))

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        self._check_lost()
        result = np.empty(nbytes, np.uint8)
        if nbytes:
            data = _wait(self._gpu.read(buffer, nbytes))
            self._check_lost()
            data.assign_to(result)
        return result

    def create_pipeline(self, source: str, entry: str) -> Any:
        self._check_lost()
        compiled = _wait(self._gpu.createPipeline(source, entry))
        if not hasattr(compiled, "pipeline"):
            raise ShaderError(compiled.message, int(compiled.line))
        return compiled.pipeline

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: bytes
    ) -> Any:
        memory, sizes = zip(*buffers, strict=True) if buffers else ((), ())
        return self._gpu.createBindings(pipeline, to_js(memory), to_js(sizes), to_js(scalars))

    def dispatch(self, launch: Launch) -> None:
        self._gpu.dispatch(launch.pipeline, launch.bindings, *launch.grid)

    def wait(self) -> None:
        self._check_lost()
        _wait(self._gpu.wait())
        self._check_lost()

    def time(self, launches: Sequence[Launch], number: int) -> float:
        """By the GPU's clock, where the browser tells it."""
        self._check_lost()
        plain = to_js([[each.pipeline, each.bindings, *each.grid] for each in launches])
        seconds = _wait(self._gpu.time(plain, number))
        self._check_lost()
        return seconds

    def _check_lost(self) -> None:
        if self.lost:
            raise GpuLost(f"{self.lost} Make its arrays and build its programs again")


def _wait(promise: Any) -> Any:
    """What a promise comes to; a GpuError where Python cannot wait for it."""
    if not can_suspend():
        raise GpuError(
            "Python cannot wait for the GPU here, since JavaScript has called it and goes on only "
            "when it returns"
        )
    return run_sync(promise)
