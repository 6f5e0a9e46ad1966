"""From programs to runnable modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlcweb.codegen.external import ArrayArgument, called_name
from mlcweb.codegen.registry import (
    BOUNDS_CHECK,
    LLVM_OPT_LEVEL,
    LLVM_PROCESSOR,
    RELAXED_MADD,
    Kernel,
    default_target,
    find_target,
    target_names,
)
from mlcweb.ir.errors import InternalError, TVMError, nesting_limit
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.transform import PassContext, checked_config
from mlcweb.ir.visitor import find_nodes
from mlcweb.lower.parameters import with_kernel_parameters
from mlcweb.runtime.cuda_callbacks import postprocessed
from mlcweb.runtime.device import cpu
from mlcweb.runtime.host.gpu import (
    GpuDevice,
    GpuError,
    GpuLost,
    GpuMemoryError,
    gpu_device,
    why_no_gpu,
)
from mlcweb.runtime.module import Module, SourceModule, in_place
from mlcweb.runtime.registry import get_global_func
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

FOREIGN_NAMES = ("llvm", "c")
"""Kinds of targets that course code asks for by the name of another compiler."""

TARGET_OPTIONS = {
    "bounds_check": BOUNDS_CHECK,
    "bounds-check": BOUNDS_CHECK,
    "relaxed_madd": RELAXED_MADD,
    "relaxed-madd": RELAXED_MADD,
    "opt_level": LLVM_OPT_LEVEL,
    "opt-level": LLVM_OPT_LEVEL,
}
"""The attributes of targets that set options."""


PROCESSOR_ATTRIBUTES = ("mtriple", "mcpu", "mattr")
"""The attributes of targets that name a processor."""


class UnknownFunction(TVMError, ValueError):
    """A kernel calls a function of a name that nothing has."""


@nesting_limit("built")
def build(
    mod: IRModule | PrimFunc | Mapping[Any, PrimFunc],
    target: str | Mapping[str, Any] | Target | None = None,
    pipeline: str | Callable[[IRModule], IRModule] | None = "default",
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Module:
    """A runnable module from a module of TensorIR functions, or from a single function. A module
    with graph functions becomes what `relax.build` makes of it.

    Args:
        target: what to build for; by default the target of the surrounding ``with target:``, else
            the best for this machine, which "c" and "cpu" mean, too. "llvm" is machine code where
            LLVM is installed, for this very machine unless mcpu, mattr or mtriple say otherwise.
            It runs in this process, with arguments that were checked before the call, so a program
            that leaves its buffers damages memory. "wasm" is WebAssembly, which cannot do that;
            where LLVM is not, as in a page, "llvm" means it, too. `Target.code_generator` says
            which. For "cuda", "opencl", "metal", "vulkan" and "webgpu" the module's `imports` have
            the source of the kernels, which calls run: by the driver of CUDA or OpenCL for these
            where it is here, else as WGSL on the GPU that WebGPU reaches, else, for what that GPU
            cannot do, and with "-device=simulated", thread by thread on this machine; a line says
            once what is not run as it is named. "simulated" is a GPU that watches its threads, for
            small inputs: a call stops where two threads race, not all threads reach a barrier, or
            an index is out of bounds.
        name: the name of a single function; by default its "global_symbol", else "main".
        config: options by name, over those of the target's attributes (``"wasm -bounds_check=1"``)
            and of the surrounding `PassContext`. "mlcweb.bounds_check": compiled code stops at an
            access outside of its buffer and names buffer and index (default False; the targets
            that are not compiled always check). "mlcweb.relaxed_madd": a product and a sum of
            vectors may be rounded once (default: where the engine has the instruction).
        pipeline: a pass, or any function of modules, to run first; a name means no other than the
            lowering that is always done.
    """
    if callable(pipeline):
        mod = pipeline(mod if isinstance(mod, IRModule) else IRModule(_functions(mod, name)))
    if isinstance(mod, IRModule) and any(map(_is_graph_function, mod.functions.values())):
        return provided(__name__, "build_model")(mod, target)
    functions = _functions(mod, name)
    _check_symbols(functions)
    functions = {key: with_kernel_parameters(func) for key, func in functions.items()}
    chosen = _target(target)
    main = next(iter(functions)) if len(functions) == 1 else "main"
    options = options_of(chosen, config)
    if chosen and chosen.kind.name in DEVICE_KINDS:
        from mlcweb.codegen.gpu import device_source, inline_calls

        kind = chosen.kind.name
        functions = inline_calls(functions)
        main = next(iter(functions)) if len(functions) == 1 else main
        language, text = device_source(functions, kind, chosen.limits)
        if language == "cuda":
            text = postprocessed(text, chosen)
        source = SourceModule(language, text)
        return Module(_on_gpu(functions, chosen, options), main, kind, [source])
    entry = find_target(chosen.kind.name) if chosen else default_target()
    if chosen:
        _say_what_is_meant(chosen.kind.name, entry.name)
    name = str(chosen) if chosen and chosen.kind.name == entry.name == "llvm" else entry.name
    kernels = entry.build(functions, lookup_in(functions), options)
    shown = "c" if chosen and chosen.kind.name == "c" else ""
    return Module(kernels, main, name, source_format=shown)


def compile(
    mod: Any,
    target: str | Mapping[str, Any] | Target | None = None,
    *,
    relax_pipeline: Any = "default",
    tir_pipeline: Any = "default",
) -> Any:
    """A module that runs: what `relax.build` makes where there are graph functions, or `build`.
    The pipelines are as in both."""
    functions = mod.functions.values() if isinstance(mod, IRModule) else [mod]
    if any(map(_is_graph_function, functions)):
        build_model = provided(__name__, "build_model")
        return build_model(mod, target, relax_pipeline=relax_pipeline, tir_pipeline=tir_pipeline)
    return build(mod, target, pipeline=tir_pipeline)


def gpu_of(target: Target) -> GpuDevice | None:
    """The GPU that runs what is built for a target; None where there is none, where a simulated one
    is asked for, and for targets of other kinds."""
    if target.kind.name not in DEVICE_KINDS or target.attrs.get("device") == "simulated":
        return None
    return gpu_device(target.device_type)


def _on_gpu(
    functions: Mapping[str, PrimFunc], target: Target, options: Mapping[str, Any]
) -> Mapping[str, Kernel]:
    """The functions on the GPU that the target's devices are here; simulated where there is none,
    where that is asked for, or where another GPU stands in which cannot run them."""
    kind, device_type = target.kind.name, target.device_type
    gpu = gpu_of(target)
    why = why_no_gpu(device_type)
    if gpu is None:
        return _simulated(functions, target, options, why)
    from mlcweb.runtime.gpu.kernel import build as build_on_gpu

    if gpu.language == device_type:
        return build_on_gpu(functions, device_type)
    because = f": {why}" if why else ""
    say_once(
        f"{kind} on WebGPU",
        f'target="{kind}": kernels run as WGSL on WebGPU ({gpu.description}){because}',
    )
    try:
        kernels = build_on_gpu(functions, device_type)
    except (GpuLost, GpuMemoryError):
        raise
    except TVMError as error:
        return _simulated(functions, target, options, error.message)

    def simulated(name: str, error: GpuError) -> Kernel:
        return _simulated(functions, target, options, error.message)[name]

    return {name: _or_simulated(kernel, simulated) for name, kernel in kernels.items()}


def _or_simulated(kernel: Kernel, simulated: Callable[[str, GpuError], Kernel]) -> Kernel:
    """A kernel for a GPU that stands in for another; what is beyond its limits in a call, which
    says so before anything is launched, is simulated."""

    def run(*arguments: Any) -> None:
        try:
            kernel.run(*arguments)
        except (GpuLost, GpuMemoryError):
            raise
        except GpuError as error:
            other = simulated(kernel.name, error)
            with in_place(arguments) as views:
                other.run(*views)

    return replace(kernel, run=run)


def _simulated(
    functions: Mapping[str, PrimFunc], target: Target, options: Mapping[str, Any], why: str
) -> Mapping[str, Kernel]:
    """The functions run thread by thread, on arrays wherever these lie."""
    kind = target.kind.name
    because = f" ({why})" if why else ""
    say_once(kind, f'target="{kind}": kernels run thread by thread, on a simulated GPU{because}')
    lookup = lookup_in(functions)
    try:
        for call in (call for f in functions.values() for call in find_nodes(f.body, E.Call)):
            if (called := called_name(call)) is not None:
                lookup(called)
        kernels = default_target().build(functions, lookup, options)
    except TVMError as error:
        return {name: _without_device(name, func, kind, error) for name, func in functions.items()}
    if gpu_device(target.device_type) is not None:
        return {name: _on_copies(kernel) for name, kernel in kernels.items()}
    return kernels


def _without_device(name: str, func: PrimFunc, kind: str, error: TVMError) -> Kernel:
    """A kernel with types or functions of the GPU's language, which that GPU alone runs: it has
    source, and a call says what is missing."""

    def run(*arguments: Any) -> None:
        reason = f"Without a GPU for {kind} this does not run: {error.message}"
        raise TVMError(reason, error.span)

    return Kernel(name, func, run, source="")


def _on_copies(kernel: Any) -> Kernel:
    """A kernel of this machine for arrays of another device, which are copied for each call."""
    return Kernel(
        kernel.name,
        kernel.function,
        lambda *arguments: kernel.run(*arguments),
        kernel.source,
        kernel.language,
        kernel.run_aliased,
        kernel.time_batch,
    )


def _is_graph_function(func: BaseFunc) -> bool:
    """Whether it takes the virtual machine, of a layer above this one, to run a function."""
    return isinstance(func, BaseFunc) and not isinstance(func, PrimFunc)


def options_of(target: Target | None, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The options that are set: by the context, the target, or the call."""
    attrs = target.attrs if target else {}
    of_target = {TARGET_OPTIONS[key]: attrs[key] for key in attrs if key in TARGET_OPTIONS}
    processor = {key: attrs[key] for key in PROCESSOR_ATTRIBUTES if key in attrs}
    if target and target.kind.name == "llvm" and processor:
        of_target[LLVM_PROCESSOR] = processor
    return {**PassContext.current().config, **checked_config(of_target), **checked_config(config)}


