"""NVIDIA's compiler of CUDA C, which needs no GPU: the package `cuda-python` and its libraries."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

from mlcweb.runtime.host.gpu import ShaderError

_LINE = re.compile(r"\((\d+)\): (?:catastrophic )?error: (.*)")


@cache
def headers() -> tuple[str, ...]:
    """The folders of the headers of float16 and of tensor cores, of NVIDIA's packages or of a
    toolkit; none where these are missing."""
    package = importlib.util.find_spec("nvidia")
    folders = [*(package.submodule_search_locations or ())] if package else []
    folders += [str(path) for path in Path("/usr/local").glob("cuda*")]
    for folder in folders:
        # A package may have only those that lead to the headers of another.
        for file in Path(folder).rglob("crt/mma.h"):
            include = file.parents[1]
            if (include / "mma.h").exists() and (include / "cuda_fp16.h").exists():
                return str(include), str(include / "cccl")
    return ()


def compile_cuda(source: str, architecture: str) -> bytes:
    """A program as PTX for a virtual architecture ("compute_75"), or as machine code for a real one
    ("sm_75").

    Raises:
        ShaderError: the compiler refuses it.
    """
    import cuda.bindings.nvrtc as nvrtc  # pyright: ignore[reportMissingImports]

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture={architecture}", *(f"-I{path}" for path in headers())]
        encoded = [option.encode() for option in options]
        [status] = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if int(status):
            log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise _refusal(log.decode().rstrip("\0"))
        virtual = architecture.startswith("compute_")
        size = nvrtc.nvrtcGetPTXSize if virtual else nvrtc.nvrtcGetCUBINSize
        content = nvrtc.nvrtcGetPTX if virtual else nvrtc.nvrtcGetCUBIN
        code = bytes(checked(size(program)))
        checked(content(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def checked(answer: tuple[Any, ...]) -> Any:
    """What a function of NVIDIA's libraries gives after its status, whose first value is success.

    Raises:
        RuntimeError: the status tells of a failure.
    """
    status, *results = answer
    if int(status):
        raise RuntimeError(status.name)
    return results[0] if results else None


def _refusal(log: str) -> ShaderError:
    match = _LINE.search(log)
    return ShaderError(match[2], int(match[1])) if match else ShaderError(log.strip())
