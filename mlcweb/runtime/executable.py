"""`tvm.runtime.Executable`: what compiling a program gives."""

from __future__ import annotations

from abc import ABC
from typing import Any

from mlcweb.runtime.module import Module, PackedFunc


class Executable(ABC):  # noqa: B024 (abstract only to have other classes registered)
    """A compiled program. `tvm.compile` gives a `Module` or a model's executable, which are
    instances of this class; made of a module, it is that module in TVM's form."""

    def __init__(self, mod: Module) -> None:
        self.mod = mod

    def jit(
        self, *, fcompile: object = None, addons: object = None, force_recompile: bool = False
    ) -> Module:
        """The module, which is ready to run."""
        return self.mod

    def __getitem__(self, name: str) -> PackedFunc:
        return self.mod[name]

    def __call__(self, *arguments: Any) -> Any:
        return self.mod(*arguments)

    def export_library(self, file_name: Any, **options: Any) -> None:
        """Write the module to a file; see `Module.export_library`."""
        self.mod.export_library(file_name, **options)


Executable.register(Module)