def lookup_in(functions: Mapping[str, PrimFunc]) -> Callable[[str], Any]:
    """What calls out of kernels mean: functions of the module, else registered ones."""
    symbols = {str(func.attrs.get("global_symbol")): func for func in functions.values()}

    def lookup(name: str) -> Any:
        callee = functions.get(name) or symbols.get(name) or get_global_func(name, True)
        if callee is None:
            raise UnknownFunction(
                f'The program calls "{name}", which is not known here. Register it: '
                f'tvm.register_func("{name}", f), where f is a Python function (it gets NumPy '
                "arrays for pointers) or a PrimFunc, the micro-kernel, which is compiled with the "
                "program; or add that PrimFunc to the module. Code of other compilers (C, LLVM) "
                "cannot be linked"
            )
        return callee if isinstance(callee, PrimFunc) else _on_arrays(callee)

    return lookup


def _check_symbols(functions: Mapping[str, PrimFunc]) -> None:
    """An InternalError where two functions that differ are called by others alike."""
    names: dict[str, str] = {}
    for name, func in functions.items():
        symbol = str(func.attrs.get("global_symbol", name))
        other = names.setdefault(symbol, name)
        if other != name and not structural_equal(func, functions[other]):
            raise InternalError(
                f'Duplicate PrimFunc global_symbol \'{symbol}\': "{other}" and "{name}" have it; '
                "each function of a module needs its own"
            )


