"""TVM's command-line driver as functions: load a model, tune it, compile it, run it.

    model = tvmc.load("model.onnx", shape_dict={"data": [1, 3, 224, 224]})
    tvmc.tune(model, target="llvm", tuning_records="records", trials=256)  # if time allows
    package = tvmc.compile(model, target="llvm", tuning_records="records")
    print(package)                                # what each stage made, and how long it took
    result = tvmc.run(package, device="cpu")
    print(result)                                 # where the time goes, call by call

Every stage is kept: `package.stages` has the module after each pass.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.instrument import PassInstrument
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassContext, PassInfo
from mlcweb.relax import expr as E
from mlcweb.relax.frontend.onnx import from_onnx
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax_vm import VirtualMachine
from mlcweb.relax_vm.vm_build import build, prepare
from mlcweb.runtime import ndarray
from mlcweb.runtime.device import device as device_of
from mlcweb.tir.expr import IntImm
from mlcweb.tir.function import prim_funcs

if TYPE_CHECKING:
    from mlcweb.meta_schedule.database import Database


class TVMCException(TVMError):
    """A model, or inputs, that cannot be used."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as a module of the graph level, and the seconds that importing it took."""

    mod: IRModule
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A module as a step left it, and the seconds that the step took."""

    name: str
    mod: IRModule
    seconds: float

    def __str__(self) -> str:
        kernels = len(prim_funcs(self.mod))
        main = self.mod["main"]
        calls = sum(len(block.bindings) for block in main.body.blocks)
        return (
            f"{self.name:<22}{calls:>6} bindings{kernels:>6} kernels{self.seconds * 1e3:>10.1f} ms"
        )


@dataclass(frozen=True, slots=True)
class Package:
    """A compiled model: `executable`, what it was made from, stage by stage, and the seconds that
    making machine code took."""

    executable: Any
    stages: tuple[Stage, ...]
    target: str
    seconds: float

    def __str__(self) -> str:
        lines = [str(stage) for stage in self.stages]
        lines.append(f"{'build for ' + self.target:<44}{self.seconds * 1e3:>10.1f} ms")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TVMCResult:
    """What a run gave: `outputs` by name (output_0, …) as NumPy arrays, and `report`, the table of
    `vm.profile`, where it was asked for."""

    outputs: Mapping[str, Any]
    report: Any

    def get_output(self, name: str) -> Any:
        return self.outputs[name]

    def __str__(self) -> str:
        lines = [f"{n}: {v.dtype} {tuple(v.shape)}" for n, v in self.outputs.items()]
        return "\n".join(lines if self.report is None else [str(self.report), *lines])


def load(
    path: str | os.PathLike[str],
    model_format: str | None = None,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> Model:
    """Import a model from a file. There is one format, "onnx"; `options` are those of `from_onnx`.

    Raises: TVMCException for other formats; OnnxError for what cannot be imported.
    """
    suffix = model_format or Path(path).suffix.removeprefix(".")
    if suffix != "onnx":
        raise TVMCException(f'{path}: the format "{suffix}" is not supported; there is "onnx"')
    begin = time.perf_counter()
    mod = from_onnx(path, shape_dict, **options)
    return Model(mod, time.perf_counter() - begin)


def tune(
    tvmc_model: Model | IRModule,
    target: str = "llvm",
    tuning_records: str | os.PathLike[str] | None = None,
    prior_records: str | os.PathLike[str] | Database | None = None,
    trials: int = 1000,
    tasks: Sequence[str] | None = None,
    workers: int | None = None,
    timeout: float = 10.0,
    relax_pipeline: Any = "default",
    **options: Any,
) -> Database:
    """Search for fast schedules of the functions that `compile` would make of a model.

    Args:
        tuning_records: the folder of the records. A search goes on where an earlier one with this
            folder has ended. None keeps the records in memory.
        prior_records: records to begin with: a database, or its folder.
        trials: programs measured in all.
        tasks: tune only functions whose name contains one of these.
        workers: programs measured at one time; by default what suits this machine.
        timeout: seconds that one program may take.
        relax_pipeline: as in `relax.build`.
        options: those of `mlcweb.meta_schedule.relax_integration.tune_relax`, such as `seed`,
            `strategy`, `max_trials_per_task`, `max_seconds`, `runner`, `cost_model`.

    Returns:
        The database with all records, for `compile`.

    Raises:
        TVMCException: there are no prior records in this folder.
        ValueError: there is nothing to tune.
    """
    from mlcweb.meta_schedule.database import Database
    from mlcweb.meta_schedule.relax_integration import tune_lowered
    from mlcweb.meta_schedule.runner import LocalRunner

    if tuning_records is None:
        database = Database.create("memory")
    else:
        database = Database.create("json", work_dir=os.fspath(tuning_records))
    if prior_records is not None:
        database.merge(_records(prior_records))
    lowered = _lowered(tvmc_model, relax_pipeline, target)[-1].mod
    return tune_lowered(
        lowered,
        target,
        None,
        trials,
        tasks,
        database=database,
        **{"runner": LocalRunner(timeout, max_workers=workers), **options},
    )


def compile(
    tvmc_model: Model | IRModule,
    target: str = "llvm",
    relax_pipeline: Any = "default",
    tuning_records: str | os.PathLike[str] | Database | None = None,
) -> Package:
    """Build a model as `relax.build` does, and keep what each pass made.

    Args:
        relax_pipeline: as in `relax.build`.
        tuning_records: what `tune` gave, or the folder that it wrote: functions that it knows get
            their fastest schedules.

    Raises:
        TVMCException: there are no records in this folder.
    """
    with nullcontext() if tuning_records is None else _records(tuning_records):
        stages = _lowered(tvmc_model, relax_pipeline, target)
    begin = time.perf_counter()
    executable = build(stages[-1].mod, target, relax_pipeline=None)
    return Package(executable, tuple(stages), target, time.perf_counter() - begin)


def _lowered(tvmc_model: Model | IRModule, relax_pipeline: Any, target: Any) -> list[Stage]:
    if isinstance(tvmc_model, IRModule):
        tvmc_model = Model(tvmc_model, 0.0)
    stages = _Stages(tvmc_model)
    context = PassContext.current()
    with context.with_instruments([*context.instruments, stages]):
        prepare(tvmc_model.mod, relax_pipeline, target)
    return stages.stages


class _Stages(PassInstrument):
    """Keeps the module after each pass, but not after those that a pass consists of."""

    def __init__(self, model: Model) -> None:
        self.stages = [Stage("import", model.mod, model.seconds)]
        self.begun: list[float] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.begun.append(time.perf_counter())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        begin = self.begun.pop()
        if not self.begun:
            self.stages.append(Stage(info.name, mod, time.perf_counter() - begin))


def _records(records: str | os.PathLike[str] | Database) -> Database:
    from mlcweb.meta_schedule.database import Database, JSONDatabase

    if isinstance(records, Database):
        return records
    try:
        return JSONDatabase(work_dir=Path(records), allow_missing=False)
    except FileNotFoundError as error:
        raise TVMCException(
            f"{records} holds no tuning records: {error.filename} is missing"
        ) from None


def run(
    tvmc_package: Package,
    device: str = "cpu",
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    profile: bool = True,
) -> TVMCResult:
    """Run a compiled model on one input.

    Args:
        inputs: arrays by the names of parameters. Those that are left out are filled by
            `fill_mode`: "random" (between 0 and 1), "zeros" or "ones". Symbolic extents are then 1.
        profile: measure every call as well.
    """
    main = tvmc_package.stages[0].mod["main"]
    unused = dict(inputs or {})
    arguments = [_argument(param, unused, fill_mode) for param in main.params]
    if unused:
        names = ", ".join(param.name_hint for param in main.params)
        raise TVMCException(f'The model has no input "{next(iter(unused))}"; it has {names}')
    machine = VirtualMachine(tvmc_package.executable, device_of(device), profile=profile)
    results = machine["main"](*arguments)
    results = [results] if hasattr(results, "numpy") else list(results)
    report = machine.profile("main", *arguments) if profile else None
    return TVMCResult({f"output_{i}": r.numpy() for i, r in enumerate(results)}, report)


def _argument(param: E.Var, inputs: dict[str, Any], fill_mode: str) -> Any:
    import numpy as np

    info = param.struct_info
    assert isinstance(info, TensorStructInfo) and info.values is not None
    if param.name_hint in inputs:
        value = np.asarray(inputs.pop(param.name_hint))
        return ndarray.array(value.astype(info.dtype, copy=False))
    shape = [extent.value if isinstance(extent, IntImm) else 1 for extent in info.values]
    if fill_mode == "random":
        return ndarray.array(np.random.default_rng(0).random(shape).astype(info.dtype))
    if fill_mode not in ("zeros", "ones"):
        raise TVMCException(f'fill_mode is "random", "zeros" or "ones", not "{fill_mode}"')
    return ndarray.array(np.full(shape, fill_mode == "ones", info.dtype))
