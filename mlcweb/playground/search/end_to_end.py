"""What a trial is worth to the whole model: the time of its graph function before and after."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.playground.protocol.search import ModelInput, ModelTimes
from mlcweb.playground.search import calls
from mlcweb.playground.search.program import Program
from mlcweb.playground.session import session
from mlcweb.runtime.ndarray import NDArray
from mlcweb.tir import IntImm

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.relax_vm.virtual_machine import VirtualMachine

ENTRY = "main"
ROUNDS = 4
REPEATS = 3
MIN_MS = 8.0
"""Before and after are timed in turn: rounds, batches in a round, and how long a batch is."""

SEED = 0


def compare(search_id: str, index: int) -> ModelTimes:
    """Time a model with its function as it was, and with what a trial made of it.

    Raises:
        TVMError: the module has no graph function, it takes something else than tensors of constant
            shape, or the two compute different things.
    """
    document, _ = session.search(search_id)
    program, module = calls.scheduled(search_id, index)
    model = program.module
    if not has_graph(model):
        raise TVMError(f'{program.name} has no graph function "{ENTRY}" to time')
    replaced = with_function(model, program, module)
    arguments, origins = _arguments(model, document.variables)
    machines = [_machine(model), _machine(replaced)]
    _same(*(machine[ENTRY](*arguments) for machine in machines))
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for machine, times in zip(machines, seconds, strict=True):
            timer = machine.time_evaluator(ENTRY, number=1, repeat=REPEATS, min_repeat_ms=MIN_MS)
            times += timer(*arguments).results
    before, after = map(statistics.median, seconds)
    return ModelTimes(before, after, ENTRY, origins)


def has_graph(module: IRModule) -> bool:
    """Whether a module is a model: its function "main" is one of Relax."""
    from mlcweb.relax import Function

    return any(
        var.name_hint == ENTRY and isinstance(func, Function)
        for var, func in module.functions.items()
    )


def with_function(model: IRModule, program: Program, module: IRModule) -> IRModule:
    """A model in which the searched function is the one of a scheduled module."""
    func = module[program.main].with_attr("global_symbol", program.function)
    replaced = model.copy()
    replaced.update_func(replaced.get_global_var(program.function), func)
    return replaced


def _machine(model: IRModule) -> VirtualMachine:
    from mlcweb import relax
    from mlcweb.relax_vm import VirtualMachine
    from mlcweb.runtime.device import cpu

    return VirtualMachine(relax.build(model, target=calls.TARGET), cpu())


def _arguments(
    model: IRModule, variables: Mapping[str, Any]
) -> tuple[list[NDArray], list[ModelInput]]:
    """Content for the parameters: the program's array of the same name, or else the only one that
    has their shape, or else random numbers."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    arrays = {k: v for k, v in variables.items() if isinstance(v, NDArray)}
    contents: list[NDArray] = []
    origins: list[ModelInput] = []
    for parameter in model[ENTRY].params:
        name = parameter.name_hint
        shape, dtype = _constant_type(name, parameter.struct_info)
        fitting = [k for k, v in arrays.items() if tuple(v.shape) == shape and v.dtype == dtype]
        chosen = name if name in fitting else fitting[0] if len(fitting) == 1 else None
        contents.append(arrays[chosen] if chosen else _random(generator, shape, dtype))
        origins.append(ModelInput(name, chosen or "random"))
    return contents, origins


def _constant_type(name: str, info: Any) -> tuple[tuple[int, ...], str]:
    extents = getattr(getattr(info, "shape", None), "values", None)
    if extents is None or not all(isinstance(extent, IntImm) for extent in extents):
        raise TVMError(
            f'the parameter "{name}" of {ENTRY} is no tensor of constant shape; bind its sizes '
            "to numbers before timing the model"
        )
    return tuple(extent.value for extent in extents), info.dtype


def _random(generator: np.random.Generator, shape: Sequence[int], dtype: str) -> NDArray:
    from mlcweb.runtime import nd

    if dtype.startswith("float"):
        return nd.array(generator.uniform(-1.0, 1.0, shape).astype(dtype))
    return nd.array(generator.integers(0, 2 if dtype == "bool" else 8, shape).astype(dtype))


def _same(before: Any, after: Any) -> None:
    """Raises where two results differ by more than reordered sums may."""
    import numpy as np

    if isinstance(before, list | tuple):
        for one, other in zip(before, after, strict=True):
            _same(one, other)
    elif isinstance(before, NDArray) and not np.allclose(
        before.numpy(), after.numpy(), rtol=1e-3, atol=1e-4, equal_nan=True
    ):
        raise TVMError("the model computes something else with the trial's function")
