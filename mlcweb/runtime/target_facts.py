"""What is known of hardware: the kinds of targets other than this machine's processor, and tags."""

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
    "cuda": _gpu("cuda", max_num_threads=1024, thread_warp_size=32),
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
    ),
    "vulkan": _gpu("vulkan", max_num_threads=256, max_threads_per_block=256, thread_warp_size=1),
    "webgpu": _gpu(
        "webgpu", max_num_threads=256, thread_warp_size=1, max_shared_memory_per_block=32768
    ),
    "hexagon": KindFacts("hexagon", ("hexagon", "cpu"), {}),
    "ext_dev": KindFacts("ext_dev", (), {}),
}
"""The kinds that a program may be scheduled for, whether anything here builds for them or not."""


DEVICE_KINDS = ("cuda", "nvptx", "opencl", "metal", "vulkan", "webgpu")
"""The kinds for whose devices there is source of kernels."""


def _nvidia(names: str, arch: str, **attrs: Any) -> dict[str, dict[str, Any]]:
    facts = {
        "kind": "cuda",
        "arch": arch,
        "max_shared_memory_per_block": 49152,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }
    return {f"nvidia/{name}": {**facts, **attrs} for name in names.split()}


def _apple(name: str, threads: int = 1024) -> dict[str, dict[str, Any]]:
    return {
        f"apple/{name}": {
            "kind": "metal",
            "max_threads_per_block": threads,
            "max_shared_memory_per_block": 32768,
            "thread_warp_size": 32,
            "host": {"kind": "llvm", "mtriple": "arm64-apple-macos"},
        }
    }


def _aws(cores: dict[str, int], mcpu: str) -> dict[str, dict[str, Any]]:
    return {
        f"aws/cpu/c5.{size}": {"kind": "llvm", "keys": ["x86"], "mcpu": mcpu, "num-cores": count}
        for size, count in cores.items()
    }


_CORTEX_A72 = {
    "kind": "llvm",
    "keys": ["arm_cpu"],
    "mtriple": "aarch64-linux-gnu",
    "mcpu": "cortex-a72",
    "mattr": ["+neon"],
    "num-cores": 4,
}

TAGS: dict[str, dict[str, Any]] = {
    **_nvidia("tesla-k80", "sm_37"),
    **_nvidia("geforce-gtx-titan-x", "sm_52"),
    **_nvidia("jetson-nano", "sm_53", registers_per_block=32768),
    **_nvidia("tesla-p100 quadro-gp100", "sm_60"),
    **_nvidia("geforce-gtx-1080-ti nvidia-titan-x nvidia-titan-xp tesla-p40", "sm_61"),
    **_nvidia("nvidia-v100 quadro-gv100", "sm_70"),
    **_nvidia("jetson-agx-xavier", "sm_72"),
    **_nvidia("geforce-rtx-2060 geforce-rtx-2080-ti nvidia-t4 t1000", "sm_75"),
    **_nvidia("nvidia-a100", "sm_80", l2_cache_size_bytes=41943040),
    **_nvidia(
        "geforce-rtx-3070 geforce-rtx-3070-ti geforce-rtx-3080 geforce-rtx-3080-ti "
        "geforce-rtx-3090 geforce-rtx-3090-ti nvidia-a10 nvidia-a10g rtx-a6000",
        "sm_86",
    ),
    **_nvidia("jetson-agx-orin-32gb jetson-agx-orin-64gb", "sm_87"),
    **_nvidia("geforce-rtx-4090", "sm_89", l2_cache_size_bytes=75497472),
    **_nvidia("nvidia-h100", "sm_90a", l2_cache_size_bytes=52428800),
    **_apple("m1-gpu"),
    **_apple("m1-gpu-restricted", 256),
    **_apple("m2-gpu"),
    **_aws({"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18, "18xlarge": 36},
           "skylake-avx512"),
    **_aws({"12xlarge": 24, "24xlarge": 48}, "cascadelake"),
    "raspberry-pi/4b-aarch64": {**_CORTEX_A72, "host": _CORTEX_A72},
    "qcom/adreno-opencl": {"kind": "opencl", "device": "adreno"},
}  # fmt: skip
"""Attributes of hardware by name."""
