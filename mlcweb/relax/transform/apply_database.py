"""MetaScheduleApplyDatabase: functions of TensorIR get the best schedules that a database has."""

from __future__ import annotations

import warnings

from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.transform import Pass
from mlcweb.relax.transform.layout_free import free_constants
from mlcweb.relax.transform.registration import pass_of
from mlcweb.tir.function import SCHEDULED, PrimFunc
from mlcweb.tir.schedule_provider import ScheduleProvider, innermost

_DROPPED = ("global_symbol", "op_pattern")
"""What a schedule does not decide, and what would have the function fused with others."""


def MetaScheduleApplyDatabase(work_dir: str | None = None, enable_warning: bool = False) -> Pass:
    """Give each function of TensorIR its fastest schedule of the database that is entered
    (`with database:`), and the attribute "tir.is_scheduled". What the database does not know stays,
    and so does what it knows to be the fastest without any steps. Schedules for functions whose
    constants may have any layout come first; `SplitLayoutRewritePreproc` takes out what brings
    constants into that layout, as `relax.build` does.

    Args:
        work_dir: the folder of the database, where none is entered.
        enable_warning: whether functions that stay as they are cause a warning.
    """

    def transform(mod: IRModule) -> IRModule:
        entered = innermost()
        source = _of_folder(work_dir) if entered is None else entered
        return apply_schedules(mod, source, enable_warning)

    return pass_of("MetaScheduleApplyDatabase", transform)


def apply_schedules(
    mod: IRModule, source: ScheduleProvider, enable_warning: bool = False
) -> IRModule:
    """The module with the schedules of a source; itself where it knows none."""
    changed: dict[GlobalVar, PrimFunc] = {}
    marked = free_constants(mod).functions
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or SCHEDULED in func.attrs:
            continue
        scheduled = _scheduled(var.name_hint, func, marked[var], source)
        if scheduled is not None:
            changed[var] = scheduled
        elif enable_warning:
            warnings.warn(f'No tuning record for the function "{var.name_hint}"', stacklevel=2)
    return mod.with_functions({**mod.functions, **changed}) if changed else mod


def program_of(func: PrimFunc) -> IRModule:
    """A function of a model as records know it, whatever its name is there."""
    return IRModule({"main": func.with_attr("global_symbol", "main")})


def _scheduled(
    name: str, func: PrimFunc, marked: BaseFunc, source: ScheduleProvider
) -> PrimFunc | None:
    assert isinstance(marked, PrimFunc)
    # A private function may also have been tuned by itself.
    programs = [program_of(func), IRModule({"main": func.without_attr("global_symbol")})]
    if marked is not func:
        programs.insert(0, program_of(marked))
    for program in programs:
        try:
            recorded = source.query_ir_module(program)
        except (TVMError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            warnings.warn(f'The record of "{name}" does not fit: {reason}', stacklevel=2)
            continue
        if recorded is not None and structural_equal(recorded, program):
            return func  # it is the fastest as it is, or as it is scheduled by default
        if recorded is not None:
            new = recorded["main"]
            names = {k: v for k, v in func.attrs.items() if k == "global_symbol"}
            attrs = {k: v for k, v in new.attrs.items() if k not in _DROPPED}
            return replace(new, attrs={**names, **attrs, SCHEDULED: True})
    return None


def _of_folder(work_dir: str | None) -> ScheduleProvider:
    if work_dir is None:
        raise TVMError(
            "MetaScheduleApplyDatabase needs a database: write `with database:` around it, or "
            "give work_dir="
        )
    return provided(__name__, "JSONDatabase")(work_dir=work_dir)
