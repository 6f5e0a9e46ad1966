"""Tuning models: their functions are tuned, and the schedules that are found put back.

database = ms.relax_integration.tune_relax(mod, params, target, work_dir, max_trials_global=256)
executable = ms.relax_integration.compile_relax(database, mod, target, params)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlcweb.dlight.defaults import is_generated, schedule_generated
from mlcweb.ir import IRModule
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.transform import Pass, Sequential
from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule.database.database import Database, workload_hash
from mlcweb.meta_schedule.database.json_database import JSONDatabase
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.tir_integration import tune_tir
from mlcweb.meta_schedule.tune import check_options, tune_extracted
from mlcweb.meta_schedule.tune_context import ExtractedTask
from mlcweb.meta_schedule.tune_context import (
    extracted_tasks_to_tune_contexts as extracted_tasks_to_tune_contexts,
)
from mlcweb.relax import expr as E
from mlcweb.relax.pipeline import fused, get_pipeline
from mlcweb.relax.transform import (
    AttachAttrLayoutFreeBuffers,
    BindParams,
    CanonicalizeBindings,
    FoldConstant,
    LiftTransformParams,
    MetaScheduleApplyDatabase,
    SplitLayoutRewritePreproc,
)
from mlcweb.relax.transform.apply_database import apply_schedules, program_of
from mlcweb.relax.transform.layout_free import free_constants
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax_vm import Executable, build
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir.function import SCHEDULED, PrimFunc
from mlcweb.tir.stmt import Block


def extract_tasks(
    mod: IRModule | E.Function,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    module_equality: str = "structural",
) -> list[ExtractedTask]:
    """What there is to tune in a model: each function of TensorIR that its graph functions call,
    after operators were lowered and fused as `relax.build` does it. Functions that are the same are
    one task. Those that are scheduled already are left out. For a processor, those that take
    constants say so by the attribute "layout_free_buffers", as of `AttachAttrLayoutFreeBuffers`.

    Args:
        params: values of parameters of "main", by name.
        module_equality: "structural" or "ignore-tensor", which is the same for functions, or
            "anchor-block": one task for those with the same largest reduction, the one with the
            fewest blocks.
    """
    MemoryDatabase(module_equality)
    return tasks_of(fused(_bound(mod, params)), target, module_equality)


def tasks_of(
    lowered: IRModule, target: Target | str, module_equality: str = "structural"
) -> list[ExtractedTask]:
    """What there is to tune in a module whose operators were lowered and fused already. For a
    processor its functions choose the layouts of what they take as constants."""
    target = Target(target)
    for_processor = target.kind.name not in DEVICE_KINDS
    if for_processor:
        lowered = free_constants(lowered)
    # One record of an anchor block is for several programs, each with a default of its own.
    has_defaults = for_processor and module_equality != "anchor-block"
    calls = _calls(lowered)
    tasks: dict[int, ExtractedTask] = {}
    for var, func in lowered.functions.items():
        if not isinstance(func, PrimFunc) or SCHEDULED in func.attrs:
            continue
        count = calls[var.name_hint]
        if not count:
            continue
        program = program_of(func)
        shash = workload_hash(program, module_equality)
        has_default = has_defaults and is_generated(func)
        task = ExtractedTask(var.name_hint, program, target, [program], count, has_default)
        other = tasks.setdefault(shash, task)
        if other is not task:
            fewest = min(other, task, key=lambda each: _block_count(each.mod))
            tasks[shash] = replace(fewest, weight=other.weight + count)
    return list(tasks.values())


def _block_count(program: IRModule) -> int:
    return sum(isinstance(node, Block) for node in walk(program["main"].body))


def tune_relax(
    mod: IRModule | E.Function,
    params: Mapping[str, Any] | None,
    target: str | Target,
    work_dir: str | Path | None,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
    *,
    module_equality: str = "structural",
    **options: Any,
) -> Database:
    """Tune the functions of a model.

    Args:
        params: values of parameters of "main", by name.
        target: what to tune for.
        work_dir: the folder of the database; None keeps the records in memory.
        max_trials_global: programs measured in all.
        max_trials_per_task: programs measured of one function, at most.
        op_names: tune only functions whose name contains one of these.
        module_equality: see `extract_tasks`.
        options: `num_trials_per_iter`, `builder`, `runner`, `database`, `cost_model`,
            `measure_callbacks`, `task_scheduler`, `early_stopping`, `max_seconds`: see
            `tune_tasks`; `space`, `special_space`, `strategy`, `seed`, `num_tuning_cores`: see
            `tune_extracted`.

    Returns:
        The database with all records.

    Raises:
        TypeError: an option is not known; names those that are.
        ValueError: there is nothing to tune, or an option has no such value.
    """
    check_options("tune_relax", options)
    MemoryDatabase(module_equality)  # which refuses what it does not know before any work
    return tune_lowered(
        fused(_bound(mod, params)),
        target,
        work_dir,
        max_trials_global,
        op_names,
        max_trials_per_task=max_trials_per_task,
        module_equality=module_equality,
        **options,
    )


def tune_lowered(
    lowered: IRModule,
    target: str | Target,
    work_dir: str | Path | None,
    max_trials_global: int,
    op_names: Sequence[str] | None = None,
    *,
    module_equality: str = "structural",
    **options: Any,
) -> Database:
    """`tune_relax` for a model whose operators were lowered and fused already."""
    tasks = [
        task
        for task in tasks_of(lowered, target, module_equality)
        if not op_names or any(name in task.task_name for name in op_names)
    ]
    return tune_extracted(
        tasks, work_dir, max_trials_global, module_equality=module_equality, **options
    )


def compile_relax(
    database: Database,
    mod: IRModule,
    target: Target | str,
    params: Mapping[str, Any] | None,
    enable_warning: bool = False,
) -> Executable:
    """Build a model whose functions have the schedules of a database.

    Args:
        params: values of parameters of "main", by name.
        enable_warning: whether functions that the database does not know cause a warning.
    """
    with database:
        lowered = fused(_bound(mod, params))
        scheduled = MetaScheduleApplyDatabase(enable_warning=enable_warning)(lowered)
        return build(scheduled, target, relax_pipeline=None)


def _bound(mod: IRModule | E.Function, params: Mapping[str, Any] | None) -> IRModule:
    if isinstance(mod, E.Function):
        mod = IRModule.from_expr(mod)
    return BindParams("main", params)(mod) if params else mod


def _calls(mod: IRModule) -> Counter[str]:
    """How often the graph functions of a module call each of its functions of TensorIR, by
    GlobalVar or by name. A call counts once however often the program runs it."""
    calls: Counter[str] = Counter()
    for func in mod.functions.values():
        if isinstance(func, E.Function):
            calls.update(_called(func))
    return calls


def _called(func: E.Function) -> Iterator[str]:
    for node in walk(func):
        if isinstance(node, E.Call):
            for callee in (node.op, *node.args[:1]):
                if isinstance(callee, GlobalVar):
                    yield callee.name_hint
                elif isinstance(callee, E.ExternFunc):
                    yield callee.global_symbol


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
        cpu_weight_prepack: whether functions take weights, which are constants or parameters of
            "main" beyond its "num_input", in the layout in which they read them. What brings
            parameters into it is left to "main_transform_params".
        max_trials_per_task: programs measured of one function, at most.
    """
    tune = MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task)
    before: list[Pass] = [CanonicalizeBindings(), get_pipeline("zero")]
    after = SplitLayoutRewritePreproc(), LiftTransformParams(), FoldConstant()
    if cpu_weight_prepack:
        before.append(AttachAttrLayoutFreeBuffers())
    if total_trials > 0:
        before.append(tune)

    def transform(mod: IRModule) -> IRModule:
        with Target(target):
            lowered = Sequential(before)(mod)
        scheduled = apply_schedules(lowered, JSONDatabase(work_dir=work_dir))
        if not cpu_weight_prepack:
            return scheduled
        # What stays as builds schedule it has layouts of its own for weights.
        return Sequential(after)(schedule_generated(scheduled, Target(target)))

    return pass_of("static_shape_tuning", transform)


def _target() -> Target:
    target = Target.current(allow_none=False)
    assert target is not None
    return target
