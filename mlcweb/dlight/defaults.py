"""What `relax.build` schedules without being asked: the functions that nobody wrote."""

from __future__ import annotations

from math import inf, prod

from mlcweb.codegen.registry import default_target
from mlcweb.dlight.default_rules import with_default_schedules
from mlcweb.ir.module import IRModule
from mlcweb.relax.transform import FoldConstant, SplitLayoutRewritePreproc
from mlcweb.relax.transform.dead_code import called_by_graphs
from mlcweb.relax.transform.layout_free import free_constants
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.schedule.layout_rewrite import LAYOUT_FREE
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import Var
from mlcweb.tir.function import SCHEDULED, PrimFunc
from mlcweb.tir.stmt import BlockRealize, For, ForKind, Stmt, in_order

MIN_ITERATIONS = 1 << 16
"""Functions of fewer iterations stay as they are: a schedule takes longer to make and to compile
than it would save in a thousand calls."""


def schedule_by_default(mod: IRModule, target: Target | None) -> IRModule:
    """A module with default schedules for a target (None: this machine's processor).

    For a device with threads all functions without any get threads. For a processor those functions
    are scheduled that were made of operators: they are private (without a "global_symbol"), and
    their loops are as `te.create_prim_func` makes them. What they, or functions with schedules that
    were found by a search, take as constants is laid out as their loops read it.
    """
    chosen = Target(default_target().name) if target is None else target
    if chosen.kind.name in DEVICE_KINDS:
        return with_default_schedules(mod, chosen)
    whole = schedule_generated(mod, chosen)
    packed = SplitLayoutRewritePreproc()(whole)
    if packed is whole:
        return whole
    folded = FoldConstant()(packed)
    used = called_by_graphs(folded)
    kept = {v: func for v, func in folded.functions.items() if v in whole.functions or v in used}
    return folded.with_functions(kept)


def schedule_generated(mod: IRModule, target: Target) -> IRModule:
    """A module with default schedules, for a processor, of the functions that were made of
    operators. What brings constants into the layout in which they are read is left in them."""
    marked = {
        var: func
        for var, func in free_constants(mod).functions.items()
        if isinstance(func, PrimFunc) and is_generated(func)
    }
    scheduled = with_default_schedules(IRModule(marked), target).functions if marked else {}
    plain = {var: func.without_attr(LAYOUT_FREE) for var, func in scheduled.items()}
    return mod.with_functions({**mod.functions, **plain}) if plain else mod


def is_generated(func: PrimFunc) -> bool:
    """Whether nobody wrote or scheduled a function, and it computes enough to be scheduled."""
    if "global_symbol" in func.attrs or SCHEDULED in func.attrs or func.root_block is None:
        return False
    body = func.root_block.body
    counts = [_iterations(nest) for nest in in_order(body)]
    return 0 not in counts and sum(counts) >= MIN_ITERATIONS


def _iterations(nest: Stmt) -> float:
    """How often the block of a loop nest runs (unbounded where an extent is symbolic); 0 where the
    nest is not that of a formula: serial loops around one block, which are its iterators."""
    loops: list[For] = []
    while isinstance(nest, For):
        if nest.kind is not ForKind.SERIAL or nest.annotations:
            return 0
        loops.append(nest)
        nest = nest.body
    if not isinstance(nest, BlockRealize):
        return 0
    variables = [value for value in nest.iter_values if isinstance(value, Var)]
    if variables != [loop.loop_var for loop in loops]:
        return 0
    extents = [constant_value(loop.extent) for loop in loops]
    return prod(inf if extent is None else extent for extent in extents)
