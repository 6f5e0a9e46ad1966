"""A device of OpenCL, by the package `pyopencl`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from signal import SIGFPE
from typing import TYPE_CHECKING, Any

from mlcweb.runtime.host.gpu import (
    GpuMemoryError,
    Launch,
    NoGpu,
    ShaderError,
    check_lost,
    time_by_host,
)
from mlcweb.runtime.host.signal_handler import SignalHandler

if TYPE_CHECKING:
    import numpy as np

_LINE = re.compile(r":(\d+):\d+:(?: (?:fatal )?error:)? (.*)")

UNLIMITED = 2**31 - 1
"""What OpenCL sets no limit to: the arrays of a kernel, and its blocks."""


def find_device() -> OpenclDevice:
    """A GPU of some platform, else the first device of any.

    Raises:
        NoGpu: the package is not installed, or there is no device.
    """
    if find_spec("pyopencl") is None:
        raise NoGpu('the package pyopencl is not installed (pip install "mlcweb[opencl]")')
    try:
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        with division_handler().installed_within():
            every = [each for platform in cl.get_platforms() for each in platform.get_devices()]
            chosen = next((d for d in every if d.type & cl.device_type.GPU), every[0])
            return OpenclDevice(chosen)
    except Exception as error:  # drivers fail in ways of their own
        raise NoGpu(f"no OpenCL device is here ({error})") from None


@lru_cache(maxsize=1)
def division_handler() -> SignalHandler:
    """What lets divisions by zero pass in OpenCL on a processor. It is in place only while kernels
    run, since it lets those of WebAssembly pass, too."""
    return SignalHandler(SIGFPE)


class OpenclDevice:
    """A device with a context and a queue of its own."""

    language = "opencl"

    def __init__(self, device: Any) -> None:
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        self.divisions = division_handler()
        self.device = device
        self.context: Any = cl.Context([device])
        self.queue: Any = cl.CommandQueue(self.context)
        self.description = str(device.name).strip()
        self.is_software = not device.type & cl.device_type.GPU
        self.lost = ""
        sizes = device.max_work_item_sizes
        self.limits: Mapping[str, int] = {
            "maxBufferSize": device.max_mem_alloc_size,
            "maxStorageBufferBindingSize": device.max_mem_alloc_size,
            "maxStorageBuffersPerShaderStage": UNLIMITED,
            "maxComputeInvocationsPerWorkgroup": device.max_work_group_size,
            **{f"maxComputeWorkgroupSize{axis}": size
               for axis, size in zip("XYZ", sizes, strict=False)},
            "maxComputeWorkgroupStorageSize": device.local_mem_size,
            "maxComputeWorkgroupsPerDimension": UNLIMITED,
        }  # fmt: skip
        half = "cl_khr_fp16" in device.extensions
        self.features = frozenset({"shader-f16"} if half else ())

    def create_buffer(self, nbytes: int) -> Any:
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, nbytes))
        except cl.Error:
            raise GpuMemoryError(f"The OpenCL device has no {nbytes} bytes left") from None

    def destroy_buffer(self, buffer: Any) -> None:
        buffer.release()

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        import numpy as np

        if data.nbytes:
            self._copy(buffer, np.ascontiguousarray(data))

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        result = np.empty(nbytes, np.uint8)
        if nbytes:
            self._copy(result, buffer)
        return result

    def _copy(self, target: Any, source: Any) -> None:
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        check_lost(self.lost)
        try:
            cl.enqueue_copy(self.queue, target, source, is_blocking=True)
        except cl.Error as error:
            self.lost = f"The OpenCL device failed ({error})."
            check_lost(self.lost)
        finally:
            self.divisions.leave()

    def create_pipeline(self, source: str, entry: str) -> Any:
        """A program, and the name of the function in it."""
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        program: Any = cl.Program(self.context, source)  # whose stub knows no `cache_dir=False`
        try:
            return program.build(cache_dir=False), entry
        except cl.Error as error:
            match = _LINE.search(str(error))
            line, reason = (int(match[1]), match[2]) if match else (0, str(error))
            raise ShaderError(reason, line) from None

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: Sequence[bytes]
    ) -> Any:
        """A function with its arguments."""
        import numpy as np
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        program, entry = pipeline
        kernel = cl.Kernel(program, entry)
        arguments = [buffer for buffer, _ in buffers]
        for index, argument in enumerate((*arguments, *scalars)):
            is_bytes = isinstance(argument, bytes)
            kernel.set_arg(index, np.frombuffer(argument, np.uint8) if is_bytes else argument)
        return kernel

    def dispatch(self, launch: Launch) -> None:
        import pyopencl as cl  # pyright: ignore[reportMissingImports]

        self.divisions.enter()
        threads = tuple(n * size for n, size in zip(launch.grid, launch.block, strict=True))
        cl.enqueue_nd_range_kernel(self.queue, launch.bindings, threads, launch.block)

    def wait(self) -> None:
        try:
            check_lost(self.lost)
            self.queue.finish()
        finally:
            self.divisions.leave()

    def time(self, launches: Sequence[Launch], number: int) -> float:
        return time_by_host(self, launches, number)
