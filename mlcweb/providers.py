"""Who implements the names of lower layers that belong to layers above them.

Each function imports a module of an upper layer when somebody first asks for one of its names; see
`mlcweb.ir.lazy_attributes`. Imported with the package, so that the names are there whatever else a
program imports.
"""

from __future__ import annotations

from typing import Any

from mlcweb.ir.lazy_attributes import provides


@provides(
    "mlcweb.relax", "build", "ExecBuilder", "Executable", "VMExecutable",
    "VMInstrumentReturnKind", "VirtualMachine", "vm", "vm_build",
)  # fmt: skip
def _virtual_machine(name: str) -> Any:
    import mlcweb.relax_vm as vm

    return vm if name == "vm" else getattr(vm, name)


@provides("mlcweb.relax.backend.utils", "Target")
def _target(name: str) -> Any:
    from mlcweb.runtime.target import Target

    return Target


@provides("mlcweb.lower.vectorize_loop", "current_target")
@provides("mlcweb.topi.parallel", "current_target")
def _current_target(name: str) -> Any:
    from mlcweb.runtime.target import Target

    return Target.current


@provides("mlcweb.runtime.build", "build_model")
def _model_builder(name: str) -> Any:
    from mlcweb.relax_vm import build

    return build


@provides("mlcweb.runtime.library", "load_model")
def _model_loader(name: str) -> Any:
    from mlcweb.relax_vm.vm_build import load_model

    return load_model


@provides("mlcweb.runtime.module", "export_library")
@provides("mlcweb.runtime", "load_module")
def _libraries(name: str) -> Any:
    from mlcweb.runtime import library

    return getattr(library, name)


@provides("mlcweb.runtime.registry", "functions_of_machines")
def _functions_of_machines(name: str) -> Any:
    from mlcweb.relax_vm import registered

    return registered


@provides("mlcweb.runtime.registry", "functions_of_schedules")
def _functions_of_schedules(name: str) -> Any:
    from mlcweb.dlight.analysis.global_functions import FUNCTIONS

    return FUNCTIONS


@provides("mlcweb.tir.function", "specialize_params")
def _specialization(name: str) -> Any:
    from mlcweb.lower.specialize import specialize_params

    return specialize_params


@provides("mlcweb.tir.function", "prim_func_struct_info")
def _struct_info_of_functions(name: str) -> Any:
    from mlcweb.relax.deduction import prim_func_struct_info

    return prim_func_struct_info


@provides("mlcweb.tir.buffer", "simplify")
def _simplification(name: str) -> Any:
    from mlcweb.arith import Analyzer

    return Analyzer().simplify


@provides("mlcweb.arith.index_map", "map_tensor")
def _arrays_in_another_layout(name: str) -> Any:
    from mlcweb.runtime.map_tensor import map_tensor

    return map_tensor


@provides("mlcweb.tir.expr", "PrimStructInfo")
def _type_of_scalars(name: str) -> Any:
    from mlcweb.relax import PrimStructInfo

    return PrimStructInfo


@provides("mlcweb.relax.analysis", "estimate_memory_usage")
def _memory_report(name: str) -> Any:
    from mlcweb.relax_vm.memory_report import estimate_memory_usage

    return estimate_memory_usage


@provides("mlcweb.relax", "BasePyModule")
def _python_modules(name: str) -> Any:
    from mlcweb.relax_vm.base_py_module import BasePyModule

    return BasePyModule


@provides("mlcweb.relax.transform", "RunCodegen")
def _external_compilers(name: str) -> Any:
    from mlcweb.relax_vm.run_codegen import RunCodegen

    return RunCodegen


@provides("mlcweb.relax.transform.fold_constant", "evaluator")
def _constant_evaluator(name: str) -> Any:
    from mlcweb.relax_vm.constant_evaluator import evaluator

    return evaluator


@provides("mlcweb.relax.frontend.common", "array")
def _ndarray(name: str) -> Any:
    from mlcweb.runtime.ndarray import array

    return array


@provides("mlcweb.relax.pipeline", "static_shape_tuning_pipeline")
@provides("mlcweb.relax.transform", "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")
def _tuning_passes(name: str) -> Any:
    from mlcweb.meta_schedule import relax_integration

    return getattr(relax_integration, name)


@provides("mlcweb.relax.transform.apply_database", "JSONDatabase")
def _database(name: str) -> Any:
    from mlcweb.meta_schedule.database import JSONDatabase

    return JSONDatabase


@provides("mlcweb.tir", "schedule", "analysis", "transform")
def _packages_on_tir(name: str) -> Any:
    from mlcweb import analysis, schedule
    from mlcweb.lower import transform

    return {"schedule": schedule, "analysis": analysis, "transform": transform}[name]


@provides("mlcweb.lower.transform", "DefaultGPUSchedule")
def _default_gpu_schedule(name: str) -> Any:
    from mlcweb.dlight.gpu.default_gpu_schedule import default_gpu_schedule

    return default_gpu_schedule


@provides("mlcweb.tir", "BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError", "Trace")
def _schedules(name: str) -> Any:
    from mlcweb import schedule

    return getattr(schedule, name)


@provides("mlcweb.schedule.state", "block_scope", "cached_flags")
def _block_info(name: str) -> Any:
    from mlcweb.schedule.analysis import block_info

    return getattr(block_info, name)


@provides("mlcweb.tir.tensor_intrin", "register_standard")
def _standard_intrinsics(name: str) -> Any:
    from mlcweb.tensor_intrin import cuda, dot_products, rocm

    return cuda, dot_products, rocm


@provides("mlcweb.te.tensor", "add", "subtract", "multiply", "divide", "negative", "cast")
def _operators_of_tensors(name: str) -> Any:
    from mlcweb import topi

    return getattr(topi, name)


@provides("mlcweb.tir", "IndexMap")
def _index_map(name: str) -> Any:
    from mlcweb.arith.index_map import IndexMap

    return IndexMap


@provides("mlcweb.relax.frontend.nn", "llm")
def _language_models(name: str) -> Any:
    import mlcweb.llm

    return mlcweb.llm
