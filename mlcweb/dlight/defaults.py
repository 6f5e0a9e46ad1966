"""What `relax.build` schedules without being asked: the functions that nobody wrote."""

from __future__ import annotations

from math import inf, prod

from mlcweb.codegen.registry import default_target
from mlcweb.dlight.base import ApplyDefaultSchedule
from mlcweb.dlight.cpu import Elementwise, Matmul, Reduction
from mlcweb.dlight.gpu import Fallback
from mlcweb.ir.module import IRModule
from mlcweb.relax.transform.apply_database import SCHEDULED
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BlockRealize, For, ForKind, SeqStmt, Stmt

MIN_ITERATIONS = 1 << 16
"""Functions of fewer iterations stay as they are: a schedule takes longer to make and to compile
than it would save in a thousand calls."""


def schedule_by_default(mod: IRModule, target: Target | None) -> IRModule:
    """A module with default schedules for a target (None: this machine's processor).

    For a device with threads all functions without any get threads. For a processor those functions
    are scheduled that were made of operators: they are private (without a "global_symbol"), and
    their loops are as `te.create_prim_func` makes them.
    """
    chosen = Target(default_target().name) if target is None else target
    if chosen.kind.name in DEVICE_KINDS:
        return with_default_schedules(mod, chosen)
    generated = {
        var: func
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc) and _is_generated(func)
    }
    scheduled = with_default_schedules(IRModule(generated), chosen)
    return mod.with_functions({**mod.functions, **scheduled.functions}) if generated else mod


def with_default_schedules(mod: IRModule, target: Target) -> IRModule:
    """A module with the schedules of the first rule for a target that knows a function; the module
    itself where none knows any."""
    processor = (Matmul(), Reduction(), Elementwise())
    rules = (Fallback(),) if target.kind.name in DEVICE_KINDS else processor
    with target:
        return ApplyDefaultSchedule(*rules)(mod)


def _is_generated(func: PrimFunc) -> bool:
    """Whether nobody wrote or scheduled a function, and it computes enough to be scheduled."""
    if "global_symbol" in func.attrs or SCHEDULED in func.attrs or func.root_block is None:
        return False
    body = func.root_block.body
    counts = [_iterations(nest) for nest in (body.seq if isinstance(body, SeqStmt) else (body,))]
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
