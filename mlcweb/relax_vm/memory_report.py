"""How much memory functions take for their tensors, when each has its own and when they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlcweb.ir.module import IRModule
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.transform import LegalizeOps
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.compiler import compile_module
from mlcweb.relax_vm.lifetimes import functions_that_keep
from mlcweb.relax_vm.memory_plan import MemoryPlan, plan_memory
from mlcweb.tir.expr import Var as PrimVar


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of each function. Parameters and constants are not counted."""

    functions: Mapping[str, MemoryPlan]

    @property
    def bytes_before(self) -> int:
        """All tensors of all functions, each by itself."""
        return sum(plan.bytes_before for plan in self.functions.values())

    @property
    def bytes_after(self) -> int:
        """What all functions take with their tensors in shared memory."""
        return sum(plan.bytes_after for plan in self.functions.values())

    def __str__(self) -> str:
        return "\n".join(
            ["Memory usage estimation:", *(_lines(*item) for item in self.functions.items())]
        )


def _lines(name: str, plan: MemoryPlan) -> str:
    before, after = plan.bytes_before, plan.bytes_after
    count = len(plan.tensors) + len(plan.results)
    lines = [
        f"- Function {name}:",
        f"  without planning: {count} tensor(s) of constant size, {before} bytes",
        f"  with planning: {len(plan.pieces) + len(plan.results)} allocation(s), {after} bytes",
    ]
    if before:
        lines.append(f"  which is {100 * after / before:.1f} % of the memory")
    if plan.dynamic:
        lines.append(f"  and {plan.dynamic} tensor(s) whose size is known when it runs")
    return "\n".join(lines)


def memory_report(
    plans: Mapping[str, vm.FunctionPlan],
    keeps_arguments: Callable[[str], bool],
    sizes: Mapping[str, int],
) -> MemoryReport:
    """The report; `sizes` are values for symbolic extents by name."""
    return MemoryReport(
        {
            name: plan_memory(plan, _values(plan, sizes), keeps_arguments)
            for name, plan in plans.items()
        }
    )


def _values(plan: vm.FunctionPlan, sizes: Mapping[str, int]) -> dict[PrimVar, int]:
    return {
        var: sizes[var.name]
        for param in plan.params
        if param.info is not None
        for var in dims.prim_vars(param.info)
        if var.name in sizes
    }


def estimate_memory_usage(mod: IRModule | E.Function) -> str:
    """The memory that graph functions take for their tensors, before and after planning, as
    text. Operators that are left are lowered first."""
    if isinstance(mod, E.Function):
        mod = IRModule.from_expr(mod)
    plans = compile_module(LegalizeOps()(mod))
    return str(memory_report(plans, functions_that_keep(plans).__contains__, {}))
