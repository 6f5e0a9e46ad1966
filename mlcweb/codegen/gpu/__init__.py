"""Kernels for GPUs as source: CUDA C, OpenCL C, Metal or WGSL, whether a GPU is here or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlcweb.codegen.gpu.inlined_calls import inline_calls
from mlcweb.codegen.gpu.kernels import DeviceKernel, constant_bytes, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES, Language
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

__all__ = ["BLOCK_SHARED", "check_limits", "device_source", "inline_calls"]


def device_source(
    functions: Mapping[str, PrimFunc], kind: str, attrs: Mapping[str, Any]
) -> tuple[str, str]:
    """The language and the text of the kernels of some functions, for a kind of target with
    attributes such as "max_threads_per_block".

    Raises:
        TVMError: a function computes outside of threads, or goes beyond what the target has.
    """
    language = LANGUAGES[kind]
    warp = attrs.get("thread_warp_size", 1) if language.exchange else 1
    kernels: list[DeviceKernel] = []
    with nesting_limit("built"):
        for name, func in functions.items():
            kernels += kernels_of(func, name, warp=warp, asynchronous=language.async_copies)[1]
        for kernel in kernels:
            check_limits(kernel, kind, attrs, dynamic_room(language, attrs))
        return language.name, write_kernels(kernels, language)


STATIC_SHARED = 48 << 10
"""Bytes that a kernel in CUDA may declare. What is more is of scope "shared.dyn"."""

BLOCK_SHARED = {
    "sm_70": 96, "sm_72": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99,
    "sm_90": 227, "sm_100": 227, "sm_110": 227, "sm_120": 99,
}  # fmt: skip
"""KiB of shared memory that a block may have of NVIDIA's GPUs that have more than they declare."""


def dynamic_room(language: Language, attrs: Mapping[str, Any]) -> int | None:
    """The bytes of shared memory that a launch may ask for, of some GPU where attributes name none;
    None where a language has no such memory."""
    if not language.dynamic_shared:
        return None
    most = BLOCK_SHARED.get(str(attrs.get("arch", "")).rstrip("af"))
    if most is None and "max_shared_memory_per_block" in attrs:
        return int(attrs["max_shared_memory_per_block"])
    return (most or max(BLOCK_SHARED.values())) << 10


def check_limits(
    kernel: DeviceKernel, kind: str, attrs: Mapping[str, Any], dynamic: int | None = None
) -> None:
    """A TVMError where a block of a kernel has more threads or shared memory than a kind has, of
    which a launch may ask for `dynamic` bytes."""
    threads = prod(kernel.block_size())
    most = attrs.get("max_threads_per_block") or attrs.get("max_num_threads")
    if most is not None and threads > most:
        raise TVMError(
            f'"{kernel.name}" has {threads} threads in a block, and "{kind}" has {most} at most; '
            "split a loop that is bound to threadIdx by a smaller factor"
        )
    room = attrs.get("max_shared_memory_per_block")
    advice = "compute the copies at a loop further inside"
    if dynamic is None:
        _check_shared(kernel, kernel.shared, kind, room, advice)
        return
    _check_shared(kernel, kernel.shared, kind, dynamic, advice)
    declared = [buffer for buffer in kernel.shared if buffer.scope() != "shared.dyn"]
    advice += ', or give them the scope "shared.dyn"' if dynamic > STATIC_SHARED else ""
    _check_shared(kernel, declared, kind, min(room or STATIC_SHARED, STATIC_SHARED), advice)


def _check_shared(
    kernel: DeviceKernel, buffers: Sequence[Buffer], kind: str, room: int | None, advice: str
) -> None:
    size = sum(map(constant_bytes, buffers))
    if room is not None and size > room:
        names = ", ".join(f'"{buffer.name}"' for buffer in buffers)
        raise TVMError(
            f'"{kernel.name}" shares {size} bytes among the threads of a block ({names}), '
            f'and "{kind}" has {room}; {advice}'
        )
