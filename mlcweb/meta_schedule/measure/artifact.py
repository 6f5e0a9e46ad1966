"""What is measured: machine code, made of a program once, and the content that it runs on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlcweb.analysis.threads import launches_threads
from mlcweb.arith.index_map import IndexMap
from mlcweb.codegen.registry import default_target
from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.ir.transform import PassContext
from mlcweb.lower.layout_preproc import LayoutCopy, layout_copies, without_layout_copies
from mlcweb.lower.scalar_elements import scalar_elements
from mlcweb.runtime.build import gpu_of, lookup_in, options_of, say_once
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.host.gpu import why_no_gpu
from mlcweb.runtime.ndarray import NDArray, empty, from_bits, to_bits
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir import PrimFunc, Var
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.function import prim_funcs

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from mlcweb.codegen.llvm.machine import Processor
    from mlcweb.runtime.device import Device


@dataclass(frozen=True, slots=True)
class ParamLayout:
    """The layout in which a kernel takes a parameter whose layout is free.

    Attributes:
        number: the position of the parameter.
        shape: of the array in that layout.
        index_map: the text of a Python function: at which indices there an element lies.
    """

    number: int
    shape: tuple[int, ...]
    index_map: str

    def arranged(self, array: np.ndarray) -> np.ndarray:
        """An array in that layout."""
        import numpy as np

        result = np.empty(self.shape, array.dtype)
        indices = np.ogrid[tuple(map(slice, array.shape))]
        result[eval(self.index_map)(*indices)] = array
        return result


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
    layouts: tuple[ParamLayout, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeArtifact:
    """Machine code for a processor: a self-contained object file. Equal artifacts are equal code.

    `function` and `repeated` are as in `WasmArtifact`; they take the buffers' addresses.
    """

    code: bytes
    function: str
    repeated: str
    processor: Processor
    layouts: tuple[ParamLayout, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ModuleArtifact:
    """A program for a target whose code cannot travel; it is built where it is measured, in the
    `PassContext` of the search; where it is `on_gpu`, for the GPU there, or not at all."""

    module: IRModule
    function: str
    target: str
    context: PassContext | None = None
    on_gpu: bool = False
    layouts: tuple[ParamLayout, ...] = ()


KernelCode = WasmArtifact | NativeArtifact

Artifact = KernelCode | ModuleArtifact


def build_artifact(
    module: IRModule, function: str, target: str = "llvm", context: PassContext | None = None
) -> Artifact:
    """Compile a function of a module as `build` does; what is for a GPU, where none is, for this
    machine's processor, thread by thread. Marked copies of parameters in other layouts
    (`RewriteLayout`) are no part of it: it takes those parameters in these layouts.

    Args:
        target: what to build for, as `build` takes it.
        context: the settings of another process; by default those here.
    """
    if context is not None:
        with context:
            return build_artifact(module, function, target)
    module, layouts = with_param_layouts(module, function)
    func = scalar_elements(module[function])
    if func is not module[function]:
        var = module.get_global_var(function)
        module = module.with_functions({**module.functions, var: func})
    own_context = PassContext.current().with_instruments(())
    whole = ModuleArtifact(module, function, target, own_context, layouts=layouts)
    chosen = Target(target)
    if gpu_of(chosen) is not None:
        return replace(whole, on_gpu=True)
    for_gpu = chosen.kind.name in DEVICE_KINDS
    compile_code = _COMPILERS.get(default_target().name if for_gpu else chosen.code_generator)
    if compile_code is None:
        return whole

    from mlcweb.codegen.processor.selection import UnsupportedError

    try:
        compiled = compile_code(prim_funcs(module), function, options_of(chosen))
    except UnsupportedError:
        return whole
    return whole if compiled is None else replace(compiled, layouts=layouts)


def with_param_layouts(module: IRModule, function: str) -> tuple[IRModule, tuple[ParamLayout, ...]]:
    """A module whose function takes parameters in the layouts to which it brings them by marked
    copies, and these layouts; symbolic ones stay."""
    var = module.get_global_var(function)
    func = prim_funcs(module)[function]
    copies = [copy for copy in layout_copies(func) if constant_shape(copy.buffer) is not None]
    if not copies:
        return module, ()
    changed = {**module.functions, var: without_layout_copies(func, copies)}
    return module.with_functions(changed), tuple(map(_param_layout, copies))


def _param_layout(copy: LayoutCopy) -> ParamLayout:
    shape = constant_shape(copy.buffer)
    assert shape is not None
    layout = copy.layout.with_index_dtype("int32")
    indices = tuple(Var(f"i{n}", "int32") for n in range(len(layout.initial_indices)))
    index_map = IndexMap(indices, tuple(layout.map_indices(indices)))
    return ParamLayout(copy.number, shape, index_map.to_python_string())


def _wasm_code(
    functions: Mapping[str, PrimFunc], name: str, config: Mapping[str, Any]
) -> WasmArtifact | None:
    """A function as WebAssembly; None where it takes threads or Python to run it."""
    from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX
    from mlcweb.runtime.host.engine import engine
    from mlcweb.runtime.host.wasm_target import WasmKernel, options_for

    host = engine()
    options = options_for(host, config)
    if in_browser():
        # A worker of the page is one thread, with a memory of its own.
        options = replace(options, parallel=False)
    kernel = WasmKernel(name, functions[name], options, host, lookup_in(functions))
    compiled = kernel.compiled((), host.shared and not in_browser())
    if compiled.python_calls or compiled.parallel:
        return None
    return WasmArtifact(compiled.code, name, name + REPEAT_SUFFIX, compiled.scratch_bytes)


def _native_code(
    functions: Mapping[str, PrimFunc], name: str, config: Mapping[str, Any]
) -> NativeArtifact | None:
    """A function as machine code; None where it takes threads or Python to run it."""
    from mlcweb.codegen.llvm.kernel import REPEAT_SUFFIX, symbol
    from mlcweb.runtime.host.llvm_engine import Compilation
    from mlcweb.runtime.host.llvm_target import LlvmKernel
    from mlcweb.runtime.host.llvm_target import options_of as llvm_options

    options = llvm_options(config)
    kernel = LlvmKernel(name, functions[name], options, lookup_in(functions))
    compiled = kernel.compiled({name: functions[name]})
    if compiled.python_calls or compiled.parallel:
        return None
    code = Compilation(compiled.text, options.processor, options.level).code()
    exported = symbol(name)
    return NativeArtifact(code, exported, exported + REPEAT_SUFFIX, options.processor)


_COMPILERS = {"wasm": _wasm_code, "llvm": _native_code}


def reference_target(module: IRModule, target: str) -> str:
    """What the unscheduled program is built for: a GPU runs it only where it has threads already,
    and this machine's processor otherwise.

    Args:
        target: what its schedules are built for.
    """
    functions = prim_funcs(module).values()
    if Target(target).kind.name not in DEVICE_KINDS or any(map(launches_threads, functions)):
        return target
    return "llvm"


def warn_of_other_device(target: str) -> None:
    """Say once where times for a GPU are those of another device; each search does as it starts."""
    chosen = Target(target)
    kind, device_type = chosen.kind.name, chosen.device_type
    if kind not in DEVICE_KINDS:
        return
    gpu = gpu_of(chosen)
    why = why_no_gpu(device_type)
    because = f" ({why})" if why else ""
    if gpu is None:
        say_once(
            f"{kind} measured",
            f'target="{kind}": no GPU measures schedules here{because}. Their times are those of '
            "this machine's processor, which runs thread by thread; they do not tell which is "
            "fastest on a GPU",
        )
    elif gpu.language != device_type:
        say_once(
            f"{kind} measured",
            f'target="{kind}": schedules are measured as WGSL on WebGPU ({gpu.description})'
            f"{because}",
        )


TOLERANCES = {"bfloat16": 6e-2, "float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""Largest error relative to the largest value of an array: schedules may reorder sums. Those of
bfloat16, where each step is rounded to 8 bits, differ by 6 % where they are 256 numbers long."""


