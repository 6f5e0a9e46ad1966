"""Kernels for GPUs as source: CUDA C, OpenCL C, Metal or WGSL, whether a GPU is here or not."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlcweb.codegen.gpu.inlined_calls import inline_calls
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

__all__ = ["check_limits", "device_source", "inline_calls"]


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
            check_limits(kernel, kind, attrs)
        return language.name, write_kernels(kernels, language)


def check_limits(kernel: DeviceKernel, kind: str, attrs: Mapping[str, Any]) -> None:
    """A TVMError where a block of a kernel has more threads or shared memory than a kind has."""
    threads = prod(kernel.block_size())
    most = attrs.get("max_threads_per_block") or attrs.get("max_num_threads")
    if most is not None and threads > most:
        raise TVMError(
            f'"{kernel.name}" has {threads} threads in a block, and "{kind}" has {most} at most; '
            "split a loop that is bound to threadIdx by a smaller factor"
        )
    sizes = [
        extent.value * dtypes.size_in_bytes(buffer.dtype)
        for buffer in kernel.shared
        if isinstance(extent := buffer.shape[0], E.IntImm)
    ]
    room = attrs.get("max_shared_memory_per_block")
    if room is not None and sum(sizes) > room:
        names = ", ".join(f'"{buffer.name}"' for buffer in kernel.shared)
        raise TVMError(
            f'"{kernel.name}" shares {sum(sizes)} bytes among the threads of a block ({names}), '
            f'and "{kind}" has {room}; compute the copies at a loop further inside'
        )
