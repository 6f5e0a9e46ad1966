"""RunCodegen: hand functions to external compilers, which are Python functions that are registered.

A compiler `c` is registered as "relax.ext.c". It takes the functions with the attribute "Codegen"
of "c", its options, and the names of the constants, and gives modules that have functions of the
global symbols of those. `relax.build` links them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.transform import ModulePass, Pass, PassInfo
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.op.base import call_dps_packed
from mlcweb.relax.transform.attach_extern_modules import EXTERNAL_MODULES
from mlcweb.relax.transform.dead_code import eliminate_dead_code
from mlcweb.runtime.registry import get_global_func

CONSTANTS = "const_name_to_constant"


def RunCodegen(
    target_options: Mapping[str, Mapping[str, Any]] | None = None,
    entry_functions: Sequence[str] | None = None,
) -> Pass:
    """Compile the functions with the attribute "Codegen" by the compilers that it names; calls of
    them become `R.call_dps_packed`. What the compilers give is the module's attribute
    "external_mods", and constants by their names "const_name_to_constant".

    Args:
        target_options: options for each compiler, by its name.
        entry_functions: names of functions to keep, beside those with a global symbol.
    """

    def transform(mod: IRModule, _: object) -> IRModule:
        return run_codegen(mod, target_options or {}, entry_functions or ())

    return ModulePass(transform, PassInfo(0, "RunCodegen"))


def run_codegen(
    mod: IRModule, options: Mapping[str, Mapping[str, Any]], entry_functions: Sequence[str]
) -> IRModule:
    external = {
        var: func
        for var, func in mod.functions.items()
        if isinstance(func, E.Function) and "Codegen" in func.attrs
    }
    names = {constant: name for func in external.values() for constant, name in _constants(func)}
    by_compiler: dict[str, list[E.Function]] = {}
    for func in external.values():
        by_compiler.setdefault(func.attrs["Codegen"], []).append(func)
    modules = list(mod.attrs.get(EXTERNAL_MODULES, ()))
    for compiler, parts in by_compiler.items():
        modules += _compiler(compiler)(parts, dict(options.get(compiler, {})), names)

    calls = _ExternalCalls(mod, external)
    functions: dict[GlobalVar, BaseFunc] = {
        var: calls.visit_expr(func) if isinstance(func, E.Function) else func
        for var, func in mod.functions.items()
        if var not in external
    }
    attrs = {**mod.attrs}
    if modules:
        attrs[EXTERNAL_MODULES] = modules
    if names:
        attrs[CONSTANTS] = {name: constant.data for constant, name in names.items()}
    new = mod.with_functions(functions).with_attrs(attrs)
    return eliminate_dead_code(new, entry_functions)


def _compiler(name: str) -> Callable[..., Any]:
    compiler = get_global_func(f"relax.ext.{name}", True)
    if compiler is None:
        raise TVMError(
            f'Codegen is not found: relax.ext.{name}. Register the compiler "{name}" with '
            f'@tvm.register_func("relax.ext.{name}")'
        )
    return compiler


def _symbol(func: E.Function) -> str:
    symbol = func.attrs.get("global_symbol")
    if symbol is None:
        raise TVMError('A function with the attribute "Codegen" needs a "global_symbol"')
    return symbol


def _constants(func: E.Function) -> list[tuple[E.Constant, str]]:
    prefix = f"{_symbol(func)}_{func.attrs['Codegen']}_const"
    constants = [node for node in walk(func.body) if isinstance(node, E.Constant)]
    return [(constant, f"{prefix}_{number}") for number, constant in enumerate(constants)]


class _ExternalCalls(PyExprMutator):
    """Calls external functions, which take the place for their results, as such."""

    def __init__(self, mod: IRModule, external: Mapping[GlobalVar, E.Function]) -> None:
        super().__init__(mod)
        self.external = external

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if isinstance(new, E.Call) and isinstance(new.op, GlobalVar) and new.op in self.external:
            symbol = _symbol(self.external[new.op])
            info = self.builder_.context.struct_info(new)
            return call_dps_packed(symbol, E.Tuple(new.args), info)
        return new
