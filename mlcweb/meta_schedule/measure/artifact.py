"""What is made of a program once, and then measured wherever there is room: its machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from mlcweb.codegen.registry import find_target
from mlcweb.ir import IRModule
from mlcweb.lower.optimize.accesses import of_distinct_arrays
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.target import Target
from mlcweb.tir import PrimFunc


@dataclass(frozen=True, slots=True)
class WasmArtifact:
    """A WebAssembly module: self-contained bytes. Equal artifacts are equal code.

    `function` and `repeated` are the exports that run the kernel once, and as often as the first
    argument says. Both take the buffers' addresses and that of `scratch_bytes` of memory.
    """

    code: bytes
    function: str
    repeated: str
    scratch_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ModuleArtifact:
    """A program for a target whose code cannot travel; it is built where it is measured."""

    module: IRModule
    function: str
    target: str


Artifact = WasmArtifact | ModuleArtifact


def build_artifact(module: IRModule, function: str, target: str = "llvm") -> Artifact:
    """Compile a function of a module.

    Args:
        target: what to build for, as `build` takes it.
    """
    found = find_target(Target(target).kind.name).name
    if found != "wasm":
        return ModuleArtifact(module, function, target)

    from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX, compile_functions
    from mlcweb.codegen.wasm.select_types import UnsupportedError
    from mlcweb.runtime.host.engine import engine

    host = engine()
    # A worker of the page has a memory of its own, which nobody shares.
    shared = host.shared and not in_browser()
    try:
        # Trials run on arrays of their own.
        func = of_distinct_arrays(cast(PrimFunc, module[function]))
        compiled = compile_functions({function: func}, host.options, shared)
    except UnsupportedError:
        return ModuleArtifact(module, function, target)
    if compiled.python_calls:
        return ModuleArtifact(module, function, target)
    code = compiled.code
    return WasmArtifact(code, function, function + REPEAT_SUFFIX, compiled.scratch_bytes)
