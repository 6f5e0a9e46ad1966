"""`relax.build`: from a module with graph functions to an executable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import TypeAlias

from mlcweb.dlight.defaults import schedule_by_default
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.constant_data import ArrayLike
from mlcweb.relax.pipeline import get_pipeline, has_operators
from mlcweb.relax.transform import LegalizeOps
from mlcweb.relax.transform.attach_extern_modules import EXTERNAL_MODULES
from mlcweb.relax.transform.overwriting import write_over_arguments
from mlcweb.relax_vm.compiler import compile_module
from mlcweb.relax_vm.executable import Executable, VMExecutable
from mlcweb.runtime.build import build as build_library
from mlcweb.runtime.module import Module, PackedFunc
from mlcweb.runtime.registry import get_global_func
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir.function import PrimFunc, prim_funcs

TargetLike: TypeAlias = "str | Mapping[str, object] | Target | None"
"""What `Target` takes; None: the one that is entered."""

Pipeline: TypeAlias = Callable[[IRModule], IRModule]
"""A pass, or any function of modules."""

__all__ = ["Executable", "VMExecutable", "build"]


def build(
    mod: IRModule | E.Function,
    target: TargetLike = None,
    params: Mapping[str, E.Expr | ArrayLike] | None = None,
    relax_pipeline: Pipeline | str | None = "default",
    tir_pipeline: Pipeline | str | None = "default",
    exec_mode: str = "bytecode",
    *,
    system_lib: bool | None = None,
) -> Executable:
    """Compile a module: its graph functions to instructions of a virtual machine, its functions of
    TensorIR to machine code.

    Operators are lowered and fused first (`relax.get_pipeline("default")`). The module itself is
    not changed.

    Args:
        target: as in `tvm.build`. Functions that nobody wrote or scheduled get default schedules
            for it (`mlcweb.dlight.defaults`).
        params: values for parameters of "main", by name, which become constants.
        relax_pipeline: passes to run first: the name of a pipeline, or a pass, or any function of
            modules, after which operators that are left are lowered; None for no passes at all.
        tir_pipeline: a pass, or any function of modules, for the functions of TensorIR, before they
            are lowered to machine code; a name means no other than that lowering.
        exec_mode, system_lib: accepted as in TVM; there is one way here.

    Raises:
        DiagnosticError: a call that nothing can run, by operator, function and binding.
        UnknownPipeline: there is no pipeline of that name.
    """
    if isinstance(mod, E.Function):
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise TVMError(f"relax.build takes an IRModule, not {type(mod).__name__}")
    if params:
        mod = _bound(mod, params)
    ready = prepare(mod, relax_pipeline, target)
    if callable(tir_pipeline):
        ready = tir_pipeline(ready)
    return _built(ready, target)


def load_model(ready: IRModule, library: Module | None, target: str) -> Executable:
    """The executable of a module that `build` has prepared before. `library` has its compiled
    functions; None compiles them."""
    if library is None:
        return _built(ready, target)
    return Executable(compile_module(ready), library, {}, ready)


def _built(ready: IRModule, target: TargetLike) -> Executable:
    chosen = Target(target) if target is not None else Target.current()
    ready = schedule_by_default(ready, chosen)
    if chosen is None or chosen.kind.name not in DEVICE_KINDS:
        ready = write_over_arguments(ready)
    plans = compile_module(ready)
    # What computes numbers on the host, the machine computes itself.
    host = {name for name, func in prim_funcs(ready).items() if "tir.is_host_func" in func.attrs}
    kernels = {name: func for name, func in prim_funcs(ready).items() if name not in host}
    executable = Executable(plans, None, {}, ready)
    executable.linked = _external_functions(ready, executable.packed_names)
    registered = {
        name: func
        for name in executable.packed_names
        for func in (get_global_func(name, True),)
        if isinstance(func, PrimFunc) and name not in executable.linked
    }
    if not (kernels or registered):
        return executable
    # Both go through one compilation, and by their names they cannot meet.
    library = build_library(IRModule({**kernels, **registered}), target)
    linked = executable.linked | {name: library.functions[name] for name in registered}
    return Executable(plans, library, linked, ready)


def _external_functions(mod: IRModule, names: Iterable[str]) -> dict[str, PackedFunc]:
    """Those of the functions that external compilers gave (see `run_codegen.py`)."""
    functions: dict[str, PackedFunc] = {}
    for module in mod.attrs.get(EXTERNAL_MODULES, ()):
        functions = {**module.functions, **functions}
    return {name: functions[name] for name in names if name in functions}


def prepare(
    mod: IRModule, pipeline: Pipeline | str | None = "default", target: TargetLike = None
) -> IRModule:
    """A module after the passes of a pipeline, all of its operators lowered; the arguments are
    those of `build`."""
    if pipeline is None:
        return mod
    if isinstance(pipeline, str):
        pipeline = get_pipeline(pipeline)
    with nullcontext() if target is None else Target(target):
        ready = pipeline(mod)
        return LegalizeOps()(ready) if has_operators(ready) else ready


def _bound(mod: IRModule, params: Mapping[str, E.Expr | ArrayLike]) -> IRModule:
    bound = mod.copy()
    bound["main"] = mod["main"].bind_params(params)
    return bound
