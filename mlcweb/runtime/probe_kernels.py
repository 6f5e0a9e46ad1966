"""Kernels of our own that look at the machine: written in WebAssembly, called like any other."""

from __future__ import annotations

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.module import MAXIMUM_PAGES, Export, Function, Import, Memory, Module
from mlcweb.runtime.host.engine import Instance, engine


def module_code(function: Function, shared: bool = False) -> bytes:
    """A module that exports one function and imports its memory, which threads may share."""
    memory = Memory(1, MAXIMUM_PAGES, True) if shared else Memory(1)
    module = Module(
        functions=(function,),
        imports=(Import("env", "memory", memory),),
        exports=(Export(function.name, "function", function.name),),
    )
    return encode(module)


def instance_of(function: Function) -> Instance:
    """A function on the memory of this process or page."""
    host = engine()
    return host.instantiate(module_code(function, host.shared))


COUNT_DOWN = "local.get number  i32.const 1  i32.sub  local.tee number"
"""Takes one from the parameter `number`, and leaves what remains on the stack."""
