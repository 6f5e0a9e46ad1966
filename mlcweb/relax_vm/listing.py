"""The instructions of a function as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.text import one_line


def function_text(plan: vm.FunctionPlan) -> str:
    """A function: its parameters and constants, then a line for each instruction."""
    params = ", ".join(f"%{index} {param.name}" for index, param in enumerate(plan.params))
    lines = [f"@{plan.name}({params}):"]
    for register, value in plan.constants:
        shown = one_line(value.struct_info) if isinstance(value, E.Constant) else repr(value)
        lines.append(f"  %{register} = const {shown}")
    lines += _body(plan.body, "  ")
    lines.append(f"  return %{plan.body.result}")
    return "\n".join(lines)


def _body(body: vm.Body, indent: str) -> list[str]:
    lines: list[str] = []
    for item in body.instructions:
        lines.append(indent + _TEXTS[type(item)](item))
        for name, inner in zip(("then", "else"), vm.bodies(item), strict=False):
            lines.append(f"{indent}{name}:")
            lines += _body(inner, indent + "  ")
            lines.append(f"{indent}  -> %{inner.result}")
    return lines


def _registers(registers: tuple[vm.Register, ...]) -> str:
    return ", ".join(f"%{register}" for register in registers)


def _packed(item: vm.CallPacked) -> str:
    result = "" if item.dst is None else f"%{item.dst} = "
    return f'{result}call_packed "{item.name}" ({_registers(item.args)})'


_TEXTS: dict[type, Callable[[Any], str]] = {
    vm.Alloc: lambda i: f'%{i.dst} = alloc {dims.shape_text(i.shape)} "{i.dtype}"',
    vm.CallKernel: lambda i: f"call_kernel {i.kernel}({_registers(i.args)})",
    vm.CallPacked: _packed,
    vm.CallFunction: lambda i: f"%{i.dst} = call @{i.function}({_registers(i.args)})",
    vm.CallValue: lambda i: f"%{i.dst} = call %{i.callee}({_registers(i.args)})",
    vm.CallBuiltin: lambda i: f"%{i.dst} = {i.name}({_registers(i.args)})",
    vm.MakeFunction: lambda i: f"%{i.dst} = function @{i.function}({_registers(i.args)})",
    vm.MakeTuple: lambda i: f"%{i.dst} = tuple ({_registers(i.args)})",
    vm.GetItem: lambda i: f"%{i.dst} = item %{i.source}[{i.index}]",
    vm.MakeShape: lambda i: f"%{i.dst} = shape {dims.shape_text(i.values)}",
    vm.MakeScalar: lambda i: f"%{i.dst} = scalar {dims.extent_text(str(i.value))}",
    vm.Match: lambda i: f"match %{i.source} {one_line(i.info)}",
    vm.Branch: lambda i: f"%{i.dst} = if %{i.condition}",
    vm.Release: lambda i: f"release {_registers(i.registers)}",
}
