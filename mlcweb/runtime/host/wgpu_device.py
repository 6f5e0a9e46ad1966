"""A GPU outside of a browser: the package `wgpu`, which reaches those of all vendors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mlcweb.runtime.host.gpu import (
    FEATURES,
    LIMITS,
    GpuMemoryError,
    Launch,
    NoGpu,
    ShaderError,
    check_lost,
    time_by_host,
    uniform_bytes,
)

if TYPE_CHECKING:
    import numpy as np

MAX_PENDING = 64
"""So many launches are collected before they are handed over."""

PATIENCE_S = 300
"""Seconds that a GPU may work on what was asked of it; a process can be interrupted before."""

_TICKS = 8
"""Bytes of a time of the GPU's clock."""

_given_up: list[Any] = []
"""Devices that are busy without end: whoever lets go of one waits for it."""

_LINE = re.compile(r"wgsl:(\d+):\d+")


def find_device() -> WgpuDevice:
    """The GPU that the system prefers.

    Raises:
        NoGpu: the package is not installed, or finds none.
    """
    if find_spec("wgpu") is None:
        raise NoGpu('the package wgpu is not installed (pip install "mlcweb[gpu]")')
    try:
        return WgpuDevice()
    except Exception as error:  # drivers fail in ways of their own
        raise NoGpu(f"this machine offers no GPU ({error})") from None


