"""The tags of targets: hardware by name, with the attributes that TVM gives it."""

from __future__ import annotations

from typing import Any

Tags = dict[str, dict[str, Any]]


def _nvidia(names: str, arch: str, **attrs: Any) -> Tags:
    facts = {
        "kind": "cuda",
        "arch": arch,
        "max_shared_memory_per_block": 49152,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }
    return {f"nvidia/{name}": {**facts, **attrs} for name in names.split()}


def _processor(triple: str, mcpu: str, **attrs: Any) -> dict[str, Any]:
    return {"kind": "llvm", "keys": ["arm_cpu"], "mtriple": triple, "mcpu": mcpu, **attrs}


def _arm_host(mcpu: str, cores: int) -> dict[str, Any]:
    return _processor("aarch64-linux-gnu", mcpu, **{"num-cores": cores})


def _apple(name: str, mcpu: str, threads: int = 1024) -> Tags:
    return {
        f"apple/{name}": {
            "kind": "metal",
            "max_threads_per_block": threads,
            "max_shared_memory_per_block": 32768,
            "thread_warp_size": 32,
            "host": _processor("arm64-apple-macos", mcpu),
        }
    }


def _aws(cores: dict[str, int], mcpu: str) -> Tags:
    return {
        f"aws/cpu/c5.{size}": {"kind": "llvm", "keys": ["x86"], "mcpu": mcpu, "num-cores": count}
        for size, count in cores.items()
    }


def _arm(name: str, triple: str, model: str = "", mcpu: str = "", vfp: bool = False) -> Tags:
    return {
        f"arm/{name}": {
            "kind": "llvm",
            "keys": ["arm_cpu"],
            "device": "arm_cpu",
            "model": model or name,
            "mtriple": triple,
            **({"mcpu": mcpu} if mcpu else {}),
            "mattr": ["+neon", "+vfp4", "+thumb2"] if vfp else ["+neon"],
        }
    }


def _adreno(name: str, kind: str, *keys: str) -> Tags:
    return {f"qcom/adreno-{name}": {"kind": kind, "device": "adreno", "keys": ["adreno", *keys]}}


def _hexagon(version: str, vtcm: int, *features: str) -> Tags:
    return {
        f"qcom/hexagon-v{version}": {
            "kind": "hexagon",
            "mtriple": "hexagon",
            "mcpu": f"hexagonv{version}",
            "mattr": [f"+hvxv{version}", "+hvx-length128b", *features],
            "num-cores": 4,
            "vtcm-capacity": vtcm,
        }
    }


def _riscv(name: str, bits: int, abi: str, **attrs: Any) -> Tags:
    return {
        f"riscv/{name}": {
            "kind": "llvm",
            "keys": ["riscv_cpu"],
            "device": "riscv_cpu",
            "mtriple": f"riscv{bits}-unknown-linux-gnu",
            "mabi": abi,
            **attrs,
        }
    }


_CORTEX_A72 = {**_arm_host("cortex-a72", 4), "mattr": ["+neon"]}
_HARD = {"num-cores": 8, "mfloat-abi": "hard"}
_QFLOAT = ("+hvx-qfloat", "-hvx-ieee-fp")