class WrongResult(TVMError):
    """A scheduled program computed something else than the unscheduled one."""


@dataclass(frozen=True, slots=True)
class TrialInputs:
    """The buffers of a function: their names and dtypes, their content before a call, and their
    content after a correct call, as soon as that is known. The content is what `NDArray.numpy`
    gives: float32 for bfloat16."""

    function: str
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...] | None = None

    def arrays(self, dev: Device | None = None) -> list[NDArray]:
        """New arrays for a call."""
        pairs = zip(self.inputs, self.dtypes, strict=True)
        return [empty(content.shape, dtype, dev).copyfrom(content) for content, dtype in pairs]

    def arranged(self, layouts: Sequence[ParamLayout]) -> TrialInputs:
        """The same for a kernel that takes parameters, which it only reads, in other layouts."""
        inputs, expected = list(self.inputs), list(self.expected or ())
        for layout in layouts:
            inputs[layout.number] = layout.arranged(self.inputs[layout.number])
            if expected:
                expected[layout.number] = inputs[layout.number]
        return replace(self, inputs=tuple(inputs), expected=tuple(expected) or None)

    def restored(
        self, results: tuple[np.ndarray, ...], layouts: Sequence[ParamLayout]
    ) -> tuple[np.ndarray, ...]:
        """What such a kernel left, with those parameters as they are here."""
        arranged = {layout.number for layout in layouts}
        pairs = enumerate(zip(self.inputs, results, strict=True))
        return tuple(own if n in arranged else result for n, (own, result) in pairs)

    def check(self, results: tuple[np.ndarray, ...]) -> None:
        """Compare what a call left in the buffers with what is expected, if that is known.

        Raises:
            WrongResult: it is something else.
        """
        for name, dtype, result, expected in zip(
            self.names, self.dtypes, results, self.expected or results, strict=True
        ):
            if result is not expected:
                _compare(name, result, expected, tolerance(expected, dtype))


