"""`tvm.support`: what this build is."""

import platform

from mlcweb import __version__
from mlcweb.codegen.registry import target_names
from mlcweb.runtime.target import Target


def libinfo() -> dict[str, str]:
    """Facts of the build by TVM's names; "USE_CUDA" and the like are "OFF"."""
    has_llvm = Target("llvm").code_generator == "llvm"
    return {
        "TVM_VERSION": __version__,
        "PYTHON_VERSION": platform.python_version(),
        "TARGETS": " ".join(target_names()),
        "USE_LLVM": "ON" if has_llvm else "OFF",
        **dict.fromkeys(("USE_CUDA", "USE_METAL", "USE_OPENCL", "USE_RPC"), "OFF"),
    }


def describe() -> None:
    """Print what `libinfo` says."""
    for name, value in libinfo().items():
        print(f"{name}: {value}")