def _on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A packed function, which gets arrays for the buffers that a kernel passes whole."""

    def call(*arguments: Any) -> Any:
        return function(*map(_as_array, arguments))

    return call


def _as_array(argument: Any) -> Any:
    if not isinstance(argument, ArrayArgument):
        return argument
    from mlcweb.runtime.ndarray import NDArray
    from mlcweb.runtime.storage import BORROWED, HostStorage

    elements = argument.elements
    storage = HostStorage(elements.reshape(-1).view("uint8"), BORROWED)
    return NDArray(elements.shape, elements.dtype.name, cpu(), storage)


def _functions(mod: Any, name: str | None) -> dict[str, PrimFunc]:
    if isinstance(mod, PrimFunc):
        return {name or mod.attrs.get("global_symbol") or "main": mod}
    if not isinstance(mod, (IRModule, Mapping)):
        raise TVMError(
            f"build takes an IRModule or a PrimFunc, not {type(mod).__name__}; of tensor "
            "expressions te.create_prim_func([A, B]) makes a function"
        )
    functions: dict[str, PrimFunc] = {}
    functions_by_name: Any = getattr(mod, "functions", mod)
    for var, func in IRModule(functions_by_name).functions.items():
        if not isinstance(func, PrimFunc):
            raise TVMError(
                f'"{var.name_hint}" is a {type(func).__name__}; build takes TensorIR functions '
                "(relax.build compiles whole models)"
            )
        functions[var.name_hint] = func
    if not functions:
        raise TVMError("The module has no functions to build")
    if name is not None and len(functions) == 1:
        return {name: next(iter(functions.values()))}
    return functions


def _target(target: Any) -> Target | None:
    """What to build for; None for the best."""
    chosen = target if target is not None else Target.current()
    if chosen is None:
        return None
    chosen = Target(chosen)
    if chosen.is_source_only:
        targets = ", ".join(sorted({*target_names(), *DEVICE_KINDS}))
        raise TVMError(f'Nothing here builds for "{chosen.kind}"; targets are {targets}')
    return chosen


_said: set[str] = set()


def reset_warnings() -> None:
    """Forget what has been said once: a new program begins."""
    _said.clear()


def _say_what_is_meant(asked: str, meant: str) -> None:
    """One line where a target is not the compiler of its name."""
    if asked in FOREIGN_NAMES and asked != meant:
        text = "; get_source() gives C" if asked == "c" else ""
        say_once(
            asked,
            f'target="{asked}" means "{meant}" here, the fastest code generator of this machine'
            f"{text}",
        )


def say_once(key: str, line: str) -> None:
    """Print a line, unless one of this key has been printed since the program began."""
    if key not in _said and not _is_worker:
        _said.add(key)
        print(line, file=sys.stderr)


_is_worker = False


def leave_warnings_to_parent() -> None:
    """Say nothing once from now on: this process works for another, which says it."""
    global _is_worker
    _is_worker = True