def random_inputs(module: IRModule, function: str | None = None) -> TrialInputs:
    """Random content for all buffers of a function, the same each time.

    Args:
        function: its name; the only function, or "main", by default.

    Raises:
        TVMError: the function takes something else than buffers of constant shape, or of a dtype
            that arrays have not, such as float8_e3m4.
    """
    name = the_function_name(module, function)
    func = scalar_elements(module[name])
    buffers = func.parameter_buffers
    if len(buffers) != len(func.params):
        raise TVMError(f'"{name}" takes more than buffers, so it cannot be run on random content')
    kinds = []
    for buffer in buffers:
        shape = constant_shape(buffer)
        if shape is None:
            raise TVMError(
                f'The buffer "{buffer.name}" of "{name}" has no constant shape; '
                "bind its sizes to numbers before searching"
            )
        kinds.append((shape, buffer.dtype))
    names, dtypes = (tuple(getattr(each, what) for each in buffers) for what in ("name", "dtype"))
    return TrialInputs(name, names, dtypes, random_contents(kinds))


def random_contents(kinds: Iterable[tuple[tuple[int, ...], str]]) -> tuple[np.ndarray, ...]:
    """Random content for arrays of these shapes and dtypes, the same each time: floats from 0 to 1,
    small integers. bfloat16 comes as float32."""
    import numpy as np

    generator = np.random.default_rng(0)

    def content(shape: tuple[int, ...], dtype: str) -> np.ndarray:
        if "float" in dtype:
            return generator.uniform(0.0, 1.0, shape)
        return generator.integers(0, 2 if dtype == "bool" else 8, shape)

    return tuple(from_bits(to_bits(content(*kind), kind[1]), kind[1]) for kind in kinds)


def tolerance(expected: np.ndarray, dtype: str) -> float:
    """The largest difference from the expected content of an array of a dtype that reordered sums
    may make to its finite numbers; 0 for numbers that are not floating."""
    import numpy as np

    if expected.dtype.kind != "f":
        return 0.0
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    return TOLERANCES[dtype] * scale


def _compare(name: str, result: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    import numpy as np

    right = result == expected
    if expected.dtype.kind == "f":
        # What is not a number, or infinite, has to be so at the same places.
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(result - expected) <= tolerance
        right |= (near & np.isfinite(expected)) | (np.isnan(result) & np.isnan(expected))
    wrong = ~right
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise WrongResult(
            f"{int(wrong.sum())} of {wrong.size} elements of {name} differ from the unscheduled "
            f"program's; the first is {name}{list(place)}: {result[place]} instead of "
            f"{expected[place]}"
        )
