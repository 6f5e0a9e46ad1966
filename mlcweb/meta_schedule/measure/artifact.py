"""What is measured: machine code, made of a program once, and the content that it runs on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlcweb.codegen.registry import default_target, find_target
from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.ir.transform import PassContext
from mlcweb.runtime.build import lookup_in, options_of
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir import IntImm, PrimFunc

if TYPE_CHECKING:
    import numpy as np


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


@dataclass(frozen=True, slots=True, eq=False)
class ModuleArtifact:
    """A program for a target whose code cannot travel; it is built where it is measured, in the
    `PassContext` of the search."""

    module: IRModule
    function: str
    target: str
    context: PassContext | None = None


Artifact = WasmArtifact | ModuleArtifact


def build_artifact(
    module: IRModule, function: str, target: str = "llvm", context: PassContext | None = None
) -> Artifact:
    """Compile a function of a module as `build` does; what is for a device with threads is measured
    where its calls run, thread by thread on this machine.

    Args:
        target: what to build for, as `build` takes it.
        context: the settings of another process; by default those here.
    """
    if context is not None:
        with context:
            return build_artifact(module, function, target)
    whole = ModuleArtifact(module, function, target, PassContext.current().with_instruments(()))
    chosen = Target(target)
    on_device = chosen.kind.name in DEVICE_KINDS
    entry = default_target() if on_device else find_target(chosen.kind.name)
    if entry.name != "wasm":
        return whole

    from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX
    from mlcweb.codegen.wasm.select_types import UnsupportedError
    from mlcweb.runtime.host.engine import engine
    from mlcweb.runtime.host.wasm_target import WasmKernel, options_for

    host = engine()
    functions = {
        var.name_hint: func for var, func in module.functions.items() if isinstance(func, PrimFunc)
    }
    options = options_for(host, options_of(chosen))
    kernel = WasmKernel(function, functions[function], options, host, lookup_in(functions))
    try:
        # A worker of the page has a memory of its own, which nobody shares.
        compiled = kernel.compiled((), host.shared and not in_browser())
    except UnsupportedError:
        return whole
    if compiled.python_calls:
        return whole
    return WasmArtifact(compiled.code, function, function + REPEAT_SUFFIX, compiled.scratch_bytes)


TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""Largest error relative to the largest value of an array: schedules may reorder sums."""


class WrongResult(TVMError):
    """A scheduled program computed something else than the unscheduled one."""


@dataclass(frozen=True, slots=True)
class TrialInputs:
    """The buffers of a function: their names, their content before a call, and their content after
    a correct call, as soon as that is known."""

    function: str
    names: tuple[str, ...]
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...] | None = None

    def expecting(self, results: tuple[np.ndarray, ...]) -> TrialInputs:
        """The same with the content of the buffers after a correct call."""
        return replace(self, expected=results)

    def check(self, results: tuple[np.ndarray, ...]) -> None:
        """Compare what a call left in the buffers with what is expected, if that is known.

        Raises:
            WrongResult: it is something else.
        """
        for name, result, expected in zip(
            self.names, results, self.expected or results, strict=True
        ):
            if result is not expected:
                _compare(name, result, expected)


def random_inputs(module: IRModule, function: str | None = None, seed: int = 0) -> TrialInputs:
    """Random content for all buffers of a function, the same for the same seed.

    Args:
        function: its name; the only function, or "main", by default.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
    """
    import numpy as np

    name = the_function_name(module, function)
    buffers = module[name].parameter_buffers
    if len(buffers) != len(module[name].params):
        raise TVMError(f'"{name}" takes more than buffers, so it cannot be run on random content')
    generator = np.random.default_rng(seed)
    arrays = []
    for buffer in buffers:
        shape = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
        if len(shape) != len(buffer.shape):
            raise TVMError(
                f'The buffer "{buffer.name}" of "{name}" has no constant shape; '
                "bind its sizes to numbers before searching"
            )
        if buffer.dtype.startswith("float"):
            arrays.append(generator.uniform(0.0, 1.0, shape).astype(buffer.dtype))
        else:
            highest = 2 if buffer.dtype == "bool" else 8
            arrays.append(generator.integers(0, highest, shape).astype(buffer.dtype))
    return TrialInputs(name, tuple(buffer.name for buffer in buffers), tuple(arrays))


def tolerance(expected: np.ndarray) -> float:
    """The largest difference from the expected content that reordered sums may make; 0 for
    numbers that are not floating."""
    import numpy as np

    if expected.dtype.kind != "f":
        return 0.0
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return TOLERANCES.get(str(expected.dtype), 1e-4) * scale


def _compare(name: str, result: np.ndarray, expected: np.ndarray) -> None:
    import numpy as np

    if result.dtype.kind != "f":
        wrong = result != expected
    else:
        # Written so that NaN counts as wrong.
        wrong = ~(np.abs(result - expected) <= tolerance(expected))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise WrongResult(
            f"{int(wrong.sum())} of {wrong.size} elements of {name} differ from the unscheduled "
            f"program's; the first is {name}{list(place)}: {result[place]} instead of "
            f"{expected[place]}"
        )