TAGS: Tags = {
    **_nvidia(
        "geforce-gtx-465 geforce-gtx-470 geforce-gtx-480 geforce-gtx-480m geforce-gtx-570 "
        "geforce-gtx-580 geforce-gtx-590 quadro-plex-7000 tesla-c2050 tesla-c2070 tesla-c2075",
        "sm_20", registers_per_block=32768,
    ),
    **_nvidia(
        "geforce-410m geforce-610m geforce-705m geforce-710m geforce-800m geforce-820m "
        "geforce-gt-415m geforce-gt-420m geforce-gt-430 geforce-gt-435m geforce-gt-440 "
        "geforce-gt-445m geforce-gt-520 geforce-gt-520m geforce-gt-520mx geforce-gt-525m "
        "geforce-gt-540m geforce-gt-550m geforce-gt-555m geforce-gt-610 geforce-gt-620 "
        "geforce-gt-620m geforce-gt-625m geforce-gt-630 geforce-gt-630m geforce-gt-635m "
        "geforce-gt-640-gddr3 geforce-gt-720m geforce-gt-730-ddr3,128bit geforce-gts-450 "
        "geforce-gtx-460 geforce-gtx-460m geforce-gtx-470m geforce-gtx-485m geforce-gtx-550-ti "
        "geforce-gtx-560-ti geforce-gtx-560m geforce-gtx-570m geforce-gtx-580m geforce-gtx-670m "
        "geforce-gtx-675m nvidia-nvs-310 nvidia-nvs-315 nvs-4200m nvs-5200m nvs-5400m",
        "sm_21", registers_per_block=32768,
    ),
    **_nvidia(
        "geforce-gt-640m geforce-gt-640m-le geforce-gt-645m geforce-gt-650m geforce-gt-730m "
        "geforce-gt-735m geforce-gt-740 geforce-gt-740m geforce-gt-745m geforce-gt-750m "
        "geforce-gt-755m geforce-gtx-650 geforce-gtx-650-ti geforce-gtx-650-ti-boost "
        "geforce-gtx-660 geforce-gtx-660-ti geforce-gtx-660m geforce-gtx-670 geforce-gtx-670mx "
        "geforce-gtx-675mx geforce-gtx-680 geforce-gtx-680m geforce-gtx-680mx geforce-gtx-690 "
        "geforce-gtx-760 geforce-gtx-760m geforce-gtx-765m geforce-gtx-770 geforce-gtx-770m "
        "geforce-gtx-780m geforce-gtx-860m-sm-30 geforce-gtx-870m geforce-gtx-880m nvidia-nvs-510 "
        "quadro-410 quadro-k1100m quadro-k2000 quadro-k2000d quadro-k2100m quadro-k2200m "
        "quadro-k3100m quadro-k4000 quadro-k4100m quadro-k420 quadro-k4200 quadro-k4200m "
        "quadro-k5000 quadro-k500m quadro-k5100m quadro-k5200m quadro-k600 quadro-k6000m "
        "tesla-k10",
        "sm_30",
    ),
    **_nvidia(
        "geforce-920m geforce-gt-640-gddr5 geforce-gt-705 geforce-gt-720 geforce-gt-730 "
        "geforce-gtx-780 geforce-gtx-780-ti geforce-gtx-titan geforce-gtx-titan-black "
        "geforce-gtx-titan-z quadro-k510m quadro-k5200 quadro-k6000 quadro-k610m tesla-k20 "
        "tesla-k40",
        "sm_35",
    ),
    **_nvidia("tesla-k80", "sm_37"),
    **_nvidia(
        "geforce-830m geforce-840m geforce-930m geforce-940m geforce-gtx-750 geforce-gtx-750-ti "
        "geforce-gtx-850m geforce-gtx-860m-sm-50 geforce-gtx-950m geforce-gtx-960m nvidia-nvs-810 "
        "quadro-k1200 quadro-k2200 quadro-k620 quadro-k620m quadro-m1000m quadro-m1200 "
        "quadro-m2000m quadro-m3000m quadro-m4000m quadro-m5000m quadro-m500m quadro-m520 "
        "quadro-m600m",
        "sm_50",
    ),
    **_nvidia(
        "geforce-910m geforce-gtx-950 geforce-gtx-960 geforce-gtx-965m geforce-gtx-970 "
        "geforce-gtx-970m geforce-gtx-980 geforce-gtx-980-ti geforce-gtx-980m geforce-gtx-titan-x "
        "quadro-m2000 quadro-m2200 quadro-m4000 quadro-m5000 quadro-m5500m quadro-m6000 "
        "quadro-m6000-24gb quadro-m620 tesla-m40 tesla-m60",
        "sm_52",
    ),
    **_nvidia("jetson-nano jetson-tx1 tegra-x1", "sm_53", registers_per_block=32768),
    **_nvidia("quadro-gp100 tesla-p100", "sm_60"),
    **_nvidia(
        "geforce-gtx-1050 geforce-gtx-1060 geforce-gtx-1070 geforce-gtx-1070-ti geforce-gtx-1080 "
        "geforce-gtx-1080-ti nvidia-titan-x nvidia-titan-xp p520 p620 quadro-p1000 quadro-p2000 "
        "quadro-p2200 quadro-p3000 quadro-p3200 quadro-p400 quadro-p4000 quadro-p4200 quadro-p500 "
        "quadro-p5000 quadro-p5200 quadro-p600 quadro-p6000 quadro-p620 tesla-p4 tesla-p40",
        "sm_61",
    ),
    **_nvidia("jetson-tx2", "sm_62", registers_per_block=32768),
    **_nvidia("nvidia-titan-v nvidia-v100 quadro-gv100", "sm_70"),
    **_nvidia("jetson-agx-xavier", "sm_72", host=_arm_host("carmel", 8)),
    **_nvidia(
        "geforce-rtx-2060 geforce-rtx-2070 geforce-rtx-2080 geforce-rtx-2080-ti nvidia-t4 "
        "nvidia-titan-rtx quadro-rtx-4000 quadro-rtx-5000 quadro-rtx-6000 quadro-rtx-8000 "
        "rtx-3000 rtx-4000 rtx-5000 t1000 t2000",
        "sm_75",
    ),
    **_nvidia("nvidia-a100", "sm_80", l2_cache_size_bytes=41943040),
    **_nvidia("nvidia-a30", "sm_80"),
    **_nvidia(
        "geforce-rtx-3060 geforce-rtx-3070 geforce-rtx-3070-ti geforce-rtx-3080 "
        "geforce-rtx-3080-ti geforce-rtx-3090 geforce-rtx-3090-ti nvidia-a10 nvidia-a10g "
        "nvidia-a16 nvidia-a2 nvidia-a40 rtx-a6000",
        "sm_86",
    ),
    **_nvidia("jetson-orin-nano", "sm_87", host=_arm_host("carmel", 6)),
    **_nvidia("jetson-agx-orin-64gb", "sm_87", host=_arm_host("cortex-a78", 12)),
    **_nvidia("jetson-agx-orin-32gb", "sm_87", host=_arm_host("cortex-a78", 8)),
    **_nvidia("geforce-rtx-4090", "sm_89", l2_cache_size_bytes=75497472),
    **_nvidia("nvidia-h100", "sm_90a", l2_cache_size_bytes=52428800),
    **_nvidia("nvidia-b100", "sm_100a", l2_cache_size_bytes=52428800),
    **_nvidia(
        "jetson-agx-thor", "sm_110a", l2_cache_size_bytes=33554432,
        max_shared_memory_per_block=232448, host=_arm_host("neoverse-v3ae", 14),
    ),
    **_nvidia("geforce-rtx-5060-ti", "sm_120", l2_cache_size_bytes=33554432),
    **_apple("m1-gpu", "apple-m1"),
    **_apple("m1-gpu-restricted", "apple-m1", 256),
    **_apple("m2-gpu", "apple-m2"),
    **_aws({"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18, "18xlarge": 36},
           "skylake-avx512"),
    **_aws({"12xlarge": 24, "24xlarge": 48}, "cascadelake"),
    **_arm("pixel2", "arm64-linux-android", "snapdragon835"),
    **_arm("mate10", "arm64-linux-android", "kirin970"),
    **_arm("rasp3b", "armv7l-linux-gnueabihf", "bcm2837"),
    **_arm("rasp4b", "armv8l-linux-gnueabihf", "bcm2711", "cortex-a72"),
    **_arm("rasp4b64", "aarch64-linux-gnu", "bcm2711", "cortex-a72"),
    **_arm("rk3399", "aarch64-linux-gnu"),
    **_arm("pynq", "armv7a-linux-eabi"),
    **_arm("ultra96", "aarch64-linux-gnu"),
    **_arm("beagleai", "armv7a-linux-gnueabihf", mcpu="cortex-a15", vfp=True),
    **_arm("stm32mp1", "armv7a-linux-gnueabihf", mcpu="cortex-a7", vfp=True),
    "arm/thunderx": {
        "kind": "llvm", "keys": ["arm_cpu"], "device": "arm_cpu", "model": "thunderx",
        "mtriple": "aarch64-linux-gnu", "mcpu": "thunderxt88", "mattr": ["+neon", "+crc", "+lse"],
    },
    "raspberry-pi/4b-aarch64": {**_CORTEX_A72, "host": _CORTEX_A72},
    **_adreno("opencl", "opencl"),
    **_adreno("opencl-clml", "opencl", "opencl", "gpu", "clml"),
    **_adreno("opencl-texture", "opencl", "opencl", "gpu", "texture"),
    **_adreno("vulkan", "vulkan"),
    **_adreno("vulkan-texture", "vulkan", "vulkan", "gpu", "texture"),
    **_hexagon("65", 262144),
    **_hexagon("66", 262144),
    "qcom/hexagon-v68": {
        **_hexagon("68", 4194304, *_QFLOAT)["qcom/hexagon-v68"],
        "llvm-options": ["-force-hvx-float"],
    },
    **_hexagon("69", 8388608, *_QFLOAT),
    **_hexagon("73", 8388608, *_QFLOAT),
    **_hexagon("75", 8388608, *_QFLOAT),
    **_riscv("licheepi3a", 64, "lp64d", mcpu="spacemit-x60", **_HARD),
    **_riscv("spacemit-k3", 64, "lp64d", mcpu="spacemit-x100", **_HARD),
    **_riscv("sifive-e31", 32, "ilp32", mcpu="sifive-e31", model="sifive-e31"),
    **_riscv("sifive-e76", 32, "ilp32", mcpu="sifive-e76", model="sifive-e76"),
    **_riscv("sifive-u54", 64, "lp64d", mcpu="sifive-u54", model="sifive-u54"),
    **_riscv("sifive-u74", 64, "lp64d", mcpu="sifive-u74", model="sifive-u74"),
}  # fmt: skip
"""Attributes of hardware by name. All of TVM's, but those of AWS Trainium."""
