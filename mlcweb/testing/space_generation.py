"""`tvm.meta_schedule.testing.space_generation`: design spaces compared with expected programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.meta_schedule.schedule_rule import ScheduleRule
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.meta_schedule.tune_context import TuneContext
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule, Trace
from mlcweb.testing import verify_trace_roundtrip
from mlcweb.tir.function import PrimFunc

Decisions = Sequence[tuple[str, Any]]
"""The kinds of the steps that sample, in order, with what is decided in each."""


def get_rules(kind: str, types: type | tuple[type, ...]) -> list[ScheduleRule]:
    """The default rules of a target ("llvm", "cuda" and others) that are of some classes."""
    return [rule for rule in ScheduleRule.create(kind) if isinstance(rule, types)]


def structural_equal_no_gs(mod1: IRModule, mod2: IRModule) -> bool:
    """Whether two modules are structurally equal but for their functions' `global_symbol`."""
    return structural_equal(_anonymous(mod1), _anonymous(mod2))


def _anonymous(module: IRModule) -> IRModule:
    functions = {
        name: func.without_attr("global_symbol") if isinstance(func, PrimFunc) else func
        for name, func in module.functions.items()
    }
    return module.with_functions(functions)


def generate_design_space(
    kind: str,
    mod: IRModule | PrimFunc,
    target: Target,
    types: type | tuple[type, ...] | None,
    sch_rules: Sequence[ScheduleRule] | None = None,
) -> list[Schedule]:
    """The design space of a program: by the default rules of `kind` that are of the classes
    `types`, or by `sch_rules`, where `types` must be None. Nothing follows the rules."""
    if (types is None) == (sch_rules is None):
        raise ValueError("generate_design_space takes types or sch_rules")
    rules = get_rules(kind, types) if types is not None else list(sch_rules or ())
    generator = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    context = TuneContext(mod=mod, target=target, space_generator=generator, task_name="test")
    return context.generate_design_space()


def check_sketches(
    mod: IRModule | PrimFunc,
    sketches: Iterable[Schedule],
    expected_mods: Sequence[IRModule | PrimFunc],
    expected_decisions: Sequence[Decisions],
    *,
    debug_mask: str | int = "all",
) -> None:
    """Raise AssertionError unless there are as many sketches as expected programs, and each of
    these is what some sketch becomes by the decisions that belong to it."""
    sketch_list = list(sketches)
    if not len(sketch_list) == len(expected_mods) == len(expected_decisions):
        raise AssertionError(
            f"There are {len(sketch_list)} sketches, {len(expected_mods)} expected programs and "
            f"{len(expected_decisions)} lists of decisions"
        )
    for number, (expected, decisions) in enumerate(
        zip(expected_mods, expected_decisions, strict=True)
    ):
        module = expected if isinstance(expected, IRModule) else IRModule({"main": expected})
        if not any(_becomes(mod, sketch, module, decisions) for sketch in sketch_list):
            raise AssertionError(f"No sketch becomes the expected program {number}")


def _becomes(
    mod: IRModule | PrimFunc, sketch: Schedule, expected: IRModule, decisions: Decisions
) -> bool:
    """Whether a sketch has steps for the decisions, and becomes the expected program by them."""
    rest = list(decisions)
    taken = {}
    for inst in sketch.trace.insts:
        if inst.kind.sampling and rest and inst.kind.name == rest[0][0]:
            taken[inst] = rest.pop(0)[1]
    if rest:
        return False
    sch = Schedule(mod)
    Trace(sketch.trace.insts, taken).apply_to_schedule(sch, remove_postproc=True)
    if not structural_equal_no_gs(sch.mod, expected):
        return False
    verify_trace_roundtrip(sch, mod, text_format="json")
    return True


def print_sketches(sketches: Iterable[Schedule]) -> None:
    """Print the program and the decisions of each sketch."""
    for number, sketch in enumerate(sketches):
        print(f"==================== Sketch {number} ====================")
        print(sketch.mod.script())
        for inst in sketch.trace.insts:
            if inst.kind.sampling:
                print((inst.kind.name, sketch.trace.get_decision(inst)))
