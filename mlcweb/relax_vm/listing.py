"""The instructions of a function as text, and as Python."""

from __future__ import annotations

from collections.abc import Callable

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


_TEXTS: dict[type, Callable[..., str]] = {
    vm.Alloc: lambda i: f'%{i.dst} = alloc {dims.shape_text(i.shape)} "{i.dtype}"',
    vm.CallKernel: lambda i: f"call_kernel {i.kernel}({_registers(i.args)})",
    vm.CallPacked: _packed,
    vm.CallFunction: lambda i: f"%{i.dst} = call @{i.function}({_registers(i.args)})",
    vm.CallValue: lambda i: f"%{i.dst} = call %{i.callee}({_registers(i.args)})",
    vm.CallBuiltin: lambda i: f"%{i.dst} = {i.name}({_registers(i.args)})",
    vm.MakeFunction: lambda i: f"%{i.dst} = function @{i.function}({_registers(i.args)})",
    vm.LoadFunction: lambda i: f'%{i.dst} = function "{i.name}"',
    vm.MakeTuple: lambda i: f"%{i.dst} = tuple ({_registers(i.args)})",
    vm.GetItem: lambda i: f"%{i.dst} = item %{i.source}[{i.index}]",
    vm.MakeShape: lambda i: f"%{i.dst} = shape {dims.shape_text(i.values)}",
    vm.MakeScalar: lambda i: f"%{i.dst} = scalar {dims.extent_text(str(i.value))}",
    vm.Match: lambda i: f"match %{i.source} {one_line(i.info)}",
    vm.Branch: lambda i: f"%{i.dst} = if %{i.condition}",
    vm.Release: lambda i: f"release {_registers(i.registers)}",
}


def function_python(plan: vm.FunctionPlan) -> str:
    """A function as one of Python, with a call for each instruction; r0 is the register %0."""
    params = ", ".join(f"r{index}" for index in range(len(plan.params)))
    lines = [f"def {plan.name}({params}):  # {', '.join(p.name for p in plan.params)}"]
    for register, value in plan.constants:
        constant = one_line(value.struct_info) if isinstance(value, E.Constant) else value
        lines.append(f"    r{register} = constant({str(constant)!r})")
    lines += _python_body(plan.body, "    ")
    lines.append(f"    return r{plan.body.result}")
    return "\n".join(lines)


def _python_body(body: vm.Body, indent: str) -> list[str]:
    lines: list[str] = []
    for item in body.instructions:
        if isinstance(item, vm.Branch):
            for head, inner in ((f"if r{item.condition}:", item.true), ("else:", item.false)):
                lines += [indent + head, *_python_body(inner, indent + "    ")]
                lines.append(f"{indent}    r{item.dst} = r{inner.result}")
        else:
            lines.append(indent + _python_text(item))
    return lines


def _python_text(item: vm.Instruction) -> str:
    name, *arguments = _CALLS[type(item)](item)
    arguments += [f"r{register}" for register in getattr(item, "args", ())]
    result = getattr(item, "dst", None)
    return ("" if result is None else f"r{result} = ") + f"{name}({', '.join(arguments)})"


_CALLS: dict[type, Callable[..., tuple[str, ...]]] = {
    vm.Alloc: lambda i: ("alloc", dims.shape_text(i.shape), f'"{i.dtype}"'),
    vm.CallKernel: lambda i: ("call_kernel", f'"{i.kernel}"'),
    vm.CallPacked: lambda i: ("call_packed", f'"{i.name}"'),
    vm.CallFunction: lambda i: (i.function,),
    vm.CallValue: lambda i: (f"r{i.callee}",),
    vm.CallBuiltin: lambda i: ("call_builtin", f'"{i.name}"'),
    vm.MakeFunction: lambda i: ("partial", i.function),
    vm.LoadFunction: lambda i: ("load_function", f'"{i.name}"'),
    vm.MakeTuple: lambda i: ("make_tuple",),
    vm.GetItem: lambda i: ("get_item", f"r{i.source}", str(i.index)),
    vm.MakeShape: lambda i: ("make_shape", dims.shape_text(i.values)),
    vm.MakeScalar: lambda i: ("make_scalar", dims.extent_text(str(i.value))),
    vm.Match: lambda i: ("match", f"r{i.source}", repr(one_line(i.info))),
    vm.Release: lambda i: ("del_registers", _registers(i.registers).replace("%", "r")),
}
