"""`tvm.testing.env`: what there is on this machine, and can be used from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.runtime.device import device
from mlcweb.runtime.target import Target

_GPUS = ("cuda", "rocm", "vulkan", "metal", "opencl", "webgpu")


def has_llvm() -> bool:
    """Whether programs for "llvm" are compiled by LLVM."""
    return Target("llvm").code_generator == "llvm"


def has_gpu() -> bool:
    """Whether programs can run on a GPU."""
    return any(device(kind).exist for kind in _GPUS)


def build_flag_enabled(flag: str) -> bool:
    """Whether this build has what `tvm.support.libinfo` has under a name, such as "USE_LLVM"."""
    return flag == "USE_LLVM" and has_llvm()


def cuda_arch(device_id: int = 0) -> str | None:
    """The architecture of a GPU of CUDA, where it is asked; it is not here."""
    return None


def __getattr__(name: str) -> Callable[..., bool]:
    """`has_cuda` and its like for kinds of devices; all others, of libraries, say no."""
    kind = name.removeprefix("has_")
    if kind == name:
        raise AttributeError(f"module {__name__} has no {name}")

    def has(*_: Any, **__: Any) -> bool:
        return kind in _GPUS and device(kind).exist

    return has
