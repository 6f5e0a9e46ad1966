"""What is made of a program once, and then measured wherever there is room: its machine code."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.codegen.registry import find_target
from mlcweb.ir import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.runtime.build import lookup_in, options_of
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
    """A program for a target whose code cannot travel; it is built where it is measured, in the
    `PassContext` of the search."""

    module: IRModule
    function: str
    target: str
    context: PassContext | None = None


Artifact = WasmArtifact | ModuleArtifact


def build_artifact(
    module: IRModule, function: str, target: str = "llvm", context: PassContext | None = None
) -> Artifact:
    """Compile a function of a module as `build` does.

    Args:
        target: what to build for, as `build` takes it.
        context: the settings of another process; by default those here.
    """
    if context is not None:
        with context:
            return build_artifact(module, function, target)
    whole = ModuleArtifact(module, function, target, PassContext.current().with_instruments(()))
    chosen = Target(target)
    if find_target(chosen.kind.name).name != "wasm":
        return whole

    from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX
    from mlcweb.codegen.wasm.select_types import UnsupportedError
    from mlcweb.runtime.host.engine import engine
    from mlcweb.runtime.host.wasm_target import WasmKernel, options_for

    host = engine()
    functions = {
        var.name_hint: func for var, func in module.functions.items() if isinstance(func, PrimFunc)
    }
    options = options_for(host, options_of(chosen))
    kernel = WasmKernel(function, functions[function], options, host, lookup_in(functions))
    try:
        # A worker of the page has a memory of its own, which nobody shares.
        compiled = kernel.compiled((), host.shared and not in_browser())
    except UnsupportedError:
        return whole
    if compiled.python_calls:
        return whole
    return WasmArtifact(compiled.code, function, function + REPEAT_SUFFIX, compiled.scratch_bytes)
