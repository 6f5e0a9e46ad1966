"""Passes of the graph level that search: `relax.transform.MetaScheduleTuneIRMod` and its kin. They
leave the module as it is, and records in a folder; `MetaScheduleApplyDatabase` applies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.ir.transform import Pass, Sequential
from mlcweb.meta_schedule.database.json_database import JSONDatabase
from mlcweb.meta_schedule.relax_integration import tune_relax
from mlcweb.meta_schedule.tir_integration import tune_tir
from mlcweb.relax.pipeline import get_pipeline
from mlcweb.relax.transform import CanonicalizeBindings
from mlcweb.relax.transform.apply_database import apply_schedules
from mlcweb.relax.transform.registration import pass_of
from mlcweb.runtime.target import Target
from mlcweb.tir.function import PrimFunc


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int) -> Pass:
    """Tune the functions of TensorIR of a module for the target of the surrounding `with target:`.

    Args:
        work_dir: the folder of the database.
        max_trials_global: programs measured in all.
    """

    def transform(mod: IRModule) -> IRModule:
        functions = {v: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)}
        tune_tir(IRModule(functions), _target(), work_dir, max_trials_global=max_trials_global)
        return mod

    return pass_of("MetaScheduleTuneTIR", transform)


def MetaScheduleTuneIRMod(
    params: Mapping[str, Any],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
) -> Pass:
    """Tune the functions of a model for the target of the surrounding `with target:`.

    Args:
        params: values of parameters of "main", by name.
        work_dir: the folder of the database.
        max_trials_global: programs measured in all.
        max_trials_per_task: programs measured of one function, at most.
        op_names: tune only functions whose name contains one of these.
    """

    def transform(mod: IRModule) -> IRModule:
        tune_relax(
            mod, params, _target(), work_dir, max_trials_global, max_trials_per_task, op_names
        )
        return mod

    return pass_of("MetaScheduleTuneIRMod", transform)


def static_shape_tuning_pipeline(
    total_trials: int,
    target: str | Target,
    work_dir: str = "tuning_logs",
    cpu_weight_prepack: bool = False,
    max_trials_per_task: int | None = None,
) -> Pass:
    """The pipeline "static_shape_tuning": lower and fuse a model, tune its functions, and give them
    the fastest schedules that are known then.

    Args:
        total_trials: programs measured in all; with 0 only what `work_dir` knows is applied.
        target: what to tune for.
        work_dir: the folder of the database.
        cpu_weight_prepack: False; weights are not laid out anew here.
        max_trials_per_task: programs measured of one function, at most.

    Raises:
        ValueError: cpu_weight_prepack is asked for.
    """
    if cpu_weight_prepack:
        raise ValueError("cpu_weight_prepack is not known here; leave it out")
    tune = MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task)
    steps = [CanonicalizeBindings(), get_pipeline("zero"), *([tune] if total_trials > 0 else [])]

    def transform(mod: IRModule) -> IRModule:
        with Target(target):
            lowered = Sequential(steps)(mod)
        return apply_schedules(lowered, JSONDatabase(work_dir=work_dir))

    return pass_of("static_shape_tuning", transform)


def _target() -> Target:
    target = Target.current(allow_none=False)
    assert target is not None
    return target
