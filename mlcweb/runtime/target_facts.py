"""What is known of hardware: the kinds of targets other than this machine's processor."""

from __future__ import annotations

from typing import Any, NamedTuple


class KindFacts(NamedTuple):
    """The device that programs of a kind run on, the kind's keys, and attributes by default."""

    device: str
    keys: tuple[str, ...]
    attrs: dict[str, Any]


def _gpu(name: str, device: str = "", **attrs: Any) -> KindFacts:
    return KindFacts(device or name, (device or name, "gpu"), attrs)


KINDS: dict[str, KindFacts] = {
    "cuda": _gpu("cuda", arch="sm_50", max_num_threads=1024, thread_warp_size=32),
    "nvptx": _gpu("nvptx", "cuda", max_num_threads=1024, thread_warp_size=32),
    "rocm": _gpu(
        "rocm",
        max_num_threads=256,
        max_threads_per_block=256,
        thread_warp_size=64,
        max_shared_memory_per_block=65536,
    ),
    "metal": _gpu(
        "metal",
        max_num_threads=256,
        max_threads_per_block=256,
        thread_warp_size=16,
        max_shared_memory_per_block=32768,
        max_function_args=31,
    ),
    "opencl": _gpu(
        "opencl",
        max_num_threads=256,
        max_threads_per_block=256,
        thread_warp_size=1,
        max_shared_memory_per_block=16384,
        max_function_args=128,
        texture_spatial_limit=16384,
        texture_depth_limit=2048,
        image_base_address_alignment=64,
    ),
    "vulkan": _gpu(
        "vulkan",
        max_num_threads=256,
        max_threads_per_block=256,
        thread_warp_size=1,
        supports_int32=True,
        supports_float32=True,
    ),
    "webgpu": _gpu(
        "webgpu", max_num_threads=256, thread_warp_size=1, max_shared_memory_per_block=32768
    ),
    "hexagon": KindFacts("hexagon", ("hexagon", "cpu"), {}),
    "ext_dev": KindFacts("ext_dev", (), {}),
}
"""The kinds that a program may be scheduled for, whether anything here builds for them or not."""


DEVICE_KINDS = ("cuda", "nvptx", "opencl", "metal", "vulkan", "webgpu")
"""The kinds for whose devices there is source of kernels."""
