"""`tvm.target.codegen`: what LLVM knows of processors. TVM 0.27 gives the same answers."""

import pytest

pytest.importorskip("llvmlite")

from mlcweb.ir.errors import InternalError, TVMError
from mlcweb.runtime import Target, build
from mlcweb.runtime.target_codegen import (
    llvm_cpu_has_features,
    llvm_get_cpu_archlist,
    llvm_get_cpu_features,
    llvm_get_system_cpu,
    llvm_get_system_triple,
    llvm_get_targets,
    llvm_get_vector_width,
    llvm_is_valid_cpu,
    llvm_version_major,
    target_has_features,
)
from tests.programs import matmul

RISCV = "llvm -mtriple=riscv64-linux-gnu -mcpu="


def x86(cpu: str, options: str = "") -> Target:
    return Target(f"llvm -mtriple=x86_64-- -mcpu={cpu} {options}")


def arm(cpu: str, family: str = "aarch64") -> Target:
    return Target(f"llvm -mtriple={family}-- -mcpu={cpu}")


@pytest.mark.parametrize(
    ("target", "features", "has"),
    [
        (x86("btver2"), "sse4a", True),
        (x86("knl"), "avx512bw", False),
        (x86("knl"), ("avx512cd", "avx512f"), True),
        (x86("alderlake"), ["avxvnni", "avx512vnni"], False),
        (x86("sapphirerapids"), "amx-int8", True),
        (x86("x86-64", "-mattr=+sse4.1"), "ssse3", True),
        (x86("ivybridge", "-mattr=-ssse3"), "ssse3", False),
        (x86("cascadelake", "-mattr=-avx512f"), "avx512bw", False),
        (arm("cortex-a55"), ["neon", "dotprod"], True),
        (arm("cortex-a55"), "dsp", False),
        (arm("cortex-a55", "arm"), "dsp", True),
        (Target(f"{RISCV}sifive-x280"), "v", True),
        (Target(f"{RISCV}generic-rv64"), "v", False),
        (Target(f"{RISCV}generic-rv64"), "32bit", False),
        (Target("llvm"), "no-such-feature", False),
        (Target("cuda"), "avx2", False),
    ],
)
def test_features_of_processors(target, features, has):
    assert target_has_features(features, target) is has
    with target:
        assert llvm_cpu_has_features(features) is has


def test_all_features():
    features = llvm_get_cpu_features(x86("haswell"))
    assert {"avx2", "fma", "bmi2", "f16c", "sse4.2"} <= features
    assert not {"avx512f", "sse4a", "slow-3ops-lea"} & features
    assert "dotprod" in llvm_get_cpu_features(arm("cortex-a55"))
    assert llvm_get_cpu_features(Target("cuda")) == set()
    with pytest.raises(TVMError, match="asks it for one"):
        llvm_get_cpu_features(Target(f"{RISCV}sifive-x280"))


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ("-mtriple=aarch64-linux-gnu", "has_asimd"),
        ("-mtriple=aarch64-linux-gnu -mattr=+sve", "has_asimd has_sve has_fp16_simd"),
        ("-mtriple=aarch64-linux-gnu -mattr=+v8.4a", "has_asimd has_dotprod"),
        ("-mtriple=aarch64-linux-gnu -mattr=+v8.6a", "has_asimd has_dotprod has_matmul_i8"),
        ("-mtriple=armv8a-linux -mcpu=cortex-a53", "has_asimd"),
    ],
)
def test_features_that_schedules_for_arm_ask_for(options, features):
    names = ("has_asimd", "has_sve", "has_sme", "has_dotprod", "has_matmul_i8", "has_fp16_simd")
    target = Target(f"llvm {options}")
    assert [name for name in names if getattr(target.features, name)] == [
        name for name in names if name in features.split()
    ]
    assert target.features.has_avx is None
    assert Target("llvm -mtriple=x86_64-linux-gnu").features.has_sve is None


@pytest.mark.parametrize(
    ("target", "bits"),
    [
        (x86("skylake-avx512"), 512),
        (x86("haswell"), 256),
        (arm("cortex-a55"), 128),
        (Target("llvm -vector-width=1024"), 1024),
        (Target(f"{RISCV}generic-rv64 -mattr=+m"), 128),
        (Target(f"{RISCV}generic-rv64 -mattr=+v"), 128),
        (Target(f"{RISCV}generic-rv64 -mattr=+v,+zvl256b"), 256),
        (Target(f"{RISCV}sifive-x280"), 512),
        (Target("cuda"), -1),
    ],
)
def test_vectors(target, bits):
    assert llvm_get_vector_width(target) == bits


def test_models_and_families():
    assert {"x86_64", "aarch64", "riscv64"} <= set(llvm_get_targets())
    assert "sandybridge" in llvm_get_cpu_archlist(x86("haswell"))
    assert llvm_get_cpu_archlist(Target("cuda")) == []
    assert llvm_is_valid_cpu("skylake", "x86_64-linux-gnu")
    assert not llvm_is_valid_cpu("skylake", "aarch64-linux-gnu")
    own = Target(f"llvm -mtriple={llvm_get_system_triple()}")
    assert llvm_get_system_cpu() in llvm_get_cpu_archlist(own)


def test_a_target_is_needed():
    for question in (llvm_get_vector_width, llvm_get_cpu_features, llvm_get_cpu_archlist):
        with pytest.raises(InternalError, match="Target context required"):
            question()


def test_where_there_is_no_llvm(monkeypatch):
    version = llvm_version_major()
    assert version is not None and version >= 15
    monkeypatch.setattr(Target, "code_generator", "numpy")
    assert llvm_version_major(allow_none=True) is None
    with pytest.raises(RuntimeError, match="LLVM is not here"):
        target_has_features("avx2", x86("haswell"))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (f"{RISCV}rocket-rv32", "RV64 target requires an RV64 CPU"),
        (f"{RISCV}generic-rv64 -mattr=+32bit", "RV32 and RV64 can't be combined"),
        (f"{RISCV}no-such-model", 'knows no processor "no-such-model"'),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=haswell", 'knows no processor "haswell"'),
    ],
)
def test_code_that_llvm_ends_the_process_for_is_refused(target, reason):
    with pytest.raises(TVMError, match=reason):
        build(matmul(), target)
