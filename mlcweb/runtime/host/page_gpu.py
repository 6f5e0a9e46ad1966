"""The GPU in a page: WebGPU of the browser, in the worker that runs Python (`page_gpu.js`), or in
another one where Python can only be blocked while it waits (`GpuLine` of the page)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyodide.ffi import JsException, run_sync, to_js  # pyright: ignore[reportMissingImports]

from mlcweb.runtime.host.gpu import (
    FEATURES,
    LIMITS,
    GpuError,
    GpuMemoryError,
    GpuTimeout,
    Launch,
    NoGpu,
    ShaderError,
    check_lost,
    uniform_bytes,
)
from mlcweb.runtime.host.page_script import page_gpu_line, page_script
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
        NoGpu: the browser has none to offer; GpuTimeout: it has not answered in time.
    """
    line = page_gpu_line()
    script = page_script("page_gpu") if line is None else line
    try:
        opened = script.open(to_js(LIMITS), to_js(FEATURES), PATIENCE_S)
        return PageGpu(_wait(opened) if line is None else opened, line is not None)
    except JsException as error:
        late = getattr(error, "name", "") == "TimeoutError"
        reason = getattr(error, "message", "") or "this browser offers no GPU"
        raise (GpuTimeout if late else NoGpu)(reason) from None


class PageGpu:
    """A device of the browser, which offers no software unless it is told to."""

    language = "webgpu"
    is_software = False

    def __init__(self, gpu: Any, blocks: bool = False) -> None:
        self._gpu = gpu
        self._wait = _at_once if blocks else _wait
        self.description = str(gpu.description)
        self.limits: Mapping[str, int] = {name: int(getattr(gpu.limits, name)) for name in LIMITS}
        self.features = frozenset(gpu.features)

    @property
    def lost(self) -> str:
        return self._gpu.lost

    def create_buffer(self, nbytes: int) -> Any:
        check_lost(self.lost)
        if nbytes < LARGE:
            return self._gpu.createSmallBuffer(nbytes)
        buffer = self._ask(self._gpu.createBuffer, nbytes)
        if not buffer:
            raise GpuMemoryError(f"The GPU has no {nbytes} bytes left")
        return buffer

    def destroy_buffer(self, buffer: Any) -> None:
        self._gpu.destroyBuffer(buffer)

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        check_lost(self.lost)
        if data.nbytes:
            self._gpu.write(buffer, to_js(data.reshape(-1).view("uint8")))

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        check_lost(self.lost)
        result = np.empty(nbytes, np.uint8)
        if nbytes:
            self._ask(self._gpu.read, buffer, nbytes).assign_to(result)
        return result

    def create_pipeline(self, source: str, entry: str) -> Any:
        compiled = self._ask(self._gpu.createPipeline, source, entry)
        if not hasattr(compiled, "pipeline"):
            raise ShaderError(compiled.message, int(compiled.line))
        return compiled.pipeline

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: Sequence[bytes]
    ) -> Any:
        memory, sizes = zip(*buffers, strict=True) if buffers else ((), ())
        uniform = to_js(uniform_bytes(scalars))
        return self._gpu.createBindings(pipeline, to_js(memory), to_js(sizes), uniform)

    def dispatch(self, launch: Launch) -> None:
        self._gpu.dispatch(launch.pipeline, launch.bindings, *launch.grid)

    def wait(self) -> None:
        self._ask(self._gpu.wait)

    def time(self, launches: Sequence[Launch], number: int) -> float:
        """By the GPU's clock, where the browser tells it."""
        plain = to_js([[each.pipeline, each.bindings, *each.grid] for each in launches])
        return self._ask(self._gpu.time, plain, number)

    def _ask(self, question: Callable[..., Any], *arguments: object) -> Any:
        """What the GPU answers, if it is there when asked and still is then."""
        check_lost(self.lost)
        answer = self._wait(question(*arguments))
        check_lost(self.lost)
        return answer


def _at_once(result: Any) -> Any:
    """What was waited for by a blocked worker."""
    return result


def _wait(promise: Any) -> Any:
    """What a promise comes to; a GpuError where Python cannot wait for it."""
    if not can_suspend():
        raise GpuError(
            "Python cannot wait for the GPU here, since JavaScript has called it and goes on only "
            "when it returns"
        )
    return run_sync(promise)