class WgpuDevice:
    """A device of the package `wgpu`."""

    language = "webgpu"

    def __init__(self) -> None:
        import wgpu  # pyright: ignore[reportMissingImports]

        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        names = {_hyphened(name): name for name in LIMITS}
        self.device: Any = adapter.request_device_sync(
            required_features=[name for name in FEATURES if name in adapter.features],
            required_limits={name: adapter.limits[name] for name in names},
        )
        self.queue: Any = self.device.queue
        self.usage: Any = wgpu.BufferUsage
        self.memory_error: Any = wgpu.GPUOutOfMemoryError
        self.validation_error: Any = wgpu.GPUValidationError
        self.description = str(adapter.info["device"] or adapter.info["vendor"])
        self.is_software = adapter.info["adapter_type"] == "CPU"
        self.limits: Mapping[str, int] = {names[name]: self.device.limits[name] for name in names}
        self.features = frozenset(self.device.features)
        self.lost = ""
        self._pending: list[Launch] = []
        self._discarded: list[Any] | None = None
        self._patience = PATIENCE_S

    def create_buffer(self, nbytes: int) -> Any:
        usage = self.usage.STORAGE | self.usage.COPY_SRC | self.usage.COPY_DST
        return self._buffer(nbytes, usage)

    def _buffer(self, nbytes: int, usage: Any) -> Any:
        check_lost(self.lost)
        try:
            return self.device.create_buffer(size=_padded(nbytes), usage=usage)
        except self.memory_error:
            raise GpuMemoryError(f"The GPU has no {nbytes} bytes left") from None

    def destroy_buffer(self, buffer: Any) -> None:
        if self.lost:
            return
        if self._discarded is not None:  # by the garbage collector, amid `_hand_over`
            self._discarded.append(buffer)
            return
        self._hand_over()
        buffer.destroy()

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        import numpy as np

        check_lost(self.lost)
        self._hand_over()
        data = data.reshape(-1).view(np.uint8)
        if data.nbytes % 4:
            data = np.pad(data, (0, -data.nbytes % 4))
        if data.nbytes:
            self.queue.write_buffer(buffer, 0, np.ascontiguousarray(data))

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        check_lost(self.lost)
        self._hand_over()
        if not nbytes:
            return np.empty(0, np.uint8)
        data = self._in_time(lambda: self.queue.read_buffer(buffer, 0, _padded(nbytes)))
        return np.frombuffer(data, np.uint8)[:nbytes].copy()

    def create_pipeline(self, source: str, entry: str) -> Any:
        check_lost(self.lost)
        try:
            module = self.device.create_shader_module(code=source)
            return self.device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": entry}
            )
        except self.validation_error as error:
            match = _LINE.search(str(error))
            raise ShaderError(_reason(str(error)), int(match[1]) if match else 0) from None

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: Sequence[bytes]
    ) -> Any:
        bound = [(buffer, _padded(nbytes)) for buffer, nbytes in buffers]
        if data := uniform_bytes(scalars):
            uniform = self._buffer(len(data), self.usage.UNIFORM | self.usage.COPY_DST)
            self.queue.write_buffer(uniform, 0, data)
            bound.append((uniform, len(data)))
        return self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": index, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for index, (buffer, size) in enumerate(bound)
            ],
        )

    def dispatch(self, launch: Launch) -> None:
        self._pending.append(launch)
        if len(self._pending) >= MAX_PENDING:
            self._hand_over()

    def wait(self) -> None:
        check_lost(self.lost)
        self._hand_over()
        # What the package has for this fails; to read a little waits as well.
        self._in_time(lambda: self.queue.read_buffer(self._token, 0, 4))

    def time(self, launches: Sequence[Launch], number: int) -> float:
        """By the GPU's clock, where the package says how long its tick is; else by this
        machine's."""
        if not self._tick:
            return time_by_host(self, launches, number)
        self.wait()
        ticks = self.device.create_query_set(type="timestamp", count=2)
        size = 2 * _TICKS
        usage = self.usage.QUERY_RESOLVE | self.usage.COPY_SRC
        result = self.device.create_buffer(size=size, usage=usage)
        encoder = self.device.create_command_encoder()
        self._encode(
            encoder,
            [*launches] * number,
            timestamp_writes={
                "query_set": ticks,
                "beginning_of_pass_write_index": 0,
                "end_of_pass_write_index": 1,
            },
        )
        encoder.resolve_query_set(ticks, 0, 2, result, 0)
        self.queue.submit([encoder.finish()])
        data = self._in_time(lambda: self.queue.read_buffer(result, 0, size))
        start, end = (int.from_bytes(data[at : at + _TICKS], "little") for at in (0, _TICKS))
        return (end - start) * self._tick

    @cached_property
    def _tick(self) -> float:
        """The seconds of a tick of the GPU's clock; 0 where they are not told."""
        if "timestamp-query" not in self.features:
            return 0.0
        try:
            from wgpu.backends import wgpu_native  # pyright: ignore[reportMissingImports]

            library: Any = wgpu_native.lib
            return float(library.wgpuQueueGetTimestampPeriod(self.queue._internal)) * 1e-9
        except (ImportError, AttributeError):  # a version that has no such function
            return 0.0

    @cached_property
    def _token(self) -> Any:
        return self.create_buffer(4)

    def _hand_over(self) -> None:
        """Submit what is pending, and destroy buffers that went meanwhile only then."""
        if not self._pending:
            return
        launches, self._pending = self._pending, []
        self._discarded = []
        try:
            encoder = self.device.create_command_encoder()
            self._encode(encoder, launches)
            self.queue.submit([encoder.finish()])
        finally:
            discarded, self._discarded = self._discarded, None
            for buffer in discarded:
                buffer.destroy()

    def _encode(self, encoder: Any, launches: Sequence[Launch], **options: Any) -> None:
        """A pass of launches."""
        compute = encoder.begin_compute_pass(**options)
        for launch in launches:
            compute.set_pipeline(launch.pipeline)
            compute.set_bind_group(0, launch.bindings)
            compute.dispatch_workgroups(*launch.grid)
        compute.end()

    def _in_time(self, work: Callable[[], Any]) -> Any:
        """What waits for the GPU, in a thread of its own, which is left behind where it takes too
        long."""
        results: list[Any] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:
                failures.append(error)
            done.set()

        threading.Thread(target=run, daemon=True).start()
        if not done.wait(self._patience):
            self.lost = gave_up(self._patience)
            _given_up.append(self)
        elif failures:
            self.lost = f"The GPU was lost ({failures[0]})."
        check_lost(self.lost)
        return results[0]


def gave_up(seconds: float) -> str:
    """What is said of a GPU that does not come to an end."""
    return (
        f"The GPU was given up after {seconds:g} s without a result; a loop may have no end, or "
        "the work be too much for one launch."
    )


def _padded(nbytes: int) -> int:
    """Sizes of memory are multiples of four bytes, and not zero."""
    return max(4, nbytes + -nbytes % 4)


def _hyphened(name: str) -> str:
    """ "maxBufferSize" as "max-buffer-size"."""
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)


def _reason(text: str) -> str:
    """The line of an error that says what is wrong."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if "error" in line.lower() and "Validation Error" not in line]
    return errors[0] if errors else " ".join(lines)
