"""Sequences of passes by name: what `relax.build` does to a module first."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax import transform
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.transform.op_pattern import annotate
from mlcweb.relax.transform.registration import is_primitive
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.schedule_provider import innermost


class UnknownPipeline(TVMError, ValueError):
    """A pipeline of a name that nothing has registered."""


PIPELINE_MAP: dict[str, Callable[..., Pass]] = {}


def register_pipeline(name: str) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """Let `get_pipeline(name, …)` give what the decorated function gives.

    Raises:
        ValueError: the name is taken.
    """

    def register(make: Callable[..., Pass]) -> Callable[..., Pass]:
        if name in PIPELINE_MAP:
            raise ValueError(f'There is a pipeline "{name}" already')
        PIPELINE_MAP[name] = make
        return make

    return register


def get_pipeline(name: str = "zero", **options: object) -> Pass:
    """A sequence of passes by its name: "zero", "default", or one that was registered.

    Raises:
        UnknownPipeline: lists those that there are.
    """
    if name not in PIPELINE_MAP:
        there = ", ".join(f'"{other}"' for other in sorted(PIPELINE_MAP))
        raise UnknownPipeline(f'Unknown pipeline "{name}"; there are {there}')
    return PIPELINE_MAP[name](**options)


@register_pipeline("zero")
def zero_pipeline(*, enable_warning: bool = False) -> Pass:
    """Lower operators, compute what is constant, and fuse whatever can be, hand-written functions
    of TensorIR included; those that an entered database knows get their schedules.

    `enable_warning`: whether functions that it does not know cause a warning.
    """
    fuse = Sequential([
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
    ], name="zero_pipeline")  # fmt: skip
    schedule = transform.MetaScheduleApplyDatabase(enable_warning=enable_warning)
    whole = ModulePass(
        lambda mod, ctx: fuse(mod) if innermost() is None else schedule(fuse(mod)), fuse.info
    )
    whole.transparent = True
    return whole


@register_pipeline("default_build")
@register_pipeline("default")
def default_pipeline() -> Pass:
    """What `relax.build` runs: the passes of "zero", and `DeadCodeElimination` of what they made;
    at last `MetaScheduleApplyDatabase`, where a database is entered (`with database:`).

    Functions of TensorIR that the module has already are not fused unless they say their
    "op_pattern": somebody may have scheduled them, and looks for them by their names. A module of
    nothing but calls of such functions stays as it is.
    """
    whole = ModulePass(_default, PassInfo(0, "default_pipeline"))
    whole.transparent = True
    return whole


def get_default_pipeline(target: object) -> Pass:
    """What `relax.build` runs for a target: "default" for all of them here."""
    return default_pipeline()


default_build_pipeline = default_pipeline


@register_pipeline("static_shape_tuning")
def static_shape_tuning_pipeline(*args: object, **options: object) -> Pass:
    """Lower and fuse a model, tune its functions, and give them what was found: see
    `mlcweb.meta_schedule.relax_integration`, a layer above this one."""
    return provided(__name__, "static_shape_tuning_pipeline")(*args, **options)


def _default(mod: IRModule, ctx: PassContext) -> IRModule:
    ready = fused(mod)
    return ready if innermost() is None else transform.MetaScheduleApplyDatabase()(ready)


def fused(mod: IRModule) -> IRModule:
    """What the pipeline "default" makes of a module before it looks for schedules."""
    if not any(map(_has_work, mod.functions.values())):
        return mod
    legal = transform.LegalizeOps()(mod)
    pattern = PassInfo(0, "AnnotateTIROpPattern")
    annotated = ModulePass(lambda legal, ctx: annotate(legal, skip=mod.functions), pattern)(legal)
    folded = transform.FoldConstant()(annotated)
    lowered = transform.FuseTIR()(transform.FuseOps()(folded))
    lowered = transform.DeadCodeElimination()(lowered)
    # Functions that nothing calls by reference may be called by name.
    dropped = {
        var: func
        for var, func in folded.functions.items()
        if var in mod.functions and var not in lowered.functions and not is_primitive(func)
    }
    return lowered.with_functions({**lowered.functions, **dropped}) if dropped else lowered


def has_operators(mod: IRModule) -> bool:
    """Whether some graph function has an operator that is to be lowered."""
    graphs = (func for func in mod.functions.values() if isinstance(func, E.Function))
    return any(_is_operator_call(node) for func in graphs for node in walk(func))


def _has_work(func: E.Expr | BaseFunc) -> bool:
    """Whether a function has operators in it, or is of fused ones, or may be fused."""
    if isinstance(func, PrimFunc):
        return "op_pattern" in func.attrs
    return isinstance(func, E.Function) and (
        is_primitive(func) or any(map(_is_operator_call, walk(func)))
    )


def _is_operator_call(node: object) -> bool:
    if not (isinstance(node, E.Call) and isinstance(node.op, Op)):
        return False
    return node.op.get_attr("FLegalize") is not keep
