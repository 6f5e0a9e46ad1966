"""What `relax.build` makes: instructions of the graph functions, and the compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.relax.transform.attach_extern_modules import EXTERNAL_MODULES
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.lifetimes import functions_that_keep
from mlcweb.relax_vm.listing import function_python, function_text
from mlcweb.relax_vm.memory_report import MemoryReport, memory_report
from mlcweb.runtime import executable
from mlcweb.runtime.library import export_library
from mlcweb.runtime.module import Module, PackedFunc

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine


class Executable:
    """A module ready for a virtual machine.

    `plans` are its graph functions as instructions, `library` its compiled functions (None where
    there are none), and `linked` are functions of the registry that were compiled with it, by name.
    `module` is the program after all passes, from which they were made.
    """

    def __init__(
        self,
        plans: Mapping[str, vm.FunctionPlan],
        library: Module | None,
        linked: Mapping[str, Callable[..., object]],
        module: IRModule,
    ) -> None:
        self.plans = dict(plans)
        self.library = library
        self.linked = dict(linked)
        self.module = module

    @property
    def mod(self) -> Executable:
        """What a virtual machine takes: this."""
        return self

    def jit(self, **options: object) -> Executable:
        """Ready to run; it always is."""
        return self

    def export_library(self, file_name: str | Path, **options: object) -> None:
        """Write the executable with its constants to one file, which `tvm.runtime.load_module`
        reads; see `Module.export_library`."""
        if EXTERNAL_MODULES in self.module.attrs:
            raise TVMError("A model with code of external compilers cannot be saved")
        kernels = {name: self.kernel(name).kernel for name in self.kernel_names}
        target = self.library.target if self.library else "cpu"
        export_library(file_name, kernels, target, None, self.module)

    def kernel(self, name: str) -> PackedFunc:
        """A compiled function."""
        assert self.library is not None
        return self.library.functions[name]

    @property
    def kernel_names(self) -> list[str]:
        """The compiled functions of the module."""
        return list(self.library.functions) if self.library else []

    @property
    def function_names(self) -> list[str]:
        """What can be called by name."""
        return [*self.plans, *(name for name in self.kernel_names if name not in self.plans)]

    @cached_property
    def packed_names(self) -> list[str]:
        """The registered functions that are called."""
        names = [
            instruction.name
            for plan in self.plans.values()
            for instruction in vm.walk(plan.body)
            if isinstance(instruction, vm.CallPacked)
            or (isinstance(instruction, vm.LoadFunction) and not instruction.compiled)
        ]
        return list(dict.fromkeys(names))

    @cached_property
    def _keeping(self) -> frozenset[str]:
        return functions_that_keep(self.plans)

    def keeps_arguments(self, name: str) -> bool:
        """Whether a graph function calls code that may keep what it is given."""
        return name in self._keeping

    def memory_report(self, **sizes: int) -> MemoryReport:
        """The memory that each function takes for its tensors, with and without sharing. Keywords
        are values for symbolic extents by name."""
        return memory_report(self.plans, self.keeps_arguments, sizes)

    def stats(self) -> str:
        """How much there is: functions, constants, instructions."""
        lines = ["Executable of the virtual machine:"]
        for plan in self.plans.values():
            count = sum(1 for _ in vm.walk(plan.body))
            lines.append(
                f"  {plan.name}: {len(plan.params)} parameter(s), {plan.registers} register(s), "
                f"{len(plan.constants)} constant(s), {count} instruction(s)"
            )
        lines.append(f"  Compiled functions: {', '.join(self.kernel_names) or 'none'}")
        lines.append(f"  Registered functions: {', '.join(self.packed_names) or 'none'}")
        return "\n".join(lines)

    def as_text(self) -> str:
        """The instructions of all functions."""
        return "\n\n".join(function_text(plan) for plan in self.plans.values())

    def as_python(self) -> str:
        """The instructions of all functions, as functions of Python."""
        return "\n\n".join(function_python(plan) for plan in self.plans.values())

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function on the processor, as of a virtual machine; what tells of the executable
        itself, too, as TVM has it in executables that were loaded."""
        if name in ("stats", "as_text", "as_python") and name not in self.function_names:
            return getattr(self, name)
        return self._machine[name]

    @cached_property
    def _machine(self) -> VirtualMachine:
        from mlcweb.relax_vm.virtual_machine import VirtualMachine
        from mlcweb.runtime.device import cpu

        return VirtualMachine(self, cpu())

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {', '.join(self.plans)}>"


executable.Executable.register(Executable)

VMExecutable = Executable
